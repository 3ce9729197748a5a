//! Free and paid plans, and an operator who changes one of them while requests come in. Both are limits of one limiter: the free
//! plan is its own, the paid one a tier, and a partner has an override. What a caller has used goes with it from plan to plan.
//!
//! ```text
//! cargo run --release --example plans
//! ```

use std::time::Duration;

use tidegate::{CarryOver, ConfigError, Limit, Limiter, Manual, Rate, Tier};

/// A plan: requests a minute, and how many of them at once.
fn plan(a_minute: u64, at_once: u64) -> Limit {
    Limit::bucket(Rate::per_minute(a_minute), at_once)
}

/// How many of 200 requests pass, one every 50 ms, and how the caller stands then.
fn tell(limiter: &Limiter<Manual>, who: &str, plan: Option<Tier>, when: &str) {
    let passes = |_: &u32| {
        limiter.clock().advance(Duration::from_millis(50));
        match plan {
            None => limiter.allow(who),
            Some(paid) => limiter.check_in(paid, who, 1).is_ok(),
        }
    };
    let passed = (0..200).filter(passes).count();
    let stands = plan.map_or_else(|| limiter.peek(who), |paid| limiter.peek_in(paid, who));
    let wait =
        stands.retry_after(1).map_or("for ever".to_owned(), |wait| format!("{:.1} s", wait.as_secs_f64()));
    let plan = if plan.is_some() { "paid" } else { "free" };
    println!(
        "  {who:5} {plan:5} {when:28} {passed:4} of 200 pass; then {:3} left, next in {wait}",
        stands.remaining()
    );
}

fn main() -> Result<(), ConfigError> {
    let limiter = Limiter::builder(plan(60, 10)).max_tiers(2).clock(Manual::new()).build()?;
    let paid = limiter.tier(plan(600, 100))?;

    println!(
        "Free: 60 a minute, 10 at once. Paid: 600 a minute, 100 at once. Each asks 20 times a second for 10 s."
    );
    tell(&limiter, "bob", Some(paid), "");
    tell(&limiter, "ada", None, "");

    println!("Ada pays. What she has used is not forgiven, but it is little of what she may now:");
    println!("  ada has {} left of 100", limiter.peek_in(paid, "ada").remaining());
    tell(&limiter, "ada", Some(paid), "");

    println!("The free plan is cut to 6 a minute, 2 at once, while it is in use. What was used stays used:");
    tell(&limiter, "eve", None, "");
    limiter.set_limit(plan(6, 2), CarryOver::KeepUsed)?;
    println!("  eve owes {} more than the whole of it", limiter.peek("eve").debt());
    tell(&limiter, "eve", None, "who had used it up");

    println!("It is set back at once. Nobody gets a fresh burst by that:");
    limiter.set_limit(plan(60, 10), CarryOver::KeepUsed)?;
    println!("  eve has {} left", limiter.peek("eve").remaining());
    tell(&limiter, "eve", None, "");

    println!("A partner's crawler gets a limit of its own, whatever plan it is asked for by:");
    limiter.set_override("crawl", plan(120, 5))?;
    tell(&limiter, "crawl", Some(paid), "120 a minute, 5 at once");

    println!("What would not fit the words that are there is refused, and changes nothing:");
    let windows = Limit::window(tidegate::Window::new(60, Duration::from_secs(60)));
    if let Err(error) = limiter.tier(windows) {
        println!("  {error}");
    }
    if let Err(error) = limiter.tier(plan(1, 1)) {
        println!("  {error}");
    }
    Ok(())
}
