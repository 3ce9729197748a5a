//! The rounds: in each, everybody is asked once; who goes first rotates.

use std::error::Error;

use crate::Options;
use crate::contestants::Contestant;
use crate::server::Server;
use crate::wrk::Script;

/// What one contestant did in one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// Processor time of the server for each request, in nanoseconds.
    pub(crate) cpu_ns: f64,
    pub(crate) per_second: f64,
    pub(crate) p99_us: f64,
}

/// For each contestant, in their order, its rounds.
pub(crate) type Rounds = Vec<(Contestant, Vec<Figures>)>;

pub(crate) fn run(options: &Options) -> Result<Rounds, Box<dyn Error>> {
    let script = Script::new()?;
    let servers: Vec<Server> = Contestant::ALL.into_iter().map(Server::start).collect::<Result<_, _>>()?;
    let mut rounds: Rounds = servers.iter().map(|server| (server.contestant, Vec::new())).collect();
    // The first round warms up and is not kept.
    for round in 0..=options.rounds as usize {
        for turn in 0..servers.len() {
            let at = (round + turn) % servers.len();
            let before = servers[at].cpu_ns()?;
            let seen = script.ask(&servers[at].url, options)?;
            let cpu_ns = (servers[at].cpu_ns()? - before) / seen.requests;
            if round > 0 {
                rounds[at].1.push(Figures { cpu_ns, per_second: seen.per_second, p99_us: seen.p99_us });
            }
        }
    }
    Ok(rounds)
}
