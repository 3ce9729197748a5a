//! Free and paid plans, and an operator who changes one of them while requests come in. A plan is a limiter of its own; the
//! keys of one take no room from the other.
//!
//! ```text
//! cargo run --release --example plans
//! ```

use std::time::Duration;

use tidegate::{CarryOver, ConfigError, Limit, Limiter, Manual, Rate};

/// A plan: requests a minute, and how many of them at once.
fn plan(a_minute: u64, at_once: u64) -> Limit {
    Limit::bucket(Rate::per_minute(a_minute), at_once)
}

/// How many of `count` requests pass, one every 50 ms.
fn busy(limiter: &Limiter<Manual>, who: &str, count: u32) -> usize {
    let passes = |_| {
        limiter.clock().advance(Duration::from_millis(50));
        limiter.allow(who)
    };
    (0..count).filter(|&number| passes(number)).count()
}

fn tell(limiter: &Limiter<Manual>, who: &str, plan: &str, when: &str) {
    let passed = busy(limiter, who, 200);
    let stands = limiter.peek(who);
    let wait =
        stands.retry_after(1).map_or("for ever".to_owned(), |wait| format!("{:.1} s", wait.as_secs_f64()));
    println!(
        "  {who:5} {plan:5} {when:28} {passed:4} of 200 pass; then {:3} left, next in {wait}",
        stands.remaining()
    );
}

fn main() -> Result<(), ConfigError> {
    let free = Limiter::builder(plan(60, 10)).clock(Manual::new()).build()?;
    let paid = Limiter::builder(plan(600, 100)).clock(Manual::new()).build()?;

    println!(
        "Free: 60 a minute, 10 at once. Paid: 600 a minute, 100 at once. Each asks 20 times a second for 10 s."
    );
    tell(&free, "ada", "free", "");
    tell(&paid, "bob", "paid", "");

    println!("The free plan is cut to 6 a minute, 2 at once, while it is in use. What was used stays used:");
    free.set_limit(plan(6, 2), CarryOver::KeepUsed)?;
    println!("  ada owes {} more than the whole of it", free.peek("ada").debt());
    tell(&free, "ada", "free", "who had used it up");

    println!("It is set back at once. Nobody gets a fresh burst by that:");
    free.set_limit(plan(60, 10), CarryOver::KeepUsed)?;
    println!("  ada has {} left", free.peek("ada").remaining());
    tell(&free, "ada", "free", "");

    println!("Cut once more, but each keeps the share that it has used:");
    free.set_limit(plan(6, 2), CarryOver::Proportional)?;
    println!("  ada owes {} and has {} left", free.peek("ada").debt(), free.peek("ada").remaining());
    tell(&free, "eve", "free", "a new caller");

    println!("Ada pays, and asks the paid limiter from now on:");
    tell(&paid, "ada", "paid", "");

    println!("What would not fit the words that are there is refused, and changes nothing:");
    let windows = Limit::window(tidegate::Window::new(60, Duration::from_secs(60)));
    if let Err(error) = free.set_limit(windows, CarryOver::KeepUsed) {
        println!("  {error}");
    }
    Ok(())
}
