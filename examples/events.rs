//! What a policy tells of a retry storm: a partner's devices ask forty times as often for ten seconds.
//!
//! ```text
//! cargo run --release --example events --features policy
//! ```

use std::time::Duration;

use tidegate::Manual;
use tidegate::policy::{EventSettings, Policy, Request, Rules};

const RULES: &str = r#"
name = "sync"

[[rule]]
name = "partner"
key = "user"
limit = { rate = "50/s", burst = 100 }
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rules = Rules::from_toml(RULES, "rules.toml")?;
    // A clock moved by hand, so that this takes no time; a server leaves it out.
    let clock = Manual::new();
    let policy = Policy::builder(rules).clock(clock.clone()).events(EventSettings::new()).build()?;

    for second in 0..20 {
        // Another partner goes on as before.
        (0..40).for_each(|_| _ = policy.check(&Request::new("sync").user("partner-8")));
        let per_second = if (5..15).contains(&second) { 1_600 } else { 40 };
        for _ in 0..per_second {
            _ = policy.check(&Request::new("sync").user("partner-7"));
            clock.advance(Duration::from_secs(1) / per_second);
        }
        policy.drain_events(|event| println!("{second:>2} s  {event}"));
    }

    for offender in policy.offenders(2) {
        let key = offender.key.as_deref().unwrap_or("(not told)");
        println!("{key} was refused {} to {} times", offender.refused_least, offender.refused_most);
    }
    if let Some(counts) = policy.counts() {
        println!("{} checks, {} events dropped", counts.checks, counts.events_dropped);
    }
    Ok(())
}
