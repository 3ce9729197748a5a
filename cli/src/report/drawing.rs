//! What all drawings but that of a bench are made of: lines, areas, text, axes and legends, in units that are one pixel
//! of an SVG and two of a PNG.

use std::io;

use indicatif::HumanCount;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::svg::{Drawn, GRID, INK};

/// How high labels of axes are.
const LABEL: i32 = 12;

/// Draws a document of that size.
///
/// # Errors
/// What the drawing library reports.
pub(super) fn svg(
    (width, height): (i32, i32),
    draw: impl FnOnce(&Canvas<'_, SVGBackend<'_>>) -> Drawn,
) -> io::Result<String> {
    let mut document = String::new();
    let size = (width.unsigned_abs(), height.unsigned_abs());
    {
        let root = SVGBackend::with_string(&mut document, size).into_drawing_area();
        drawn(&Canvas { root: &root, scale: 1 }, draw)
            .map_err(|error| io::Error::other(error.to_string()))?;
    }
    Ok(document)
}

/// Draws a PNG file, each unit two pixels wide.
///
/// # Errors
/// What the drawing library reports.
#[cfg(feature = "png")]
pub(super) fn png(
    (width, height): (i32, i32),
    draw: impl FnOnce(&Canvas<'_, super::pixels::Pixels<'_>>) -> Drawn,
) -> io::Result<Vec<u8>> {
    const SCALE: i32 = 2;
    let size = ((width * SCALE).unsigned_abs(), (height * SCALE).unsigned_abs());
    super::pixels::png(size, |root| drawn(&Canvas { root, scale: SCALE }, draw))
}

fn drawn<'a, B: DrawingBackend>(canvas: &Canvas<'a, B>, draw: impl FnOnce(&Canvas<'a, B>) -> Drawn) -> Drawn
where
    B::ErrorType: 'static,
{
    canvas.root.fill(&WHITE)?;
    draw(canvas)?;
    canvas.root.present()?;
    Ok(())
}

/// Where it is drawn, and how large a unit is.
pub(super) struct Canvas<'a, B: DrawingBackend> {
    root: &'a DrawingArea<B, Shift>,
    scale: i32,
}

/// What stands for something in a legend.
#[derive(Clone, Copy)]
pub(super) enum Mark {
    Area(RGBColor),
    Line(RGBColor),
    Dashes,
}

