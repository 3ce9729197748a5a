//! The timeline as a chart: passed and refused, each at its own scale, over one axis of time.
//!
//! Two panels, not one stacked bar: a refusal in a thousand would be no pixel of a stack, and without
//! colour the two would run together.

use std::fmt::Write;

use anstyle::Style;
use indicatif::HumanCount;
use jiff::Timestamp;

use super::bars;
use super::text::{DIM, INDENT, PASSED, REFUSED};
use crate::replay::timeline::{Slot, Timeline};

const PASSED_ROWS: usize = 6;
const REFUSED_ROWS: usize = 4;

/// How far labels stand from each other at least, in columns.
const LABEL_COLUMNS: usize = 10;

/// How wide a slot is at most: a log of one second is no wall.
const SLOT_COLUMNS_MAX: usize = 8;

const DAY_S: u64 = 86_400;

/// The chart, `width` columns wide at most.
pub(super) fn chart(timeline: &Timeline, width: usize) -> String {
    let mut out = String::new();
    let slots = &timeline.slots;
    let repeat = ((width - 2 * INDENT.len()) / slots.len().max(1)).clamp(1, SLOT_COLUMNS_MAX);
    let panel = |out: &mut String, name: &str, of: fn(&Slot) -> u64, rows: usize, style: Style| {
        let values: Vec<u64> = slots.iter().map(of).collect();
        let most = values.iter().copied().max().unwrap_or(0);
        if most == 0 {
            let _ = writeln!(out, "{INDENT}{style}{name}{style:#}{DIM}: none{DIM:#}");
        } else {
            let step = length_in_words(timeline.step_s);
            let most = HumanCount(most);
            let _ = writeln!(out, "{INDENT}{style}{name}{style:#}{DIM}, at most {most} in {step}{DIM:#}");
            let wide: Vec<u64> =
                values.iter().flat_map(|value| std::iter::repeat_n(*value, repeat)).collect();
            for row in bars::standing(&wide, rows) {
                let _ = writeln!(out, "{INDENT}{style}{}{style:#}", row.trim_end());
            }
        }
    };
    panel(&mut out, "passed", |slot| slot.passed, PASSED_ROWS, PASSED);
    panel(&mut out, "refused", |slot| slot.refused, REFUSED_ROWS, REFUSED);
    let (axis, labels) = axis(timeline, repeat);
    let _ = writeln!(out, "{INDENT}{DIM}{axis}{DIM:#}");
    let _ = writeln!(out, "{INDENT}{DIM}{labels}{DIM:#}");
    out
}

/// The axis with its ticks, and the labels under them. Round times are labelled, and the first slot too,
/// if that leaves room for the first round time.
fn axis(timeline: &Timeline, repeat: usize) -> (String, String) {
    let columns = timeline.slots.len() * repeat;
    let every_s = label_step_s(timeline.step_s, LABEL_COLUMNS.div_ceil(repeat) as u64);
    let label_of = |slot: usize| {
        let at_s = timeline.start_unix_s + slot as u64 * timeline.step_s;
        (label(at_s, every_s), at_s.is_multiple_of(every_s))
    };
    let mut shown: Vec<(usize, String)> = Vec::new();
    let mut free_from = 0;
    for slot in 0..timeline.slots.len() {
        let column = slot * repeat;
        let (label, round) = label_of(slot);
        if round && column >= free_from && (slot == 0 || column + label.len() <= columns) {
            free_from = column + label.len() + 1;
            shown.push((column, label));
        }
    }
    let first = label_of(0).0;
    if columns > 0 && shown.first().is_none_or(|(column, _)| *column > first.len()) {
        shown.insert(0, (0, first));
    }
    let mut axis = vec!['─'; columns];
    let mut labels = String::new();
    for (column, label) in shown {
        axis[column] = '┬';
        labels.extend(std::iter::repeat_n(' ', column - labels.len()));
        labels.push_str(&label);
    }
    (axis.into_iter().collect(), labels)
}

/// How much time lies between two labels that are so many slots apart at least: a multiple of the step that a clock or
/// calendar has.
pub(super) fn label_step_s(step_s: u64, slots_min: u64) -> u64 {
    const ROUND_S: [u64; 16] =
        [5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, DAY_S];
    let wide_enough = |every_s: u64| every_s.is_multiple_of(step_s) && every_s / step_s >= slots_min;
    let rounds = ROUND_S.into_iter();
    let days = (1..=slots_min.max(1)).map(|count| step_s.max(DAY_S).saturating_mul(count));
    rounds.chain(days).find(|every_s| wide_enough(*every_s)).unwrap_or(u64::MAX)
}

