//! How many keys used how much of their limit at their peak, or more; a curve for each limit, window or rule, and the
//! sentence to take away from it.

use plotters::prelude::{DrawingBackend, RGBColor};
use plotters::style::text_anchor::{HPos, VPos};

use super::{LEFT, MARGIN, RIGHT, WIDTH};
use crate::replay::headroom::Headroom;
use crate::report::drawing::{Canvas, fitting, pixel, power_of_ten, width_of};
use crate::report::svg::{COLOURS, Drawn, INK};

const TITLE: i32 = 30;
const PANEL: i32 = 190;
/// Of the axis under the panel.
const LABELS: i32 = 46;
/// Of a sentence.
const ROW: i32 = 20;

/// How far the axis goes at most.
const PERCENT_MAX: u32 = 200;
/// How far one key stands above none.
const ONE: f64 = 12.0;

pub(super) fn height(headroom: &[Headroom]) -> i32 {
    if headroom.is_empty() {
        return 0;
    }
    TITLE + PANEL + LABELS + i32::try_from(headroom.len()).unwrap_or(0) * ROW
}

pub(super) fn draw<B: DrawingBackend>(
    headroom: &[Headroom],
    kind: &str,
    top: i32,
    canvas: &Canvas<'_, B>,
) -> Drawn
where
    B::ErrorType: 'static,
{
    if headroom.is_empty() {
        return Ok(());
    }
    let title = format!("Headroom: {kind}s whose peak was so high, or higher");
    canvas.text(&title, (MARGIN, top), 14, (HPos::Left, VPos::Top), false)?;
    let scale = Scale::new(headroom, top + TITLE);
    for power in 0..=pixel(scale.powers) {
        let y = scale.y(10_u64.saturating_pow(power.unsigned_abs()));
        canvas.level((scale.left, scale.right), y, Some(&power_of_ten(power)))?;
    }
    let step = if scale.percent_max > 100 { 25 } else { 10 };
    for percent in (0..=scale.percent_max).step_by(step) {
        let label = format!("{percent} %");
        canvas.tick(scale.x(percent), scale.bottom, Some(&label))?;
    }
    for (at, part) in headroom.iter().enumerate().rev() {
        let look = Look::new(at);
        look.line(&scale.curve(&part.peaks_percent), canvas)?;
    }
    let limit = scale.x(100);
    canvas.dashed(&[(limit, scale.top), (limit, scale.bottom)], INK, 1)?;
    canvas.line([(scale.left, scale.bottom), (scale.right, scale.bottom)], INK, 1)?;

    let bottom = pixel(scale.bottom);
    let goes_on = match scale.is_cut {
        true => format!(" (some beyond {PERCENT_MAX} %)"),
        false => String::new(),
    };
    let label = format!("used of the limit at the peak{goes_on}; dashes: the limit");
    let under = (LEFT + (WIDTH - LEFT - RIGHT) / 2, bottom + 40);
    canvas.text(&label, under, 13, (HPos::Center, VPos::Bottom), false)?;
    let middle = (MARGIN, top + TITLE + PANEL / 2);
    canvas.text(&format!("{kind}s, logarithmic"), middle, 13, (HPos::Center, VPos::Center), true)?;
    for (at, part) in headroom.iter().enumerate() {
        let y = bottom + LABELS + ROW / 2 + i32::try_from(at).unwrap_or(0) * ROW;
        let ends = [(f64::from(LEFT), f64::from(y)), (f64::from(LEFT + 24), f64::from(y))];
        Look::new(at).line(&ends, canvas)?;
        let sentence = said(part, WIDTH - RIGHT - LEFT - 32);
        canvas.text(&sentence, (LEFT + 32, y), 13, (HPos::Left, VPos::Center), false)?;
    }
    Ok(())
}

