//! A client of an API that has a limit: it waits for its turn instead of being refused.
//!
//! ```console
//! $ cargo run --example outbound
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate::{ConfigError, Limit, Limiter, Rate, SingleLimiter};
use tokio::task::JoinSet;
use tokio::time::sleep;

const PER_SECOND: u64 = 20;
/// What the API takes at once. The client leaves it one, for calls that bunch on their way.
const API_BURST: u64 = 6;
const CLIENT_BURST: u64 = API_BURST - 1;
const CALLS: u64 = 40;
/// Each so manieth call is a batch, and counts as a whole burst.
const BATCH_EACH: u64 = 10;

/// The other side: it answers in 20 ms, or with 429.
struct Api {
    limiter: SingleLimiter,
}

impl Api {
    fn new() -> Result<Self, ConfigError> {
        let limit = Limit::bucket(Rate::per_second(PER_SECOND), API_BURST);
        Ok(Self { limiter: SingleLimiter::builder(limit).leases(false).build()? })
    }

    async fn call(&self, cost: u64) -> u16 {
        sleep(Duration::from_millis(20)).await;
        if self.limiter.check_n(cost).is_ok() { 200 } else { 429 }
    }
}

fn cost(call: u64) -> u64 {
    if call.is_multiple_of(BATCH_EACH) { CLIENT_BURST } else { 1 }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("An API takes {PER_SECOND} calls a second and {API_BURST} at once.");
    println!("{CALLS} calls, each tenth a batch that counts as {CLIENT_BURST}:");
    let refused = all_at_once().await?;
    println!("  all at once   {:2} answered, {refused:2} refused", CALLS - refused);
    in_turn().await?;
    in_a_hurry().await?;
    Ok(())
}

async fn all_at_once() -> Result<u64, ConfigError> {
    let api = Arc::new(Api::new()?);
    let mut calls = JoinSet::new();
    for call in 1..=CALLS {
        let api = Arc::clone(&api);
        calls.spawn(async move { api.call(cost(call)).await });
    }
    Ok(calls.join_all().await.into_iter().map(|status| u64::from(status == 429)).sum())
}

/// One limiter for all tasks of the client; a key for each API that it calls.
fn client() -> Result<Limiter, ConfigError> {
    Limiter::builder(Limit::bucket(Rate::per_second(PER_SECOND), CLIENT_BURST)).max_keys(100).build()
}

async fn in_turn() -> Result<(), Box<dyn std::error::Error>> {
    let (api, limiter) = (Arc::new(Api::new()?), Arc::new(client()?));
    let start = Instant::now();
    let mut calls = JoinSet::new();
    for call in 1..=CALLS {
        let (api, limiter) = (Arc::clone(&api), Arc::clone(&limiter));
        calls.spawn(async move {
            limiter.acquire_n("api.example", cost(call)).await?;
            let sent = start.elapsed();
            Ok::<_, tidegate::Denied>((sent, call, api.call(cost(call)).await))
        });
    }
    let mut answers = calls.join_all().await.into_iter().collect::<Result<Vec<_>, _>>()?;
    answers.sort_unstable();
    let refused = answers.iter().filter(|(.., status)| *status == 429).count() as u64;
    let tokens: u64 = (1..=CALLS).map(cost).sum();
    let ideal = Duration::from_secs(tokens - CLIENT_BURST) / u32::try_from(PER_SECOND)?;
    let last = answers.last().map_or(Duration::ZERO, |(sent, ..)| *sent);
    println!("  each in turn  {:2} answered, {refused:2} refused", CALLS - refused);
    println!("    the last was sent after {last:.2?}; its tokens take {ideal:.2?} to come");
    for (sent, call, _) in answers.iter().filter(|(_, call, _)| call.is_multiple_of(BATCH_EACH / 2)) {
        let bar = "·".repeat(usize::try_from(sent.as_millis() / 50)?);
        println!(
            "    {:>5} {call:2} {bar} {:.2} s",
            if cost(*call) > 1 { "batch" } else { "call" },
            sent.as_secs_f64()
        );
    }
    Ok(())
}

/// Who would wait too long hears so at once, and has used up nothing.
async fn in_a_hurry() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = client()?;
    limiter.acquire_n("api.example", CLIENT_BURST).await?;
    let start = Instant::now();
    let answer = limiter.acquire_timeout("api.example", CLIENT_BURST, Duration::from_millis(100)).await;
    let denied = answer.err().ok_or("a whole burst takes 250 ms")?;
    let wait = denied.retry_after().unwrap_or_default();
    println!(
        "A batch right after another, with 100 ms to spare: \"in {wait:.0?}\", told after {:.0?}.",
        start.elapsed()
    );
    Ok(())
}
