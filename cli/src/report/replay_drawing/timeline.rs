//! Requests over time: what passed above a line, what was refused below it, both on one scale.

use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, VPos};

use super::{LEFT, MARGIN, RIGHT, WIDTH, looks};
use crate::replay::strips::{Counts, Part, Strip, Strips};
use crate::report::chart::{label, label_step_s, length_in_words};
use crate::report::drawing::{Canvas, Mark, fitting, pixel, round_number, round_step, width_of};
use crate::report::svg::{Drawn, INK};

/// Of the legend.
const LEGEND: i32 = 22;
/// Of a strip's title, and of the air above a strip without one.
const TITLE: i32 = 24;
const AIR: i32 = 6;
/// Of the labels under the last strip.
const LABELS: i32 = 44;
/// Of all strips together, if they have room in it.
const STRIPS: i32 = 440;
const STRIP_MIN: i32 = 56;
const STRIP_MAX: i32 = 220;

/// How wide a slot is at most: one second of a log is no wall.
const SLOT_MAX: f64 = 48.0;
/// How far labels of times stand from each other at least.
const LABEL_APART: f64 = 84.0;
/// How far levels stand from each other at least.
const LEVEL_APART: f64 = 20.0;

/// Strips in which anything happened.
fn shown(strips: &Strips) -> Vec<(&Strip, Counts)> {
    let totals = strips.strips.iter().map(|strip| (strip, strip.total()));
    totals.filter(|(_, total)| total.iter().any(|count| *count > 0)).collect()
}

fn strip_height(strips: usize) -> i32 {
    (STRIPS / i32::try_from(strips.max(1)).unwrap_or(i32::MAX)).clamp(STRIP_MIN, STRIP_MAX)
}

fn above(shown: &[(&Strip, Counts)]) -> i32 {
    if shown.iter().any(|(strip, _)| !strip.title.is_empty()) { TITLE } else { AIR }
}

pub(super) fn height(strips: &Strips) -> i32 {
    let shown = shown(strips);
    let each = strip_height(shown.len()) + above(&shown);
    LEGEND + i32::try_from(shown.len()).unwrap_or(0) * each + LABELS
}

