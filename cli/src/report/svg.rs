//! Checks a second drawn over threads: a bench, with one line for each workload, or panels of lines of any other kind.
//!
//! Both scales are logarithmic: a workload that is ten times as fast does not press the others flat, and perfect
//! scaling is a straight line of the same slope for all.

use std::io;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::text::counted;
use crate::bench::figures::Figures;

/// Of one panel.
const SIZE_PIXELS: (u32, u32) = (860, 500);

/// Room for the names of the lines, beside their ends.
const NAMES_PIXELS: u32 = 165;
const NAME_HEIGHT_PIXELS: i32 = 18;
/// How far down in its panel a name may stand.
const NAME_LOWEST_PIXELS: i32 = 480;

/// Told apart by most eyes, in print too (after Okabe and Ito).
pub(super) const COLOURS: [RGBColor; 9] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(186, 85, 150),
    RGBColor(190, 138, 0),
    RGBColor(60, 165, 225),
    RGBColor(128, 128, 128),
    RGBColor(110, 70, 30),
    RGBColor(20, 20, 20),
];
pub(super) const INK: RGBColor = RGBColor(70, 70, 70);
pub(super) const GRID: RGBColor = RGBColor(222, 222, 222);

/// How far the axes go on past the outermost figures, as a share of them.
const AIR: f64 = 0.05;

/// A drawing of its own, below the others.
#[derive(Clone, Debug)]
pub struct Panel<'a> {
    /// What stands over it.
    pub title: String,
    /// All of the same numbers of threads, in the order of their colours.
    pub lines: Vec<Line<'a>>,
}

/// What one thing does with more and more threads.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// What stands at its end.
    pub name: &'a str,
    /// Threads, and checks a second of all of them together.
    pub points: Vec<(usize, f64)>,
}

/// Draws the figures as an SVG document.
///
/// # Errors
///
/// What the drawing library reports.
pub fn svg(figures: &Figures) -> io::Result<String> {
    let title = format!(
        "tidegate {}: {}, {}, {}",
        figures.tidegate,
        counted(figures.cores as u64, "core"),
        figures.arch,
        counted(figures.keys.into(), "key")
    );
    let lines = figures.workloads.iter().map(|measured| Line {
        name: measured.title,
        points: measured.scaling.iter().map(|point| (point.threads, point.checks_per_s)).collect(),
    });
    panels_svg(&[Panel { title, lines: lines.collect() }])
}

/// Draws panels as an SVG document, one below the other.
///
/// # Errors
///
/// What the drawing library reports.
pub fn panels_svg(panels: &[Panel<'_>]) -> io::Result<String> {
    let mut document = String::new();
    draw(panels, &mut document).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(document)
}

pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(panels: &[Panel<'_>], document: &mut String) -> Drawn {
    let size = (SIZE_PIXELS.0, SIZE_PIXELS.1 * u32::try_from(panels.len())?);
    let root = SVGBackend::with_string(document, size).into_drawing_area();
    root.fill(&WHITE)?;
    for (panel, area) in panels.iter().zip(root.split_evenly((panels.len(), 1))) {
        draw_panel(panel, &area)?;
    }
    root.present()?;
    Ok(())
}

fn draw_panel(panel: &Panel<'_>, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
    area.draw(&Text::new(panel.title.as_str(), (24, 20), font(17).color(&INK)))?;
    let points = || panel.lines.iter().flat_map(|line| &line.points).map(place);
    let (xs, ys) = (span(points().map(|(x, _)| x)), span(points().map(|(_, y)| y)));
    let threads = panel.lines.first().map_or(&[][..], |line| &line.points);
    let threads: Vec<f64> = threads.iter().map(|point| place(point).0).collect();
    let mut chart = ChartBuilder::on(area)
        .margin_top(56)
        .margin_left(16)
        .margin_bottom(12)
        .margin_right(NAMES_PIXELS)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(Axis::new(xs, threads), Axis::new(ys, round_values(ys)))?;
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .axis_style(GRID)
        .label_style(font(13).color(&INK))
        .axis_desc_style(font(14).color(&INK))
        .x_desc("threads, logarithmic")
        .y_desc("M checks/s, logarithmic")
        .x_label_formatter(&|x| format!("{:.0}", x.exp2()))
        .y_label_formatter(&|y| format!("{}", (10_f64.powf(*y) * 1e3).round() / 1e3))
        .draw()?;

    let mut ends = Vec::new();
    for (line, colour) in panel.lines.iter().zip(COLOURS.iter().cycle()) {
        chart.draw_series(LineSeries::new(line.points.iter().map(place), colour.stroke_width(2)))?;
        let dots = line.points.iter().map(|point| Circle::new(place(point), 4, colour.filled()));
        chart.draw_series(dots)?;
        let last = line.points.last().map_or((xs.1, ys.1), place);
        ends.push((chart.backend_coord(&last).1 - area.get_base_pixel().1, line.name, colour));
    }
    for (y, name, colour) in apart(ends) {
        let style = font(14).color(colour).pos(Pos::new(HPos::Left, VPos::Center));
        let x = i32::try_from(SIZE_PIXELS.0 - NAMES_PIXELS).unwrap_or(0) + 8;
        area.draw(&Text::new(name, (x, y), style))?;
    }
    Ok(())
}

pub(super) fn font(pixels: i32) -> FontDesc<'static> {
    ("sans-serif", pixels).into()
}

/// Where a point stands: its threads in powers of two, its millions of checks a second in powers of ten.
fn place(&(threads, checks_per_s): &(usize, f64)) -> (f64, f64) {
    ((threads as f64).log2(), (checks_per_s / 1e6).log10())
}

/// From the least to the most, and a little further at both ends; never nothing.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) = values
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
    let air = ((most - least) * AIR).max(0.1);
    (least - air, most + air)
}

