//! A policy's counts and events, as a recorder and a log are told them while requests are decided.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use metrics::atomics::AtomicU64;
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit, with_local_recorder,
};
use tidegate::notify::{Log, Metrics};
use tidegate::policy::{EventSettings, Policy, PolicyBuilder, Request, Rules};
use tidegate::{Manual, SingleLimiter};

/// Keeps the word of each series by its name and labels.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<String, Arc<AtomicU64>>>>);

impl Kept {
    fn word(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        Arc::clone(self.0.lock().unwrap().entry(name).or_default())
    }

    fn count(&self, name: &str) -> u64 {
        self.0.lock().unwrap().get(name).map_or(0, |word| word.load(Ordering::Relaxed))
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.word(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.word(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

const CHECKS: &str = "tidegate_policy_checks_total{}";
const REFUSALS: &str = "tidegate_refusals_total{rule=user,limit=0,window=bucket}";

fn rules(text: &str) -> Rules {
    Rules::from_toml(text, "limits.toml").unwrap()
}

/// A policy that counts, of three tokens for each user.
fn three() -> PolicyBuilder {
    let text =
        "[[rule]]\nname = \"user\"\nkey = \"user\"\nmax_keys = 100\nlimit = { rate = \"1/h\", burst = 3 }\n";
    Policy::builder(rules(text)).events(EventSettings::new())
}

#[test]
fn what_was_decided_is_told() {
    let policy = three().clock(Manual::new()).build().unwrap();
    let (kept, metrics) = (Kept::default(), Metrics::new());
    for _ in 0..5 {
        _ = policy.allow(&Request::new("x").user("ada"));
    }
    _ = policy.check(&Request::new("x").user("bob"));
    assert!(with_local_recorder(&kept, || metrics.publish(&policy) && metrics.publish(&policy)));
    assert_eq!((kept.count(CHECKS), kept.count(REFUSALS)), (6, 2));
    assert_eq!(kept.count("tidegate_keys_claimed_total{rule=user,limit=0}"), 2);
    assert_eq!(f64::from_bits(kept.count("tidegate_live_keys{rule=user,limit=0}")), 2.0);

    // Other numbers go on counting; other keys are another limiter.
    let text = "[[rule]]\nname = \"user\"\nkey = \"client_ip\"\nlimit = { rate = \"1/h\", burst = 1 }\n";
    policy.replace(rules(text)).unwrap();
    let request = Request::new("x").client_ip("192.0.2.7".parse().unwrap());
    assert_eq!((0..4).filter(|_| policy.allow(&request)).count(), 1);
    with_local_recorder(&kept, || metrics.publish(&policy));
    assert_eq!((kept.count(CHECKS), kept.count(REFUSALS)), (10, 5));
    assert_eq!(kept.count("tidegate_keys_claimed_total{rule=user,limit=0}"), 3);
    // Gone, and back.
    policy.replace(Rules::default()).unwrap();
    with_local_recorder(&kept, || metrics.publish(&policy));
    policy.replace(rules(text)).unwrap();
    assert_eq!((0..3).filter(|_| policy.allow(&request)).count(), 1);
    with_local_recorder(&kept, || metrics.publish(&policy));
    assert_eq!((kept.count(CHECKS), kept.count(REFUSALS)), (13, 7));
}

#[test]
fn threads_that_check_and_publish_at_once_lose_nothing() {
    const EACH: u64 = 20_000;
    let policy = three().clock(Manual::new()).build().unwrap();
    let (kept, metrics, is_over) = (Kept::default(), Metrics::new(), AtomicBool::new(false));
    thread::scope(|scope| {
        let checking: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| (0..EACH).for_each(|_| _ = policy.allow(&Request::new("x").user("ada")))))
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                let mut before = (0, 0);
                while !is_over.load(Ordering::Relaxed) {
                    with_local_recorder(&kept, || metrics.publish(&policy));
                    let now = (kept.count(CHECKS), kept.count(REFUSALS));
                    assert!(
                        now.0 >= before.0 && now.1 >= before.1 && now.0 <= 3 * EACH,
                        "{before:?} {now:?}"
                    );
                    before = now;
                }
            });
        }
        for thread in checking {
            thread.join().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    with_local_recorder(&kept, || metrics.publish(&policy));
    assert_eq!((kept.count(CHECKS), kept.count(REFUSALS)), (3 * EACH, 3 * EACH - 3));
}

/// All that was written.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_happened_to_a_key_is_a_line_each() {
    let clock = Manual::at_unix(Duration::from_secs(1_800_000_000));
    let policy = three().clock(clock.clone()).build().unwrap();
    let log = Log::limited_by(SingleLimiter::builder(Log::LIMIT).clock(clock.clone()).build().unwrap());
    let written = Written::default();
    let to = written.clone();
    let subscriber =
        tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || to.clone()).finish();
    tracing::subscriber::with_default(subscriber, || {
        for _ in 0..5 {
            _ = policy.allow(&Request::new("x").user("ada\n"));
        }
        policy.drain_events(|event| log.tell(&event));
        // A bucket of three tokens at one an hour fills in three hours: long after that it has recovered.
        for _ in 0..4 {
            clock.advance(Duration::from_secs(4 * 3600));
            policy.drain_events(|event| log.tell(&event));
        }
    });
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<&str> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
    // All that was used is enough for a warning.
    assert_eq!(told, ["warned", "refused", "recovered"], "{text}");
    assert_eq!((&lines[1]["refused"], &lines[1]["key"]), (&2.into(), &"ada\\n".into()), "{text}");
}

/// A shadow rule has refused nobody, also when it is put in force, and when it only watches again.
#[test]
fn what_was_watched_since_the_last_scrape_is_no_refusal() {
    let rules = |shadow: bool| {
        let text = format!(
            "[[rule]]\nname = \"user\"\nkey = \"user\"\nshadow = {shadow}\nlimit = {{ rate = \"1/h\", burst = 1 }}\n"
        );
        tidegate::policy::Rules::from_toml(&text, "limits.toml").unwrap()
    };
    let policy =
        Policy::builder(rules(true)).clock(Manual::new()).events(EventSettings::new()).build().unwrap();
    let (kept, metrics) = (Kept::default(), Metrics::new());
    with_local_recorder(&kept, || metrics.publish(&policy));
    (0..6).for_each(|_| assert!(policy.allow(&Request::new("x").user("ada"))));
    policy.replace(rules(false)).unwrap();
    with_local_recorder(&kept, || metrics.publish(&policy));
    assert_eq!(kept.count(REFUSALS), 0, "nobody was refused");
}
