//! The process of one contestant.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::{env, fs, process};

use crate::contestants::{Contestant, ONE_RULE, TWO_MORE, USER};

pub(crate) struct Server {
    pub(crate) contestant: Contestant,
    pub(crate) url: String,
    child: Child,
}

impl Server {
    /// Starts it, and returns when it listens.
    pub(crate) fn start(contestant: Contestant) -> Result<Self, Box<dyn Error>> {
        let mut command = if contestant == Contestant::Serve { command()? } else { hello(contestant)? };
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let port = loop {
            let line = lines.next().ok_or_else(|| format!("{} did not start", contestant.title()))??;
            // The last number of the first line that has one after a colon, or is one.
            if let Ok(port) = line.rsplit(':').next().unwrap_or("").trim().parse::<u16>() {
                break port;
            }
        };
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { contestant, url: format!("http://127.0.0.1:{port}{}", contestant.path()), child })
    }

    /// The processor time that its threads have taken, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> Result<f64, Box<dyn Error>> {
        let mut sum = 0.0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let spent = fs::read_to_string(task?.path().join("schedstat"))?;
            sum += spent.split(' ').next().unwrap_or("").parse::<f64>()?;
        }
        Ok(sum)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn hello(contestant: Contestant) -> Result<Command, Box<dyn Error>> {
    let name = clap::ValueEnum::to_possible_value(&contestant).ok_or("no name")?;
    let mut command = Command::new(env::current_exe()?);
    command.args(["--server", name.get_name()]);
    Ok(command)
}

/// `tidegate serve`, the command that was built beside this bench.
fn command() -> Result<Command, Box<dyn Error>> {
    let policy = env::temp_dir().join(format!("tidegate-http-bench-{}.toml", process::id()));
    fs::write(&policy, format!("{ONE_RULE}{TWO_MORE}"))?;
    let mut command = Command::new(env::current_exe()?.with_file_name("tidegate"));
    command.arg("serve").arg("--policy").arg(policy);
    command.args(["--listen", "127.0.0.1:0", "--map", &format!("user={USER}")]);
    Ok(command)
}
