//! Two limits at once for each key: 10 a second and 50 000 a day, all or nothing. A refusal by one takes nothing from the
//! other, and says which it was and how long to wait.
//!
//! `cargo run --release --example second_and_day`

use std::time::Duration;

use tidegate::{Alignment, ConfigError, Limit, Limiter, Manual, Rate, Window, all};

const PER_SECOND: u64 = 10;
const PER_DAY: u64 = 50_000;
const NAMES: [&str; 2] = ["second", "day"];
const HOUR: Duration = Duration::from_secs(3_600);
/// Ada asks twenty times a second, twice as often as she may; Bob once in two seconds.
const STEP: Duration = Duration::from_millis(50);
const BOBS_STEPS: u32 = 40;
/// Two hours and ten minutes.
const STEPS: u32 = 130 * 60 * 20;

/// What became of one caller's requests.
#[derive(Default)]
struct Count {
    passed: u64,
    /// By the second's limit, and by the day's.
    refused: [u64; 2],
}

fn main() -> Result<(), ConfigError> {
    // Two hours before midnight, in UTC, at which the day's windows end.
    let start = 22 * HOUR;
    let clock = Manual::at_unix(start);
    let day = Limit::window(Window::new(PER_DAY, 24 * HOUR)).align(Alignment::Clock);
    let second = Limit::bucket(Rate::per_second(PER_SECOND), PER_SECOND);
    let seconds = Limiter::builder(second).max_keys(1_000).clock(clock.clone()).build()?;
    let days = Limiter::builder(day).max_keys(1_000).clock(clock.clone()).build()?;

    println!(
        "{PER_SECOND} a second and {PER_DAY} a day for each key; ada asks 20 times a second, bob every 2 s"
    );
    let mut told = [false; 2];
    let mut counts = [Count::default(), Count::default()];
    let mut before_midnight = 0;
    for step in 0..STEPS {
        clock.set(STEP * step);
        if clock.elapsed() == 2 * HOUR {
            // What was refused took nothing: the day has counted what passed, and the second's bucket is full.
            before_midnight = counts[0].passed;
            assert_eq!(before_midnight, PER_DAY);
            print_rows("at midnight", &counts);
        }
        for (caller, name) in ["ada", "bob"].into_iter().enumerate() {
            if caller == 1 && step % BOBS_STEPS > 0 {
                continue;
            }
            let [count_of_second, count_of_day] = [seconds.against(name), days.against(name)];
            let Err(denied) = all([&count_of_second, &count_of_day]) else {
                counts[caller].passed += 1;
                continue;
            };
            let by = denied.refused_by();
            counts[caller].refused[by] += 1;
            if !std::mem::replace(&mut told[by], true) {
                let left = [seconds.peek(name), days.peek(name)].map(|standing| standing.remaining());
                let wait = denied.retry_after().unwrap_or(Duration::MAX);
                println!(
                    "{} {name} is refused by the {}'s limit, retry after {wait:?}; left: {} of the second, {} of the day",
                    time_of_day(start + clock.elapsed()),
                    NAMES[by],
                    left[0],
                    left[1]
                );
            }
        }
    }
    print_rows("ten minutes later", &counts);
    assert!(counts[0].passed > before_midnight, "a new day");
    assert_eq!((counts[1].passed, counts[1].refused), (3_900, [0, 0]));
    let left = days.peek("ada").remaining();
    println!("ada has {left} of the new day: {PER_DAY} less the {} that passed in it", PER_DAY - left);
    assert_eq!(PER_DAY - left, counts[0].passed - before_midnight);
    Ok(())
}

fn print_rows(when: &str, counts: &[Count; 2]) {
    println!("{when}:");
    println!("{:>6} {:>8} {:>18} {:>15}", "", "passed", "refused by second", "refused by day");
    for (name, Count { passed, refused: [second, day] }) in ["ada", "bob"].iter().zip(counts) {
        println!("{name:>6} {passed:>8} {second:>18} {day:>15}");
    }
}

fn time_of_day(unix: Duration) -> String {
    let seconds = unix.as_secs() % 86_400;
    let millis = unix.subsec_millis();
    format!("{:02}:{:02}:{:02}.{millis:03}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}
