//! wrk, and what it says.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, process};

use crate::Options;
use crate::contestants::USER;

/// What wrk saw in one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) requests: f64,
    pub(crate) per_second: f64,
    pub(crate) p99_us: f64,
}

/// A script that asks as one user after the other and tells what it saw in figures.
pub(crate) struct Script {
    path: PathBuf,
}

impl Script {
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let path = env::temp_dir().join(format!("tidegate-http-bench-{}.lua", process::id()));
        let text = format!(
            "local n = 0\n\
             function request()\n\
             \x20   n = (n + 1) % 10000\n\
             \x20   return wrk.format('GET', wrk.path, {{ ['{USER}'] = 'user-' .. n, ['Host'] = 'localhost', ['X-Original-URI'] = '/' }})\n\
             end\n\
             function done(summary, latency)\n\
             \x20   local e = summary.errors\n\
             \x20   local failed = e.connect + e.read + e.write + e.status + e.timeout\n\
             \x20   print(string.format('SEEN %d %d %d %d', summary.requests, summary.duration, latency:percentile(99), failed))\n\
             end\n"
        );
        fs::File::create(&path)?.write_all(text.as_bytes())?;
        Ok(Self { path })
    }

    /// Asks a server for as long as the options say. Every answer must be a success.
    pub(crate) fn ask(&self, url: &str, options: &Options) -> Result<Seen, Box<dyn Error>> {
        ask(&self.path, url, options).map_err(|error| format!("{url}: {error}").into())
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.path);
    }
}

fn ask(script: &Path, url: &str, options: &Options) -> Result<Seen, Box<dyn Error>> {
    let output = Command::new("wrk")
        .args(["--threads", "1"])
        .args(["--connections", &options.connections.to_string()])
        .args(["--duration", &format!("{}s", options.seconds)])
        .arg("--script")
        .args([script.as_os_str(), url.as_ref()])
        .output()
        .map_err(|error| format!("cannot run wrk (on Debian: apt-get install wrk): {error}"))?;
    let text = String::from_utf8(output.stdout)?;
    let line =
        text.lines().find_map(|line| line.strip_prefix("SEEN ")).ok_or_else(|| format!("wrk said {text}"))?;
    let figures: Vec<f64> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    match figures[..] {
        [_, _, _, failed] if failed > 0.0 => Err(format!("{failed} requests failed or were refused").into()),
        [requests, micros, p99_us, _] => Ok(Seen { requests, per_second: requests / micros * 1e6, p99_us }),
        _ => Err(format!("wrk said {line}").into()),
    }
}
