//! The keys refused most, a bar each.

use indicatif::HumanCount;
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, VPos};

use super::{Bar, Keys, MARGIN, looks};
use crate::report::drawing::{Canvas, fitting, pixel, round_number, round_step, width_of};
use crate::report::svg::Drawn;
use crate::report::text::{counted, percent};

const TITLE: i32 = 24;
const ROW: i32 = 20;
/// Of the axis under the bars.
const LABELS: i32 = 42;
/// Names end here, and bars begin a little further on.
const NAMES: i32 = 262;
const BARS: (f64, f64) = (272.0, 640.0);

fn rows(keys: &Keys) -> i32 {
    i32::try_from(keys.bars.len()).unwrap_or(0)
}

pub(super) fn height(keys: &Keys) -> i32 {
    TITLE + if keys.bars.is_empty() { 0 } else { rows(keys) * ROW + LABELS }
}

fn title(keys: &Keys) -> String {
    let all = counted(keys.refused, keys.kind);
    match keys.bars.len() as u64 {
        _ if keys.refused == 0 => format!("No {} was refused.", keys.kind),
        shown if shown == keys.refused => format!("Refused: {all}"),
        shown => format!("Refused most: {shown} of {all}"),
    }
}

/// The rule and the key; where there is no room for both, the key is given more than half of it.
fn named(bar: &Bar, room: i32) -> String {
    if bar.rule.is_empty() {
        return fitting(&bar.name, 12, room);
    }
    let name = fitting(&bar.name, 12, room * 5 / 8);
    let rule = fitting(&bar.rule, 12, room - width_of(": ", 12) - width_of(&name, 12));
    format!("{rule}: {name}")
}

pub(super) fn draw<B: DrawingBackend>(keys: &Keys, top: i32, canvas: &Canvas<'_, B>) -> Drawn
where
    B::ErrorType: 'static,
{
    canvas.text(&title(keys), (MARGIN, top), 14, (HPos::Left, VPos::Top), false)?;
    let Some(most) = keys.bars.iter().map(Bar::total).max() else { return Ok(()) };
    let unit = (BARS.1 - BARS.0) / most.max(1) as f64;
    let (first, bottom) = (top + TITLE, top + TITLE + rows(keys) * ROW);
    for (at, bar) in (0..).zip(&keys.bars) {
        let middle = first + at * ROW + ROW / 2;
        let name = named(bar, NAMES - MARGIN);
        canvas.text(&name, (NAMES, middle), 12, (HPos::Right, VPos::Center), false)?;
        let (upper, lower) = (f64::from(middle - 7), f64::from(middle + 7));
        let mut x = BARS.0;
        for (part, count) in bar.refused.iter().filter(|(_, count)| *count > 0) {
            let end = x + (unit * *count as f64).max(1.0);
            canvas.block((x, upper), (end, lower), looks(*part).1)?;
            x = end;
        }
        let refused = bar.total();
        let told = format!("{} ({})", HumanCount(refused), percent(refused, bar.requests));
        canvas.text(&told, (pixel(x) + 6, middle), 12, (HPos::Left, VPos::Center), false)?;
    }
    canvas.line([(BARS.0, f64::from(first)), (BARS.0, f64::from(bottom))], crate::report::svg::INK, 1)?;
    let step = round_step(most, 4);
    let numbers = (0..).map_while(|count| step.checked_mul(count)).take_while(|number| *number <= most);
    for number in numbers {
        let x = BARS.0 + unit * number as f64;
        canvas.tick(x, f64::from(bottom), Some(&round_number(number)))?;
    }
    let under = (pixel((BARS.0 + BARS.1) / 2.0), bottom + LABELS - 2);
    let label = format!("requests refused (and their share of all of the {}'s)", keys.kind);
    canvas.text(&label, under, 13, (HPos::Center, VPos::Bottom), false)?;
    Ok(())
}
