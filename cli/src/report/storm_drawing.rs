//! A storm drawn: a panel for each contestant, limits from top to bottom and waits from left to right, all on one scale.
//!
//! Requests a second are on a logarithmic scale: the calm and a herd that is a thousand times as high are both to be seen.

use std::io;

use indicatif::HumanCount;
use plotters::prelude::{DrawingBackend, RGBColor};
use plotters::style::text_anchor::{HPos, VPos};

use super::drawing::{self, Canvas, Mark, pixel, power_of_ten};
use super::svg::{COLOURS, Drawn, INK};
use crate::storm::Report;
use crate::storm::contestant::{Kind, Wait};
use crate::storm::figures::{Figures, Slot};
use crate::storm::scenario::Scenario;

/// In units of the drawing, as are all lengths here.
const SIZE: (i32, i32) = (800, 740);
const LEFT: i32 = 62;
const RIGHT: i32 = 12;
const TOP: i32 = 112;
const BOTTOM: i32 = 54;
const BETWEEN: (i32, i32) = (12, 30);

const OFFERED: RGBColor = RGBColor(196, 212, 226);
const ADMITTED: RGBColor = COLOURS[0];
const REFUSED: RGBColor = COLOURS[1];

/// How long the calm before the storm is drawn, in seconds.
const CALM_S: u64 = 30;
/// How long the storm is drawn at most.
const STORM_S_MAX: u64 = 600;
/// About as many slots as a panel has pixels.
const SLOTS_MAX: u64 = 170;

/// Draws a report as an SVG document.
///
/// # Errors
/// What the drawing library reports.
pub fn storm_svg(report: &Report) -> io::Result<String> {
    drawing::svg(SIZE, |canvas| draw(report, canvas))
}

/// Draws a report as a PNG file, each unit two pixels wide.
///
/// # Errors
/// What the drawing library reports.
#[cfg(feature = "png")]
pub fn storm_png(report: &Report) -> io::Result<Vec<u8>> {
    drawing::png(SIZE, |canvas| draw(report, canvas))
}

/// What all panels share.
struct Scale {
    /// In powers of ten.
    most: f64,
    from_s: u64,
    until_s: u64,
    step_s: u64,
    storm_s: u64,
    capacity: f64,
}

impl Scale {
    fn new(report: &Report) -> Self {
        let Scenario { traffic, storm, limits, .. } = &report.scenario;
        let from_s = storm.at_s.saturating_sub(CALM_S);
        let all = report.contestants.iter();
        let longest = all.clone().map(|figures| figures.timeline.len() as u64).max().unwrap_or(1);
        // What is left when nobody new comes any more is not the storm.
        let until_s = longest.min(storm.at_s + STORM_S_MAX).min(traffic.length_s).max(storm.at_s + 1);
        let step_s = (until_s - from_s).div_ceil(SLOTS_MAX);
        let capacity = limits.capacity_per_s as f64;
        let mut scale = Scale { most: 1.0, from_s, until_s, step_s, storm_s: storm.at_s, capacity };
        let highest = all.flat_map(|figures| scale.slots(figures)).map(|slot| offered(slot.1));
        let highest = highest.fold(capacity, f64::max);
        scale.most = highest.log10().ceil().max(1.0);
        scale
    }

    /// When each slot begins, and what happened a second in it.
    fn slots(&self, figures: &Figures) -> Vec<(u64, (f64, f64))> {
        let begin = (self.from_s..self.until_s).step_by(usize::try_from(self.step_s).unwrap_or(1));
        let slot = |from_s: u64| {
            let seconds = from_s..(from_s + self.step_s).min(self.until_s);
            let length = (seconds.end - seconds.start) as f64;
            let at = |second: u64| figures.timeline.get(usize::try_from(second).unwrap_or(usize::MAX));
            let sum = |of: fn(&Slot) -> u64| seconds.clone().filter_map(at).map(of).sum::<u64>() as f64;
            (from_s, (sum(|slot| slot.admitted) / length, sum(|slot| slot.refused) / length))
        };
        begin.map(slot).collect()
    }
}

fn offered((admitted, refused): (f64, f64)) -> f64 {
    admitted + refused
}

