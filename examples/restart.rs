//! A restart with a snapshot, and one without: who has used up a limit does not get a fresh one.
//!
//! ```console
//! $ cargo run --example restart
//! ```
//!
//! The clock is one that is moved by hand, so that nobody has to wait; with the default clock all is the same.

use std::error::Error;
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use tidegate::{Builder, Clock, Limit, Limiter, Manual, Rate};

/// A request in 10 s on average, 5 at once.
fn builder() -> Builder {
    Limiter::builder(Limit::bucket(Rate::per_minute(6), 5)).max_keys(10_000)
}

/// The clock of a process that starts when it is `unix_secs` after the epoch.
fn started_at(unix_secs: u64) -> Manual {
    Manual::at_unix(Duration::from_secs(unix_secs))
}

/// So many requests of Ada's at once, and what came of them.
fn ask<C: Clock>(limiter: &Limiter<C>, requests: usize) -> String {
    let passed = (0..requests).filter(|_| limiter.allow("ada")).count();
    let wait = limiter.peek("ada").next_after();
    format!("{passed} of {requests} pass; the next in {} s", wait.as_secs())
}

/// To a new file, and then in the last one's place: whoever is interrupted leaves a whole one.
fn save<C: Clock>(limiter: &Limiter<C>, path: &Path) -> Result<u64, Box<dyn Error>> {
    let new = path.with_extension("new");
    let file = File::create(&new)?;
    let keys = limiter.save(&file)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    Ok(keys)
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("tidegate-restart-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let path = folder.join("limiter.snapshot");

    let limiter = builder().clock(started_at(1_000_000)).build()?;
    println!("Ada may do 6 requests a minute, 5 at once.");
    println!("  before the restart      {}", ask(&limiter, 8));
    let keys = save(&limiter, &path)?;
    println!("  saved                   {keys} key in {} bytes", fs::metadata(&path)?.len());
    drop(limiter);

    println!("The process ends, and another one starts 25 s later.");
    let fresh = builder().clock(started_at(1_000_025)).build()?;
    println!("  without the snapshot    {}", ask(&fresh, 8));
    let restored = builder().clock(started_at(1_000_025)).restore(File::open(&path)?)?;
    println!("  with the snapshot       {}", ask(&restored, 8));

    println!("If it cannot be used, it says why.");
    let other = Limiter::builder(Limit::bucket(Rate::per_minute(6), 50)).max_keys(10_000);
    for (what, result) in [
        ("for another limit", other.restore(File::open(&path)?).map(drop)),
        ("cut short", builder().restore(&fs::read(&path)?[..150]).map(drop)),
    ] {
        println!(
            "  {what:<22}  {}",
            result.err().map_or_else(|| "restored".into(), |error| error.to_string())
        );
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}
