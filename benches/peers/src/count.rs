//! One contestant's checks and nothing else, for whoever counts instructions.

use std::error::Error;

use crate::contestants;
use crate::stream::{STREAM_LEN, Stream};
use crate::workload::{Answers, Group, Setup};

/// Any will do, as long as it stays.
const SEED: u64 = 1;

/// Builds and fills a contestant for the first of `groups`, and has it make so many `checks` of the keys of the group's
/// first workload, all in the one function that rounds are timed in.
pub(crate) fn count(groups: &[Group], contestant: &str, checks: usize) -> Result<(), Box<dyn Error>> {
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
        let stream = Stream::with_len(checks.min(STREAM_LEN), workload.order, setup.keys, 0)?;
        let (mut admitted, mut left) = (0, checks);
        while left > 0 {
            let part = stream.part(0, left.min(STREAM_LEN));
            admitted += runner.alone(part);
            left -= part.len();
        }
        let right = match group.answers {
            Answers::Pass => admitted == checks as u64,
            Answers::Refuse => admitted == 0,
            Answers::Any => true,
        };
        if !right {
            return Err(format!("{contestant} admitted {admitted} of {checks} checks").into());
        }
        println!("checks: {checks}");
        return Ok(());
    }
    Err(format!("no such contestant to count; there are: {}", names.join(", ")).into())
}