impl<B: DrawingBackend> Canvas<'_, B>
where
    B::ErrorType: 'static,
{
    fn scaled(&self, (x, y): (f64, f64)) -> (i32, i32) {
        let scale = f64::from(self.scale);
        (pixel(x * scale), pixel(y * scale))
    }

    pub(super) fn line(
        &self,
        points: impl IntoIterator<Item = (f64, f64)>,
        colour: RGBColor,
        wide: u32,
    ) -> Drawn {
        let points = straight(points.into_iter().map(|point| self.scaled(point)));
        let style = colour.stroke_width(wide * self.scale.unsigned_abs());
        self.root.draw(&PathElement::new(points, style))?;
        Ok(())
    }

    /// A line of dashes, each as long as the gaps and a little longer.
    pub(super) fn dashed(&self, points: &[(f64, f64)], colour: RGBColor, wide: u32) -> Drawn {
        dashes(points).into_iter().try_for_each(|dash| self.line(dash, colour, wide))
    }

    pub(super) fn area(&self, points: impl IntoIterator<Item = (f64, f64)>, colour: RGBColor) -> Drawn {
        let points = straight(points.into_iter().map(|point| self.scaled(point)));
        self.root.draw(&Polygon::new(points, colour.filled()))?;
        Ok(())
    }

    /// A rectangle between two corners.
    pub(super) fn block(
        &self,
        (left, top): (f64, f64),
        (right, bottom): (f64, f64),
        colour: RGBColor,
    ) -> Drawn {
        self.area([(left, top), (right, top), (right, bottom), (left, bottom)], colour)
    }

    pub(super) fn text(
        &self,
        text: &str,
        at: (i32, i32),
        height: i32,
        anchor: (HPos, VPos),
        upright: bool,
    ) -> Drawn {
        let font = FontDesc::from(("sans-serif", height * self.scale));
        let font = if upright { font.transform(FontTransform::Rotate270) } else { font };
        let style = font.color(&INK).pos(Pos::new(anchor.0, anchor.1));
        self.root.draw(&Text::new(text, (at.0 * self.scale, at.1 * self.scale), style))?;
        Ok(())
    }

    /// A level of an upright axis, from its left to its right, with its label if it has one.
    pub(super) fn level(&self, (left, right): (f64, f64), y: f64, label: Option<&str>) -> Drawn {
        self.line([(left, y), (right, y)], GRID, 1)?;
        label.map_or(Ok(()), |label| {
            self.text(label, (pixel(left) - 6, pixel(y)), LABEL, (HPos::Right, VPos::Center), false)
        })
    }

    /// A tick of a lying axis, with its label if it has one.
    pub(super) fn tick(&self, x: f64, y: f64, label: Option<&str>) -> Drawn {
        self.line([(x, y), (x, y + 4.0)], INK, 1)?;
        label.map_or(Ok(()), |label| {
            self.text(label, (pixel(x), pixel(y) + 7), LABEL, (HPos::Center, VPos::Top), false)
        })
    }

    /// A mark, and what it stands for; the mark begins there, its middle at that height.
    pub(super) fn legend(&self, name: &str, mark: Mark, (x, y): (i32, i32)) -> Drawn {
        let (left, middle) = (f64::from(x), f64::from(y));
        let ends = [(left, middle), (left + 18.0, middle)];
        match mark {
            Mark::Area(colour) => self.block((left, middle - 6.0), (left + 18.0, middle + 6.0), colour)?,
            Mark::Line(colour) => self.line(ends, colour, 2)?,
            Mark::Dashes => self.dashed(&ends, INK, 1)?,
        }
        self.text(name, (x + 24, y), 13, (HPos::Left, VPos::Center), false)
    }
}

/// Without the points in the middle of a horizontal line, which nobody sees.
fn straight(points: impl Iterator<Item = (i32, i32)>) -> Vec<(i32, i32)> {
    let mut kept: Vec<(i32, i32)> = Vec::new();
    for point in points {
        if let [.., (_, first), last] = &mut kept[..]
            && *first == last.1
            && last.1 == point.1
        {
            *last = point;
        } else {
            kept.push(point);
        }
    }
    kept
}

/// Dashes of 4 units with gaps of 3 along straight lines, each line beginning with a dash.
fn dashes(points: &[(f64, f64)]) -> Vec<[(f64, f64); 2]> {
    let (dash, period) = (4.0, 7.0);
    let mut dashes = Vec::new();
    for ends in points.windows(2) {
        let (from, to) = (ends[0], ends[1]);
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let at = |along: f64| {
            let share = (along / length).min(1.0);
            (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share)
        };
        let mut along = 0.0;
        while along < length {
            dashes.push([at(along), at(along + dash)]);
            along += period;
        }
    }
    dashes
}

#[expect(clippy::cast_possible_truncation, reason = "a picture is some thousand pixels wide")]
pub(super) fn pixel(at: f64) -> i32 {
    at.round() as i32
}

/// A power of ten as an axis has it.
pub(super) fn power_of_ten(power: i32) -> String {
    match power {
        0 => "1".to_owned(),
        1 => "10".to_owned(),
        2 => "100".to_owned(),
        3..=5 => format!("{}k", 10_u32.pow((power - 3).unsigned_abs())),
        _ => format!("1e{power}"),
    }
}

