//! One contestant's checks and nothing else, for whoever counts instructions.

use std::error::Error;

use crate::contestants;
use crate::stream::Stream;
use crate::workload::{Answers, Group, Setup};

/// Checks that are made: so many that what comes once does not show, so few that a simulated processor is
/// through in seconds.
const CHECKS: usize = 400_000;

/// Any will do, as long as it stays.
const SEED: u64 = 1;

/// Builds and fills a contestant for the first of `groups`, and has it check the keys of the group's first workload,
/// all in the one function that rounds are timed in. Prints how many.
pub(crate) fn count(groups: &[Group], contestant: &str) -> Result<(), Box<dyn Error>> {
    let group = groups.first().ok_or("no workload")?;
    let workload = group.workloads.first().ok_or("a group without a workload")?;
    let setup = Setup { seed: Some(SEED), ..group.setup };
    let _awake = contestants::keep_awake()?;
    let mut names = Vec::new();
    for entry in contestants::for_count() {
        let runner = entry(&setup)?;
        if runner.name() != contestant {
            names.push(runner.name());
            continue;
        }
        runner.fill(&setup)?;
        let stream = Stream::with_len(CHECKS, workload.order, setup.keys, 0)?;
        let admitted = runner.alone(stream.whole());
        let right = match group.answers {
            Answers::Pass => admitted == CHECKS as u64,
            Answers::Refuse => admitted == 0,
            Answers::Any => true,
        };
        if !right {
            return Err(format!("{contestant} admitted {admitted} of {CHECKS} checks").into());
        }
        println!("checks: {CHECKS}");
        return Ok(());
    }
    Err(format!("no such contestant to count; there are: {}", names.join(", ")).into())
}