/// Places of 1, 2, 5, 10, 20 and so on between two places; of powers of ten alone where those are many.
fn round_values((least, most): (f64, f64)) -> Vec<f64> {
    let digits: &[f64] = if most - least > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    #[allow(clippy::cast_possible_truncation)] // powers of ten that a float can have
    let powers = least.floor() as i32..=most.ceil() as i32;
    let all = powers.flat_map(|power| digits.iter().map(move |digit| f64::from(power) + digit.log10()));
    all.filter(|place| (least..=most).contains(place)).collect()
}

/// An axis with labels at places of our choice. (The library's own, `WithKeyPoints`, cannot be labelled where the
/// places are fractions.)
struct Axis {
    places: RangedCoordf64,
    labelled: Vec<f64>,
}

impl Axis {
    fn new((least, most): (f64, f64), labelled: Vec<f64>) -> Self {
        Axis { places: (least..most).into(), labelled }
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, pixels: (i32, i32)) -> i32 {
        self.places.map(value, pixels)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.labelled.clone() }
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.places.range()
    }
}

type End<'a> = (i32, &'a str, &'a RGBColor);

/// The ends of lines from top to bottom, those that would write over each other moved down, or up where there is no
/// more room below.
fn apart(mut ends: Vec<End<'_>>) -> Vec<End<'_>> {
    ends.sort_by_key(|(y, ..)| *y);
    for at in 1..ends.len() {
        ends[at].0 = ends[at].0.max(ends[at - 1].0 + NAME_HEIGHT_PIXELS);
    }
    let mut lowest = NAME_LOWEST_PIXELS;
    for (y, ..) in ends.iter_mut().rev() {
        *y = lowest.min(*y);
        lowest = *y - NAME_HEIGHT_PIXELS;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::made_up;

    #[test]
    fn values_on_the_axis_are_round() {
        let shown = |least: f64, most: f64| -> Vec<f64> {
            let places = round_values((least.log10(), most.log10()));
            places.into_iter().map(|place| 10_f64.powf(place).round()).collect()
        };
        assert_eq!(shown(3.0, 120.0), [5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(shown(9.0, 11_000.0), [10.0, 100.0, 1_000.0, 10_000.0]);
    }

    #[test]
    fn every_workload_is_a_line_and_its_name_in_one_colour() {
        for threads in [&[1][..], &[1, 2], &[1, 2, 4, 6], &[1, 2, 4, 8, 16, 32, 64, 128]] {
            let figures = made_up(threads);
            let document = svg(&figures).unwrap();
            let document = roxmltree::Document::parse(&document).unwrap();
            let named =
                |name: &'static str| document.descendants().filter(move |node| node.has_tag_name(name));
            for measured in &figures.workloads {
                let title =
                    |text: &roxmltree::Node<'_, '_>| text.text().map(str::trim) == Some(measured.title);
                let name = named("text").find(title).expect(measured.title);
                let colour = name.attribute("fill");
                let lines: Vec<_> =
                    named("polyline").filter(|line| line.attribute("stroke") == colour).collect();
                assert_eq!(lines.len(), 1, "{}", measured.title);
                let places = lines[0].attribute("points").unwrap().split_whitespace().count();
                let dots = named("circle").filter(|dot| dot.attribute("fill") == colour).count();
                assert_eq!((places, dots), (threads.len(), threads.len()), "{}", measured.title);
            }
            let labels: Vec<&str> = named("text").filter_map(|text| text.text()).map(str::trim).collect();
            assert!(
                threads.iter().all(|threads| labels.contains(&threads.to_string().as_str())),
                "{labels:?}"
            );
        }
    }

    #[test]
    fn names_do_not_write_over_each_other() {
        let mut figures = made_up(&[1, 2]);
        let first = figures.workloads[0].clone();
        figures.workloads.iter_mut().for_each(|measured| measured.scaling.clone_from(&first.scaling));
        let document = svg(&figures).unwrap();
        let document = roxmltree::Document::parse(&document).unwrap();
        let titled = |text: &str| figures.workloads.iter().any(|measured| measured.title == text.trim());
        let names = document.descendants().filter(|node| node.text().is_some_and(titled));
        let mut heights: Vec<i32> = names.filter_map(|name| name.attribute("y")?.parse().ok()).collect();
        heights.sort_unstable();
        heights.dedup();
        assert_eq!(heights.len(), 4);
        assert!(heights.windows(2).all(|two| two[1] - two[0] >= NAME_HEIGHT_PIXELS));
    }

    #[test]
    fn panels_stand_below_each_other_and_every_line_has_a_name_in_its_panel() {
        let names = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
        let panel = |slow: f64| Panel {
            title: "for a test".to_owned(),
            lines: names.map(|name| Line { name, points: vec![(1, 2e6), (2, slow)] }).into(),
        };
        let document = panels_svg(&[panel(1.0), panel(4e6)]).unwrap();
        let document = roxmltree::Document::parse(&document).unwrap();
        let named = document.descendants().filter(|node| {
            node.text().is_some_and(|text| names.contains(&text.trim())) && node.has_tag_name("text")
        });
        let mut heights: Vec<i32> = named.filter_map(|name| name.attribute("y")?.parse().ok()).collect();
        heights.sort_unstable();
        let height = i32::try_from(SIZE_PIXELS.1).unwrap();
        assert_eq!(heights.len(), 2 * names.len());
        assert!(heights[8] < height && height < heights[9] && heights[17] < 2 * height, "{heights:?}");
        assert!(heights.windows(2).all(|two| two[1] - two[0] >= NAME_HEIGHT_PIXELS), "{heights:?}");
    }
}
