//! What is printed, and written for other programs.

use std::error::Error;
use std::path::Path;

use serde_json::json;

use crate::measure::Row;

pub(crate) fn print_heading(cores: usize) {
    println!("{cores} cores; ns: one check on each thread, median of the rounds;");
    println!("ratio: median over the rounds of this ÷ tidegate's; spread: between its quartiles\n");
    println!(
        "{:<12} {:>7}  {:<16} {:>9} {:>7} {:>7}",
        "workload", "threads", "contestant", "ns", "ratio", "spread"
    );
}

pub(crate) fn print_rows(rows: &[Row]) {
    for row in rows {
        println!(
            "{:<12} {:>7}  {:<16} {:>9.1} {:>7.2} {:>7.2}",
            row.workload, row.threads, row.contestant, row.ns, row.ratio, row.spread
        );
    }
}

/// Writes `{"rows": [{"workload", "threads", "contestant", "ns", "ratio", "spread"}, …]}`.
pub(crate) fn write_json(path: &Path, rows: &[Row]) -> Result<(), Box<dyn Error>> {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({
                "workload": row.workload,
                "threads": row.threads,
                "contestant": row.contestant,
                "ns": row.ns,
                "ratio": row.ratio,
                "spread": row.spread,
            })
        })
        .collect();
    let text = serde_json::to_string_pretty(&json!({ "rows": rows }))?;
    std::fs::write(path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(())
}