fn draw<B: DrawingBackend>(report: &Report, canvas: &Canvas<'_, B>) -> Drawn
where
    B::ErrorType: 'static,
{
    let scale = Scale::new(report);
    head(report, canvas)?;
    let (columns, rows) = (4, 4);
    let width = (SIZE.0 - LEFT - RIGHT - (columns - 1) * BETWEEN.0) / columns;
    let height = (SIZE.1 - TOP - BOTTOM - (rows - 1) * BETWEEN.1) / rows;
    for (row, kind) in (0..).zip(Kind::ALL) {
        for (column, wait) in (0..).zip(Wait::ALL) {
            let corner = (LEFT + column * (width + BETWEEN.0), TOP + row * (height + BETWEEN.1));
            let place = Place { corner, size: (width, height), first: column == 0, last: row + 1 == rows };
            if column == 0 {
                let at = (corner.0, corner.1 - 6);
                canvas.text(kind.title(), at, 13, (HPos::Left, VPos::Bottom), false)?;
            }
            let mut shown = report.contestants.iter();
            if let Some(figures) = shown.find(|figures| (figures.limit, figures.wait) == (kind, wait)) {
                panel(figures, &scale, &place, canvas)?;
            }
            if row == 0 {
                let title = match wait {
                    Wait::None => "told no wait",
                    Wait::PeriodEnd => "told the period's end",
                    Wait::Exact => "told the exact wait",
                    Wait::Staggered => "told staggered waits",
                };
                let at = (corner.0 + width / 2, corner.1 - 26);
                canvas.text(title, at, 13, (HPos::Center, VPos::Bottom), false)?;
            }
        }
    }
    let middle = LEFT + (SIZE.0 - LEFT - RIGHT) / 2;
    let label = "seconds since the storm began";
    canvas.text(label, (middle, SIZE.1 - 10), 13, (HPos::Center, VPos::Bottom), false)?;
    let middle = TOP + (SIZE.1 - TOP - BOTTOM) / 2;
    canvas.text("requests/s, logarithmic", (14, middle), 13, (HPos::Center, VPos::Center), true)
}

/// The title and the legend.
fn head<B: DrawingBackend>(report: &Report, canvas: &Canvas<'_, B>) -> Drawn
where
    B::ErrorType: 'static,
{
    let Scenario { seed, traffic, limits, .. } = &report.scenario;
    let title = format!(
        "A retry storm of {} devices against limits of {} requests/s (seed {seed})",
        HumanCount(traffic.devices),
        HumanCount(limits.capacity_per_s)
    );
    canvas.text(&title, (14, 14), 15, (HPos::Left, VPos::Top), false)?;
    let marks = [
        ("offered", Mark::Area(OFFERED)),
        ("admitted", Mark::Line(ADMITTED)),
        ("refused", Mark::Line(REFUSED)),
        ("capacity", Mark::Dashes),
    ];
    (0..).zip(marks).try_for_each(|(at, (name, mark))| canvas.legend(name, mark, (14 + 100 * at, 48)))
}

/// Where a panel stands.
struct Place {
    corner: (i32, i32),
    size: (i32, i32),
    /// Whether it has the labels of its row.
    first: bool,
    /// Whether it has the labels of its column.
    last: bool,
}

fn panel<B: DrawingBackend>(figures: &Figures, scale: &Scale, place: &Place, canvas: &Canvas<'_, B>) -> Drawn
where
    B::ErrorType: 'static,
{
    let (left, top) = (f64::from(place.corner.0), f64::from(place.corner.1));
    let (width, height) = (f64::from(place.size.0), f64::from(place.size.1));
    let (right, bottom) = (left + width, top + height);
    let x = |second: u64| {
        left + width * (second.min(scale.until_s) - scale.from_s) as f64
            / (scale.until_s - scale.from_s) as f64
    };
    // Less than one request a second is at the bottom.
    let y = |per_s: f64| bottom - height * (per_s.max(1.0).log10() / scale.most).min(1.0);

    for power in 0..=pixel(scale.most) {
        let at = y(10_f64.powi(power));
        canvas.level((left, right), at, place.first.then(|| power_of_ten(power)).as_deref())?;
    }
    for second in round_seconds(scale.until_s - scale.storm_s) {
        let at = x(scale.storm_s + second);
        // Half of a label at the very edge would stand in the next panel's.
        let has_label = place.last && at < right - 12.0;
        canvas.tick(at, bottom, has_label.then(|| second.to_string()).as_deref())?;
    }

    let slots = scale.slots(figures);
    let line = |of: fn((f64, f64)) -> f64| {
        slots.iter().flat_map(move |&(from_s, slot)| {
            // A step: what happened in a slot happened in all of it.
            let height = y(of(slot));
            [(x(from_s), height), (x(from_s + scale.step_s), height)]
        })
    };
    canvas.area([(left, bottom)].into_iter().chain(line(offered)).chain([(right, bottom)]), OFFERED)?;
    canvas.line(line(|slot| slot.1), REFUSED, 1)?;
    canvas.line(line(|slot| slot.0), ADMITTED, 1)?;
    let capacity = y(scale.capacity);
    canvas.dashed(&[(left, capacity), (right, capacity)], INK, 1)?;
    canvas.line([(left, bottom), (right, bottom)], INK, 1)
}

/// Round numbers of seconds, three or four of them.
fn round_seconds(length_s: u64) -> Vec<u64> {
    const STEPS_S: [u64; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];
    let step_s = STEPS_S.into_iter().find(|step_s| length_s / step_s <= 4).unwrap_or(2_000);
    (0..=length_s).step_by(usize::try_from(step_s).unwrap_or(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_numbers() {
        assert_eq!(round_seconds(510), [0, 200, 400]);
        assert_eq!(round_seconds(4), [0, 1, 2, 3, 4]);
        assert_eq!(round_seconds(0), [0]);
    }
}