pub(super) fn draw<B: DrawingBackend>(strips: &Strips, top: i32, canvas: &Canvas<'_, B>) -> Drawn
where
    B::ErrorType: 'static,
{
    let shown = shown(strips);
    let mut x = MARGIN;
    for part in Part::ALL.into_iter().filter(|part| shown.iter().any(|(_, total)| total[*part as usize] > 0))
    {
        let (name, colour) = looks(part);
        canvas.legend(name, Mark::Area(colour), (x, top + 8))?;
        x += 118;
    }
    let axis = Axis::new(strips);
    let height = strip_height(shown.len());
    let (first, above) = (top + LEGEND, above(&shown));
    let mut bottom = first;
    for (at, (strip, total)) in (0..).zip(&shown) {
        let top = first + at * (height + above) + above;
        bottom = top + height;
        draw_title(strip, total, top, canvas)?;
        draw_strip(strip, &axis, (top, bottom), canvas)?;
    }
    for (x, label) in axis.labels() {
        canvas.tick(x, f64::from(bottom), Some(&label))?;
    }
    let step = length_in_words(strips.axis.step_s);
    let under = (LEFT + (WIDTH - LEFT - RIGHT) / 2, bottom + LABELS - 2);
    let time = format!("time, UTC; {step} a step");
    canvas.text(&time, under, 13, (HPos::Center, VPos::Bottom), false)?;
    let middle = (MARGIN, (first + above + bottom) / 2);
    let per_step = format!("requests in {step}");
    canvas.text(&per_step, middle, 13, (HPos::Center, VPos::Center), true)
}

/// The name of a rule, and how much of it passed.
fn draw_title<B: DrawingBackend>(strip: &Strip, total: &Counts, top: i32, canvas: &Canvas<'_, B>) -> Drawn
where
    B::ErrorType: 'static,
{
    if strip.title.is_empty() {
        return Ok(());
    }
    let part = |part: Part| total[part as usize];
    let watched = part(Part::Watched);
    let refused = match watched {
        0 => format!("{} refused", indicatif::HumanCount(part(Part::Refused))),
        watched => format!("{} would be refused", indicatif::HumanCount(watched)),
    };
    let counts = format!("{} passed, {refused}", indicatif::HumanCount(part(Part::Passed)));
    let room = WIDTH - LEFT - RIGHT - width_of(&counts, 12) - 12;
    let name = fitting(&strip.title, 13, room);
    canvas.text(&name, (LEFT, top - 5), 13, (HPos::Left, VPos::Bottom), false)?;
    canvas.text(&counts, (WIDTH - RIGHT, top - 5), 12, (HPos::Right, VPos::Bottom), false)
}

/// Where times stand.
struct Axis<'a> {
    strips: &'a Strips,
    /// How wide a slot is.
    slot: f64,
}

impl<'a> Axis<'a> {
    fn new(strips: &'a Strips) -> Self {
        let slots = strips.axis.slots.len().max(1) as f64;
        Self { strips, slot: (f64::from(WIDTH - LEFT - RIGHT) / slots).min(SLOT_MAX) }
    }

    fn x(&self, slot: usize) -> f64 {
        f64::from(LEFT) + self.slot * slot as f64
    }

    fn right(&self) -> f64 {
        self.x(self.strips.axis.slots.len())
    }

    /// Round times, and the first one too where there is room for it.
    fn labels(&self) -> Vec<(f64, String)> {
        let axis = &self.strips.axis;
        let apart = pixel((LABEL_APART / self.slot).ceil());
        let every_s = label_step_s(axis.step_s, apart.unsigned_abs().into());
        let mut labels = Vec::new();
        for slot in 0..axis.slots.len() {
            let at_s = axis.start_unix_s + slot as u64 * axis.step_s;
            let is_round = at_s.is_multiple_of(every_s);
            if is_round || slot == 0 {
                labels.push((self.x(slot), label(at_s, every_s), is_round));
            }
        }
        if let [first, second, ..] = &labels[..]
            && !first.2
            && second.0 - first.0 < LABEL_APART
        {
            labels.remove(0);
        }
        let fits = |x: f64, label: &str| pixel(x) + width_of(label, 12) / 2 <= WIDTH;
        labels.into_iter().filter(|(x, label, _)| fits(*x, label)).map(|(x, label, _)| (x, label)).collect()
    }
}

fn draw_strip<B: DrawingBackend>(
    strip: &Strip,
    axis: &Axis<'_>,
    (top, bottom): (i32, i32),
    canvas: &Canvas<'_, B>,
) -> Drawn
where
    B::ErrorType: 'static,
{
    let most = |of: fn(&Counts) -> u64| strip.slots.iter().map(of).max().unwrap_or(0);
    let (above, below) = (most(|slot| slot[0]), most(|slot| slot[1..].iter().sum()));
    // What is not 0 shows: a part is a pixel high at least, so that some of them need room beside the scale's.
    let air = Part::ALL.len() as f64;
    let unit = (f64::from(bottom - top) - air) / (above + below).max(1) as f64;
    let zero = f64::from(bottom) - if below > 0 { (unit * below as f64).max(1.0) + air / 2.0 } else { 0.0 };
    let ends = (f64::from(LEFT), axis.right());

    let steps_max = pixel(unit * above.max(below) as f64 / LEVEL_APART).max(1);
    let step = round_step(above.max(below), steps_max.unsigned_abs().into());
    let levels = (1..).map_while(|count| step.checked_mul(count));
    for number in levels.take_while(|number| *number <= above.max(below)) {
        let label = round_number(number);
        for (most, y) in [(above, zero - unit * number as f64), (below, zero + unit * number as f64)] {
            if number <= most {
                canvas.level(ends, y, Some(&label))?;
            }
        }
    }
    canvas.level(ends, zero, Some("0"))?;

    let high = |count: u64| if count == 0 { 0.0 } else { (unit * count as f64).max(1.0) };
    let area = |outline: Vec<f64>, part: Part| {
        let steps = outline.iter().enumerate().flat_map(|(at, y)| [(axis.x(at), *y), (axis.x(at + 1), *y)]);
        canvas.area([(ends.0, zero)].into_iter().chain(steps).chain([(ends.1, zero)]), looks(part).1)
    };
    if above > 0 {
        area(strip.slots.iter().map(|slot| zero - high(slot[0])).collect(), Part::Passed)?;
    }
    // The undermost first, each over the one before: what is left of it is its share.
    for last in (1..Part::ALL.len()).rev() {
        if strip.slots.iter().any(|slot| slot[last] > 0) {
            let depth = |slot: &Counts| slot[1..=last].iter().map(|count| high(*count)).sum::<f64>();
            area(strip.slots.iter().map(|slot| zero + depth(slot)).collect(), Part::ALL[last])?;
        }
    }
    canvas.line([(ends.0, zero), (ends.1, zero)], INK, 1)
}