pub(super) fn label(at_s: u64, every_s: u64) -> String {
    let format = match every_s {
        0..60 => "%H:%M:%S",
        60..DAY_S if at_s.is_multiple_of(DAY_S) => "%d %b",
        60..DAY_S if !at_s.is_multiple_of(60) => "%H:%M:%S",
        60..DAY_S => "%H:%M",
        // From a quarter of a year on, days tell little.
        _ if every_s < 90 * DAY_S => "%d %b",
        _ => "%b %Y",
    };
    let second = i64::try_from(at_s).unwrap_or(i64::MAX);
    Timestamp::from_second(second).map_or_else(|_| "?".to_owned(), |at| at.strftime(format).to_string())
}

/// `120` as `2 min`.
pub(super) fn length_in_words(length_s: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(DAY_S, "day"), (3_600, "h"), (60, "min"), (1, "s")];
    for (unit_s, name) in UNITS {
        if length_s.is_multiple_of(unit_s) {
            let plural = if name == "day" && length_s > DAY_S { "s" } else { "" };
            return format!("{} {name}{plural}", length_s / unit_s);
        }
    }
    format!("{length_s} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 March 2026, 09:00 UTC.
    const NINE: u64 = 1_772_442_000;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn timeline(step_s: u64, counts: &[(u64, u64)]) -> Timeline {
        let slots = counts.iter().map(|(passed, refused)| Slot { passed: *passed, refused: *refused });
        Timeline { start_unix_s: NINE, step_s, slots: slots.collect(), outside: 0 }
    }

    #[test]
    fn a_chart_has_two_panels_over_one_axis() {
        let mut counts = vec![(4, 0); 36];
        counts[20] = (8, 2_000);
        let shown = plain(&chart(&timeline(300, &counts), 40));
        let expected = "  passed, at most 8 in 5 min
                      █
                      █
                      █
  ████████████████████████████████████
  ████████████████████████████████████
  ████████████████████████████████████
  refused, at most 2,000 in 5 min
                      █
                      █
                      █
                      █
  ┬───────────┬───────────┬───────────
  09:00       10:00       11:00
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn nothing_refused_leaves_no_panel() {
        let shown = plain(&chart(&timeline(1, &[(1, 0)]), 80));
        assert!(shown.contains("refused: none\n"), "{shown}");
        assert_eq!(shown.lines().count(), 2 + PASSED_ROWS + 2, "{shown}");
    }

    #[test]
    fn a_chart_of_one_slot_is_narrow_and_has_its_time() {
        let mut timeline = timeline(1, &[(1, 0)]);
        timeline.start_unix_s += 3;
        let shown = plain(&chart(&timeline, 80));
        assert!(shown.contains("\n  ████████\n"), "{shown}");
        assert!(shown.ends_with("  ┬───────\n  09:00:03\n"), "{shown}");
    }

    #[test]
    fn the_first_slot_has_a_label_if_there_is_room() {
        let axis_from = |start_s: u64, step_s: u64, slots: usize| {
            let mut timeline = timeline(step_s, &vec![(1, 1); slots]);
            timeline.start_unix_s = start_s;
            axis(&timeline, 1)
        };
        let expected = |axis: &str, labels: &str| (axis.to_owned(), labels.to_owned());
        assert_eq!(axis_from(NINE + 13, 1, 14), expected("┬─────────────", "09:00:13"));
        assert_eq!(axis_from(NINE + 11, 1, 19), expected("┬────────┬─────────", "09:00:11 09:00:20"));
        assert_eq!(axis_from(NINE + 2_100, 300, 16), expected("─────┬──────────", "     10:00"));
        assert_eq!(axis_from(NINE + 20, 20, 14), expected("┬─────────────", "09:00:20"));
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        for width in [40, 80, 120, 132] {
            for slots in [1, 2, 7, width / 2 - 2, width - 4] {
                for step_s in [1, 2, 3, 20, 120, 900, 3_600, 14_400, 7_200, DAY_S, 7 * DAY_S, 448 * DAY_S] {
                    let timeline = timeline(step_s, &vec![(3, 1); slots]);
                    for line in plain(&chart(&timeline, width)).lines() {
                        assert!(line.chars().count() <= width, "{width} {slots} {step_s}: {line}");
                    }
                }
            }
        }
    }

    #[test]
    fn labels_are_round() {
        assert_eq!(label_step_s(1, 10), 10);
        assert_eq!(label_step_s(120, 10), 1_800);
        assert_eq!(label_step_s(180, 10), 1_800);
        assert_eq!(label_step_s(7_200, 10), DAY_S);
        assert_eq!(label_step_s(7_200, 5), 43_200);
        assert_eq!(label_step_s(21_600, 5), 2 * DAY_S);
        assert_eq!(label_step_s(DAY_S, 5), 5 * DAY_S);
        assert_eq!(label(NINE, 3_600), "09:00");
        assert_eq!(label(NINE + 15 * 3_600, 3_600), "03 Mar");
        assert_eq!(label(NINE, 100 * DAY_S), "Mar 2026");
    }
}
