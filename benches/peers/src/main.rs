//! tidegate beside its peers: the same keys, the same limits and real clocks, interleaved in one
//! process. `benches/README.md` says how to run it and how to read what it prints.

mod contestants;
mod measure;
mod memory;
mod options;
mod report;
mod runner;
mod stats;
mod stream;
mod workload;

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use measure::Filled;
use options::Options;
use workload::Group;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

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
    let mut groups = workload::all(cores, options.quick);
    if let Some(only) = options.only.as_deref() {
        for group in &mut groups {
            group.workloads.retain(|workload| workload.name == only);
        }
        groups.retain(|group| !group.workloads.is_empty());
        if groups.is_empty() {
            return Err(format!("no such workload; there are: {}", workload::names()).into());
        }
    }
    time(&groups, cores, options)
}

/// Times every workload of every group, and reports.
fn time(groups: &[Group], cores: usize, options: &Options) -> Result<(), Box<dyn Error>> {
    let (pace, start) = (options.pace(), Instant::now());
    let (mut rows, mut held, mut remarks) = (Vec::new(), Vec::new(), Vec::new());
    let mut to_do: usize = groups.iter().map(|group| group.workloads.len()).sum();
    report::print_heading(cores);
    for group in groups {
        let (filled, bytes) = Filled::new(group)?;
        held.extend(bytes);
        remarks.extend(filled.remarks());
        for workload in &group.workloads {
            let left = pace.time_max.saturating_sub(start.elapsed());
            let measured = filled.rows(workload, &pace, left / u32::try_from(to_do)?)?;
            to_do -= 1;
            report::print_rows(&measured);
            rows.extend(measured);
        }
    }
    report::print_memory(&held);
    remarks.sort_unstable();
    remarks.dedup();
    report::print_remarks(&remarks);
    if let Some(path) = &options.json {
        report::write_json(path, &rows)?;
    }
    Ok(())
}
