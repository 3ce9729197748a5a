//! A replay drawn: requests over time by what became of them, a strip for each rule ([`timeline`]); the keys refused most
//! ([`bars`]); and how many keys came how near to their limit ([`curves`]).
//!
//! The drawing is 800 units wide and as high as it needs to be.

mod bars;
mod curves;
mod timeline;

use std::io;

use plotters::prelude::{DrawingBackend, RGBColor};
use plotters::style::text_anchor::{HPos, VPos};

use super::drawing::{self, Canvas, fitting};
use super::policy::named;
use super::svg::{COLOURS, Drawn};
use super::text::{between, counted, percent};
use crate::replay::headroom::Headroom;
use crate::replay::policy::summary::PolicySummary;
use crate::replay::strips::{Part, Strips};
use crate::replay::summary::{Span, Summary};

/// In units of the drawing, as are all lengths here.
const WIDTH: i32 = 800;
const LEFT: i32 = 66;
const RIGHT: i32 = 14;
const MARGIN: i32 = 14;
/// Of the title and the line under it.
const HEAD: i32 = 58;
/// Between the sections.
const BETWEEN: i32 = 26;

/// The most keys that are drawn as bars.
const BARS_MAX: usize = 12;

/// A replay as it is drawn.
pub struct Picture<'a> {
    title: String,
    about: String,
    strips: &'a Strips,
    keys: Keys,
    headroom: &'a [Headroom],
}

/// The keys refused most.
struct Keys {
    bars: Vec<Bar>,
    /// How many were refused at all.
    refused: u64,
    /// What they are called.
    kind: &'static str,
}

/// One key.
struct Bar {
    /// The rule of a policy; nothing of a single limit.
    rule: String,
    name: String,
    requests: u64,
    refused: Vec<(Part, u64)>,
}

impl Bar {
    fn total(&self) -> u64 {
        self.refused.iter().map(|(_, count)| count).sum()
    }
}

impl<'a> Picture<'a> {
    /// Of a replay with one limit.
    pub fn of_limit(summary: &'a Summary) -> Self {
        let bars = summary.top.iter().map(|client| {
            let by = client.refused_by;
            Bar {
                rule: String::new(),
                name: client.client.clone(),
                requests: client.passed + client.refused,
                refused: vec![
                    (Part::Burst, by.burst),
                    (Part::Sustain, by.sustain),
                    (Part::Both, by.both),
                    (Part::Refused, by.limit),
                    (Part::NoRoom, by.full),
                ],
            }
        });
        let (passed, refused) = (summary.passed, summary.refused);
        Self {
            title: format!("{} on {}", summary.limit, summary.source),
            about: about(&counted(summary.clients, "client"), passed, refused, summary.span),
            strips: &summary.strips,
            keys: Keys {
                bars: bars.take(BARS_MAX).collect(),
                refused: summary.clients_refused,
                kind: "client",
            },
            headroom: &summary.headroom,
        }
    }

    /// Of a replay with a policy.
    pub fn of_policy(summary: &'a PolicySummary) -> Self {
        let bars = summary.top.iter().map(|key| Bar {
            rule: super::policy::rule_name(&key.rule, key.shadow),
            name: key.key.clone(),
            requests: key.passed + key.refused,
            refused: vec![(if key.shadow { Part::Watched } else { Part::Refused }, key.refused)],
        });
        let (totals, span) = (&summary.totals, summary.about.span);
        let rules = counted(summary.rules.len() as u64, "rule");
        Self {
            title: format!("{} on {}", named(totals), summary.about.source),
            about: about(&rules, totals.allowed, totals.refused, span),
            strips: &summary.strips,
            keys: Keys { bars: bars.take(BARS_MAX).collect(), refused: summary.keys_refused, kind: "key" },
            headroom: &summary.headroom,
        }
    }

    fn height(&self) -> i32 {
        let sections =
            [timeline::height(self.strips), bars::height(&self.keys), curves::height(self.headroom)];
        HEAD + sections.iter().map(|height| height + BETWEEN).sum::<i32>()
    }

    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<'_, B>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        for (text, height, y) in [(&self.title, 15, 12), (&self.about, 12, 35)] {
            let text = fitting(text, height, WIDTH - 2 * MARGIN);
            canvas.text(&text, (MARGIN, y), height, (HPos::Left, VPos::Top), false)?;
        }
        let mut top = HEAD;
        timeline::draw(self.strips, top, canvas)?;
        top += timeline::height(self.strips) + BETWEEN;
        bars::draw(&self.keys, top, canvas)?;
        top += bars::height(&self.keys) + BETWEEN;
        curves::draw(self.headroom, self.keys.kind, top, canvas)
    }
}

/// Draws a replay as an SVG document.
///
/// # Errors
/// What the drawing library reports.
pub fn svg(picture: &Picture<'_>) -> io::Result<String> {
    drawing::svg((WIDTH, picture.height()), |canvas| picture.draw(canvas))
}

/// Draws a replay as a PNG file, each unit two pixels wide.
///
/// # Errors
/// What the drawing library reports.
#[cfg(feature = "png")]
pub fn png(picture: &Picture<'_>) -> io::Result<Vec<u8>> {
    drawing::png((WIDTH, picture.height()), |canvas| picture.draw(canvas))
}

fn about(who: &str, passed: u64, refused: u64, span: Option<Span>) -> String {
    let requests = passed + refused;
    let share = percent(refused, requests);
    let when = span.map_or_else(String::new, |span| format!(", {}", between(span)));
    format!("{}, {share} refused; {who}{when}", counted(requests, "request"))
}

/// What a part is called, and its colour.
fn looks(part: Part) -> (&'static str, RGBColor) {
    match part {
        Part::Passed => ("passed", COLOURS[5]),
        Part::Refused => ("refused", COLOURS[1]),
        Part::Burst => ("burst only", COLOURS[1]),
        Part::Sustain => ("sustain only", COLOURS[0]),
        Part::Both => ("both windows", COLOURS[8]),
        Part::NoRoom => ("no room", COLOURS[6]),
        Part::Watched => ("only watched", COLOURS[6]),
    }
}

#[cfg(test)]
mod tests;
