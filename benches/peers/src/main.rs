//! tidegate beside its peers: the same keys, the same limits and real clocks, interleaved in one
//! process. `benches/README.md` says how to run it and how to read what it prints.

mod contestants;
mod count;
mod decisions;
mod measure;
mod memory;
mod options;
mod report;
mod runner;
mod scaling;
mod stream;
mod workload;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;

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

/// What `--only` calls the check of the decisions, which is no workload.
const DECISIONS: &str = "decisions";

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let cores = std::thread::available_parallelism()?.get();
    let only = options.only.as_deref();
    if let Some(contestant) = &options.count {
        return count::count(&chosen(workload::all(cores, false), only)?, contestant, options.checks);
    }
    if options.scaling {
        return scaling::scaling(cores, options);
    }
    if only != Some(DECISIONS) {
        time(&chosen(workload::all(cores, options.quick), only)?, cores, options)?;
    }
    if only.is_none_or(|only| only == DECISIONS) {
        let verdicts = decisions::verdicts(cores)?;
        report::print_verdicts(cores, &verdicts);
        decisions::assert_ours(&verdicts)?;
    }
    Ok(())
}

/// The workloads of this name, or all.
fn chosen(mut groups: Vec<Group>, only: Option<&str>) -> Result<Vec<Group>, Box<dyn Error>> {
    if let Some(only) = only {
        for group in &mut groups {
            group.workloads.retain(|workload| workload.name == only);
        }
        groups.retain(|group| !group.workloads.is_empty());
    }
    if groups.is_empty() {
        return Err(format!("no such workload; there are: {}, {DECISIONS}", workload::names()).into());
    }
    Ok(groups)
}

/// Times every workload of every group, and reports.
fn time(groups: &[Group], cores: usize, options: &Options) -> Result<(), Box<dyn Error>> {
    let measured = measure::all(groups, cores, &options.pace())?;
    report::print_memory(&measured.held);
    report::print_remarks(&measured.remarks);
    if let Some(path) = &options.json {
        report::write_json(path, cores, &measured.rows)?;
    }
    Ok(())
}