/// A round number as an axis has it, in at most six letters.
pub(super) fn round_number(number: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")];
    for (from, unit) in UNITS {
        let size = if unit == "k" { 1_000 } else { from };
        if number >= from && number.is_multiple_of(size) {
            return format!("{}{unit}", HumanCount(number / size));
        }
    }
    HumanCount(number).to_string()
}

/// Of 1, 2, 5, 10, 20 and so on the least that parts `most` into so many steps at most.
pub(super) fn round_step(most: u64, steps_max: u64) -> u64 {
    let powers = (0..20).map_while(|power| 10_u64.checked_pow(power));
    let steps = powers.flat_map(|power| [1, 2, 5].map(|digit| power.saturating_mul(digit)));
    steps.into_iter().find(|step| most / step <= steps_max).unwrap_or(u64::MAX)
}

/// About how wide a text is at most: of a typeface as wide as DejaVu Sans, which is among the widest.
pub(super) fn width_of(text: &str, height: i32) -> i32 {
    let letter = |letter: char| match letter {
        '-' | 'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '(' | ')' | '/' | 'f'
        | 't' | 'r' => 0.42,
        'm' | 'w' | 'W' | 'M' | '@' | '%' | '…' => 1.0,
        'A'..='Z' | '_' | '=' | '+' | '~' | '<' | '>' | '#' => 0.84,
        letter if letter.is_ascii() => 0.64,
        _ => 1.0,
    };
    pixel(text.chars().map(letter).sum::<f64>() * f64::from(height)) + 1
}

/// `text`, or its beginning if it is wider than that.
pub(super) fn fitting(text: &str, height: i32, width_max: i32) -> String {
    if width_of(text, height) <= width_max {
        return text.to_owned();
    }
    let mut shown = text.to_owned();
    while shown.pop().is_some() {
        let cut = format!("{}…", shown.trim_end());
        if width_of(&cut, height) <= width_max {
            return cut;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn horizontal_lines_have_two_ends() {
        let steps = [(0, 5), (1, 5), (1, 5), (2, 5), (2, 9), (3, 9), (3, 5)];
        assert_eq!(straight(steps.into_iter()), [(0, 5), (2, 5), (2, 9), (3, 9), (3, 5)]);
        assert_eq!(straight([(0, 1), (4, 1)].into_iter()), [(0, 1), (4, 1)]);
    }

    #[test]
    fn dashes_follow_a_line_and_end_with_it() {
        let across = dashes(&[(0.0, 2.0), (9.0, 2.0), (9.0, 5.0)]);
        assert_eq!(across, [[(0.0, 2.0), (4.0, 2.0)], [(7.0, 2.0), (9.0, 2.0)], [(9.0, 2.0), (9.0, 5.0)]]);
    }

    #[test]
    fn numbers_of_axes_are_round_and_short() {
        let shown: Vec<String> = (0..=6).map(power_of_ten).collect();
        assert_eq!(shown, ["1", "10", "100", "1k", "10k", "100k", "1e6"]);
        let shown = [0, 5, 2_000, 50_000, 200_000, 1_000_000, 5_000_000_000].map(round_number);
        assert_eq!(shown, ["0", "5", "2,000", "50k", "200k", "1M", "5G"]);
        let steps = [(0, 3), (3, 3), (4, 3), (170, 3), (357, 3), (u64::MAX, 2)];
        let steps = steps.map(|(most, steps)| round_step(most, steps));
        assert_eq!(steps, [1, 1, 2, 50, 100, 10_000_000_000_000_000_000]);
    }

    #[test]
    fn names_are_cut_to_their_room() {
        assert_eq!(fitting("203.0.113.17", 12, 200), "203.0.113.17");
        let long = "w".repeat(300);
        let cut = fitting(&long, 12, 100);
        assert!(cut.ends_with('…') && width_of(&cut, 12) <= 100 && cut.len() > 5, "{cut}");
        assert_eq!(fitting("long", 12, 0), "");
    }
}
