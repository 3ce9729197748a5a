//! What everybody does with more and more threads, as tables and as a drawing.

use std::error::Error;

use tidegate_cli::bench::doubling;
use tidegate_cli::report::{Line, Panel, panels_svg};

use crate::measure::{self, Row};
use crate::options::Options;
use crate::report;
use crate::workload;

/// Times the workloads of [`workload::scaling`] and reports.
pub(crate) fn scaling(cores: usize, options: &Options) -> Result<(), Box<dyn Error>> {
    let groups = workload::scaling(&doubling(cores));
    let measured = measure::all(&groups, cores, &options.pace())?;
    report::print_scaling(&measured.rows);
    report::print_remarks(&measured.remarks);
    if let Some(path) = &options.json {
        report::write_json(path, cores, &measured.rows)?;
    }
    if let Some(path) = &options.svg {
        let drawing = panels_svg(&panels(&measured.rows, cores))?;
        std::fs::write(path, drawing).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// One for each workload.
fn panels(rows: &[Row], cores: usize) -> Vec<Panel<'static>> {
    let panel = |workload| {
        let of_it = || rows.iter().filter(move |row| row.workload == workload);
        let lines = report::in_order(of_it().map(|row| row.contestant)).into_iter().map(|name| Line {
            name,
            points: of_it()
                .filter(|row| row.contestant == name)
                .map(|row| (row.threads, row.m_checks_per_s() * 1e6))
                .collect(),
        });
        let keys = if workload == "hot" { "one key" } else { "a million keys" };
        let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
        let title = format!("{workload}: {keys}, all pass; {cores} cores, {arch}, {os}");
        Panel { title, lines: lines.collect() }
    };
    report::in_order(rows.iter().map(|row| row.workload)).into_iter().map(panel).collect()
}
