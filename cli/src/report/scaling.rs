//! A bench as a page of text: for each workload what it does with one thread, two, four and so on.

use std::fmt::Write;

use anstyle::Style;

use super::bars;
use super::flow::flow;
use super::text::{DIM, INDENT, PASSED, REFUSED, TITLE, counted, indented};
use crate::bench::figures::{Figures, Measured, Point};

/// What stands over the columns of figures.
const COLUMNS: [&str; 4] = ["threads", "M checks/s", "ns/check", "× one"];

/// What is put between two columns.
const BETWEEN: &str = "  ";

/// Bars shorter than this are left out: there is nothing to see in them.
const BAR_MIN: usize = 4;
/// Longer ones say no more.
const BAR_MAX: usize = 32;

/// The whole report, `width` columns wide at most where the words allow it.
pub fn scaling(figures: &Figures, width: usize) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = head(&mut out, figures, width);
    for measured in &figures.workloads {
        let _ = workload(&mut out, measured, width);
    }
    out
}

/// The most threads that were measured.
fn threads_max(measured: &Measured) -> usize {
    measured.scaling.last().map_or(1, |point| point.threads)
}

fn head(out: &mut String, figures: &Figures, width: usize) -> std::fmt::Result {
    let title = format!("{TITLE}tidegate {}{TITLE:#}", figures.tidegate);
    let (os, arch) = (figures.os, figures.arch);
    let cores = counted(figures.cores as u64, "core");
    flow(
        out,
        &[&title, &format!("on {cores}, {arch}, {os};"), &counted(figures.keys.into(), "key")],
        0,
        2,
        width,
    )?;
    let rounds = format!("{DIM}medians of {};", counted(figures.rounds as u64, "round"));
    indented(out, &[&rounds, &format!("every answer was asserted{DIM:#}")], width)?;
    write!(out, "\n{INDENT}{DIM}{}", COLUMNS.join(BETWEEN))?;
    let most = figures.workloads.iter().map(threads_max).max().unwrap_or(1);
    let full = format!("full bar: {most} × or more");
    if most > 1 && full.chars().count() <= bar_cells(width) {
        write!(out, "{BETWEEN}{full}")?;
    }
    writeln!(out, "{DIM:#}")
}

/// How much room there is for a bar.
fn bar_cells(width: usize) -> usize {
    let figures: usize = COLUMNS.iter().map(|name| name.chars().count() + BETWEEN.len()).sum();
    let room = width.saturating_sub(2 * INDENT.len() + figures);
    if room < BAR_MIN { 0 } else { room.min(BAR_MAX) }
}

fn workload(out: &mut String, measured: &Measured, width: usize) -> std::fmt::Result {
    let title = format!("{TITLE}{}:{TITLE:#}", measured.title);
    flow(out, &[&title, measured.what], 0, INDENT.len(), width)?;
    let style = if measured.answer == "refused" { REFUSED } else { PASSED };
    let full = threads_max(measured) as f64;
    for point in &measured.scaling {
        line(out, point, full, style, width)?;
    }
    Ok(())
}

fn line(out: &mut String, point: &Point, full: f64, style: Style, width: usize) -> std::fmt::Result {
    let figures = [
        point.threads.to_string(),
        shown(point.checks_per_s / 1e6),
        shown(point.ns_per_check),
        format!("{:.2}", point.times_one_thread),
    ];
    out.push_str(INDENT);
    for (at, (figure, name)) in figures.iter().zip(COLUMNS).enumerate() {
        let between = if at == 0 { "" } else { BETWEEN };
        let columns = name.chars().count();
        write!(out, "{between}{figure:>columns$}")?;
    }
    let bar = bars::lying(thousandths(point.times_one_thread), thousandths(full), bar_cells(width));
    if bar.is_empty() { writeln!(out) } else { writeln!(out, "{BETWEEN}{style}{bar}{style:#}") }
}

/// A figure with the places that mean something.
fn shown(figure: f64) -> String {
    let places = match figure {
        ..1.0 => 3,
        ..10.0 => 2,
        ..1000.0 => 1,
        _ => 0,
    };
    format!("{figure:.places$}")
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // ratios are positive and small
fn thousandths(ratio: f64) -> u64 {
    (ratio * 1e3).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::made_up;

    fn plain(figures: &Figures, width: usize) -> String {
        anstream::adapter::strip_str(&scaling(figures, width)).to_string()
    }

    #[test]
    fn a_page_has_a_line_for_each_number_of_threads() {
        let expected = "\
tidegate 0.0.0 on 4 cores, x86_64, linux; 1,000,000 keys
  medians of 12 rounds; every answer was asserted

  threads  M checks/s  ns/check  × one  full bar: 4 × or more
One hot key: for a test
        1        50.0      20.0   1.00  ████████
        2        49.5      40.4   0.99  ███████▉
        4        48.5      82.5   0.97  ███████▊
Many keys: for a test
        1        10.0     100.0   1.00  ████████
        2        18.0     111.1   1.80  ██████████████▍
        4        34.0     117.6   3.40  ███████████████████████████▎
";
        let page = plain(&made_up(&[1, 2, 4]), 80);
        assert!(page.starts_with(expected), "{page}");
        assert!(
            page.ends_with("        4       400.0      10.0   4.00  ████████████████████████████████\n"),
            "{page}"
        );
    }

    #[test]
    fn one_thread_has_no_bars_to_speak_of() {
        let page = plain(&made_up(&[1]), 80);
        assert!(!page.contains("full bar"), "{page}");
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        for width in [40, 60, 80, 132] {
            let figures = made_up(&[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024]);
            for line in plain(&figures, width).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn figures_have_the_places_that_mean_something() {
        let shown: Vec<String> = [0.012_34, 1.234, 12.34, 123.4, 1_234.5].map(shown).into();
        assert_eq!(shown, ["0.012", "1.23", "12.3", "123.4", "1234"]);
    }
}
