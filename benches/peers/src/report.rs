//! What is printed, and written for other programs.

use std::error::Error;
use std::path::Path;

use serde_json::json;

use crate::contestants::REFERENCE;
use crate::decisions::Verdict;
use crate::measure::{Held, Row};

pub(crate) fn print_heading(cores: usize) {
    println!(
        "{cores} cores; ns: one check on each thread, median of the rounds; ratio: median over the rounds"
    );
    println!("of this ÷ {REFERENCE}'s; spread: between its quartiles\n");
    println!(
        "{:<12} {:>7}  {:<21} {:>9} {:>7} {:>7}",
        "workload", "threads", "contestant", "ns", "ratio", "spread"
    );
}

pub(crate) fn print_rows(rows: &[Row]) {
    for row in rows {
        print!(
            "{:<12} {:>7}  {:<21} {:>9.1} {:>7.2} {:>7.2}",
            row.workload, row.threads, row.contestant, row.ns, row.ratio, row.spread
        );
        match &row.note {
            Some(note) => println!("  {note}"),
            None => println!(),
        }
    }
}

/// A line for each contestant, a column for each workload that it was filled for.
pub(crate) fn print_memory(held: &[Held]) {
    if held.is_empty() {
        return;
    }
    println!("\nbytes allocated for each key, once filled\n");
    let workloads = in_order(held.iter().map(|held| held.workload));
    print!("{:<21}", "contestant");
    for workload in &workloads {
        print!(" {workload:>12}");
    }
    println!();
    for contestant in in_order(held.iter().map(|held| held.contestant)) {
        print!("{contestant:<21}");
        for workload in &workloads {
            let cell = held.iter().find(|held| held.contestant == contestant && held.workload == *workload);
            match cell {
                Some(held) => print!(" {:>12.1}", held.bytes_per_key),
                None => print!(" {:>12}", "–"),
            }
        }
        println!();
    }
}

pub(crate) fn print_verdicts(threads: usize, verdicts: &[Verdict]) {
    println!("\nadmitted ÷ due, {threads} threads; a window's edge or a race may show only in some runs\n");
    println!("{:<21} {:>9} {:>9} {:>9}", "contestant", "one key", "many keys", "edge");
    for verdict in verdicts {
        let Verdict { contestant, one_key, many_keys, edge, .. } = verdict;
        print!("{contestant:<21} {one_key:>9.6} {many_keys:>9.6} {edge:>9.6}");
        println!("{}", if verdict.admits_too_many() { "  admits too many" } else { "" });
    }
}

pub(crate) fn print_remarks(remarks: &[(&'static str, &'static str)]) {
    println!();
    for (contestant, remark) in remarks {
        println!("{contestant}: {remark}");
    }
}

/// Each of them once, in the order of their first places.
pub(crate) fn in_order<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

/// A table for each workload: a line for each contestant, a column for each number of threads.
pub(crate) fn print_scaling(rows: &[Row]) {
    for workload in in_order(rows.iter().map(|row| row.workload)) {
        println!("\n{workload}: million checks a second of all threads together, by threads\n");
        let of_it = || rows.iter().filter(|row| row.workload == workload);
        print!("{:<21}", "contestant");
        for threads in in_order(of_it().map(|row| row.threads)) {
            print!(" {threads:>8}");
        }
        println!();
        for contestant in in_order(of_it().map(|row| row.contestant)) {
            print!("{contestant:<21}");
            for row in of_it().filter(|row| row.contestant == contestant) {
                print!(" {:>8.1}", row.m_checks_per_s());
            }
            println!();
        }
    }
}

/// Writes `{"cores", "rows": [{"workload", "threads", "contestant", "ns", "ratio", "spread", "m_checks_per_s"}, …]}`.
pub(crate) fn write_json(path: &Path, cores: usize, rows: &[Row]) -> Result<(), Box<dyn Error>> {
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
                "m_checks_per_s": row.m_checks_per_s(),
            })
        })
        .collect();
    let text = serde_json::to_string_pretty(&json!({ "cores": cores, "rows": rows }))?;
    std::fs::write(path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(())
}
