//! What a limit costs an HTTP server: axum's "hello" with and without a layer, and `tidegate serve` beside an empty
//! handler, each in a process of its own, asked by wrk in turns. `benches/README.md` says how to run it and how to read it.

mod contestants;
mod report;
mod rounds;
mod server;
mod wrk;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;

use contestants::Contestant;

/// Measures what layers and `tidegate serve` cost a server, by wrk on loopback.
#[derive(Debug, Parser)]
#[command(name = "tidegate-http-bench")]
struct Options {
    /// Rounds in which each contestant is asked once
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// How long wrk asks one of them in each round, in seconds
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,

    /// Connections that wrk keeps open
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    connections: u32,

    /// Instead: be the server of this contestant, until standard input ends
    #[arg(long, value_name = "CONTESTANT", hide = true)]
    server: Option<Contestant>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tidegate-http-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    if let Some(contestant) = options.server {
        return contestants::serve(contestant);
    }
    let rounds = rounds::run(options)?;
    report::print(&rounds, options);
    Ok(())
}
