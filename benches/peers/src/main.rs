//! tidegate beside its peers: the same keys, the same limits and real clocks, interleaved in one
//! process. `benches/README.md` says how to run it and how to read what it prints.

mod contestants;
mod measure;
mod options;
mod report;
mod workload;

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use options::Options;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tidegate-peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let cores = std::thread::available_parallelism()?.get();
    let workloads: Vec<_> = workload::all(cores)
        .into_iter()
        .filter(|workload| options.only.as_deref().is_none_or(|only| workload.name == only))
        .collect();
    if workloads.is_empty() {
        return Err(format!("no such workload; there are: {}", workload::names(cores)).into());
    }

    let pace = options.pace();
    let start = Instant::now();
    let mut rows = Vec::new();
    report::print_heading(cores);
    for (done, workload) in workloads.iter().enumerate() {
        let left = pace.time_max.saturating_sub(start.elapsed());
        let share = left / u32::try_from(workloads.len() - done)?;
        let measured = measure::workload(workload, &pace, share)?;
        report::print_rows(&measured);
        rows.extend(measured);
    }
    if let Some(path) = &options.json {
        report::write_json(path, &rows)?;
    }
    Ok(())
}