/// The sentence; where it has no room, the name of its rule is cut, and not the share.
fn said(part: &Headroom, room: i32) -> String {
    match part.sentence.strip_prefix(&part.of) {
        Some(rest) => format!("{}{rest}", fitting(&part.of, 13, room - width_of(rest, 13))),
        None => fitting(&part.sentence, 13, room),
    }
}

/// How a curve looks: when colours begin again, curves are dashed.
struct Look {
    colour: RGBColor,
    is_dashed: bool,
}

impl Look {
    fn new(at: usize) -> Self {
        // Red before green, as the strips have it; the lightest are of use in areas alone.
        const ORDER: [usize; 8] = [1, 0, 8, 4, 3, 2, 7, 5];
        Self { colour: COLOURS[ORDER[at % ORDER.len()]], is_dashed: at / ORDER.len() % 2 == 1 }
    }

    fn line<B: DrawingBackend>(&self, points: &[(f64, f64)], canvas: &Canvas<'_, B>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        if self.is_dashed {
            canvas.dashed(points, self.colour, 2)
        } else {
            canvas.line(points.iter().copied(), self.colour, 2)
        }
    }
}

/// Where shares and numbers of keys stand.
struct Scale {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    percent_max: u32,
    /// Whether a key used more than that.
    is_cut: bool,
    /// In powers of ten.
    powers: f64,
}

impl Scale {
    fn new(headroom: &[Headroom], top: i32) -> Self {
        let highest = headroom.iter().map(|part| part.peak_percent).max().unwrap_or(0);
        let keys = headroom.iter().map(|part| part.keys).max().unwrap_or(1).max(1);
        Self {
            left: f64::from(LEFT),
            // Half of the last label needs room.
            right: f64::from(WIDTH - RIGHT - 12),
            top: f64::from(top),
            bottom: f64::from(top + PANEL),
            percent_max: if highest > 100 { PERCENT_MAX } else { 100 },
            is_cut: highest > PERCENT_MAX,
            powers: (keys as f64).log10().ceil().max(1.0),
        }
    }

    fn x(&self, percent: u32) -> f64 {
        let share = f64::from(percent.min(self.percent_max)) / f64::from(self.percent_max);
        self.left + (self.right - self.left) * share
    }

    fn y(&self, keys: u64) -> f64 {
        if keys == 0 {
            return self.bottom;
        }
        self.bottom - ONE - (self.bottom - self.top - ONE) * (keys as f64).log10() / self.powers
    }

    /// From all keys at no use down to none, of peaks in rising order.
    fn curve(&self, peaks_percent: &[u32]) -> Vec<(f64, f64)> {
        let mut left = peaks_percent.len() as u64;
        let mut points = vec![(self.x(0), self.y(left))];
        for same in peaks_percent.chunk_by(|one, other| one == other) {
            let x = self.x(same[0]);
            points.push((x, self.y(left)));
            if same[0] > self.percent_max {
                return points;
            }
            left -= same.len() as u64;
            points.push((x, self.y(left)));
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_falls_from_all_keys_to_none() {
        let peaks = vec![10, 10, 50, 200];
        let scale = Scale::new(&[Headroom::of_rule("a", peaks.clone())], 0);
        assert_eq!((scale.percent_max, scale.is_cut, scale.powers), (200, false, 1.0));
        let curve = scale.curve(&peaks);
        let expected = [(0, 4), (10, 4), (10, 2), (50, 2), (50, 1), (200, 1), (200, 0)];
        assert_eq!(curve, expected.map(|(percent, keys)| (scale.x(percent), scale.y(keys))));
        assert_eq!((scale.y(0), scale.y(10), scale.y(1)), (190.0, 0.0, 178.0));
    }

    #[test]
    fn a_curve_goes_on_past_the_axis() {
        let scale = Scale::new(&[Headroom::of_rule("a", vec![30, 1_813])], 0);
        let curve = scale.curve(&[30, 1_813]);
        assert!(scale.is_cut);
        assert_eq!(curve.last(), Some(&(scale.right, scale.y(1))));
    }
}
