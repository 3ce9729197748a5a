//! What a recorder is told, beside a naive twin.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::BTreeMap;
use std::sync::Arc;

use metrics::atomics::AtomicU64;
use metrics::{Histogram, Recorder, with_local_recorder};
use proptest::prelude::*;

use super::*;
use crate::decision::WindowName;
use crate::sync::Ordering;
use crate::table::Stats;

/// Keeps the word of each series by its name and labels, and what was said of each name.
#[derive(Default)]
struct Kept {
    words: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    said: Mutex<BTreeMap<String, (&'static str, Option<Unit>)>>,
}

impl Kept {
    fn word(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        Arc::clone(self.words.lock().unwrap().entry(name).or_default())
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.words.lock().unwrap().get(name).map(|word| word.load(Ordering::Relaxed))
    }

    fn gauge(&self, name: &str) -> Option<f64> {
        self.count(name).map(f64::from_bits)
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, says: SharedString) {
        assert!(!says.is_empty());
        self.said.lock().unwrap().insert(name.as_str().to_owned(), ("counter", unit));
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, says: SharedString) {
        assert!(!says.is_empty());
        self.said.lock().unwrap().insert(name.as_str().to_owned(), ("gauge", unit));
    }

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        panic!("there are none");
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.word(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.word(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("there are none");
    }
}

fn stats(from: u64) -> Stats {
    Stats {
        live_estimate: from,
        claims: from + 1,
        forced_evictions: from + 2,
        forgiven_limits: 0.5,
        full: from + 3,
        untracked: from + 4,
        exhausted: from + 5,
        leases: from + 6,
        lapsed: from + 7,
        clock_stalls: from + 8,
    }
}

fn rule(name: &str, is_shadow: bool, limits: Vec<LimitCounts>) -> RuleCounts {
    RuleCounts { name: name.into(), is_shadow, limits }
}

fn bucket(refusals: u64) -> LimitCounts {
    LimitCounts { refusals: vec![(WindowName::Bucket, refusals)], stats: stats(0) }
}

fn counts(rules: Vec<RuleCounts>) -> Counts {
    Counts { checks: 100, rules, events_dropped: 7, refusals_unseen: 9 }
}

/// Tells these one after the other.
fn told(rounds: &[Counts]) -> Kept {
    let kept = Kept::default();
    let labels = [Label::new("policy", "p")];
    let mut told = Told::default();
    with_local_recorder(&kept, || rounds.iter().for_each(|counts| told.all(&labels, counts)));
    kept
}

#[test]
fn each_count_has_its_series() {
    let two =
        LimitCounts { refusals: vec![(WindowName::Burst, 3), (WindowName::Sustain, 4)], stats: stats(20) };
    let kept = told(&[counts(vec![
        rule("a", false, vec![bucket(2), two]),
        rule("b", true, vec![LimitCounts { refusals: vec![(WindowName::Sliding, 5)], stats: stats(10) }]),
    ])]);
    for (name, count) in [
        ("tidegate_policy_checks_total{policy=p}", 100),
        ("tidegate_events_dropped_total{policy=p}", 7),
        ("tidegate_refusals_unseen_total{policy=p}", 9),
        ("tidegate_refusals_total{policy=p,rule=a,limit=0,window=bucket}", 2),
        ("tidegate_refusals_total{policy=p,rule=a,limit=1,window=burst}", 3),
        ("tidegate_refusals_total{policy=p,rule=a,limit=1,window=sustain}", 4),
        ("tidegate_shadow_refusals_total{policy=p,rule=b,limit=0,window=sliding}", 5),
        ("tidegate_keys_claimed_total{policy=p,rule=a,limit=1}", 21),
        ("tidegate_forced_evictions_total{policy=p,rule=a,limit=1}", 22),
        ("tidegate_keys_refused_total{policy=p,rule=a,limit=1}", 23),
        ("tidegate_keys_untracked_total{policy=p,rule=a,limit=1}", 24),
        ("tidegate_races_lost_total{policy=p,rule=a,limit=1}", 25),
        ("tidegate_leases_total{policy=p,rule=a,limit=1}", 26),
        ("tidegate_lapsed_tokens_total{policy=p,rule=a,limit=1}", 27),
        // Of the three limits, which have one clock, the one that knows of most.
        ("tidegate_clock_stalls_total{policy=p}", 28),
    ] {
        assert_eq!(kept.count(name), Some(count), "{name}");
    }
    assert_eq!(kept.gauge("tidegate_live_keys{policy=p,rule=b,limit=0}"), Some(10.0));
    // Four of the policy; eight of each of the three limits; four windows.
    assert_eq!(kept.words.lock().unwrap().len(), 4 + 3 * 8 + 4);
}

#[test]
fn names_follow_the_conventions_and_each_is_described() {
    let kept = told(&[counts(vec![rule("a", false, vec![bucket(1)]), rule("b", true, vec![bucket(1)])])]);
    with_local_recorder(&kept, Metrics::describe);
    let said = kept.said.lock().unwrap();
    for name in kept.words.lock().unwrap().keys() {
        let name = name.split('{').next().unwrap();
        let (kind, unit) = said[name];
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        assert!(name.starts_with("tidegate_") && unit == Some(Unit::Count), "{name}");
    }
    assert_eq!(said.len(), FAMILIES.len());
}

#[test]
fn what_was_told_is_not_told_again_and_the_largest_counts_fit() {
    const NAME: &str = "tidegate_refusals_total{policy=p,rule=a,limit=0,window=bucket}";
    let of = |refusals| counts(vec![rule("a", false, vec![bucket(refusals)])]);
    assert_eq!(told(&[of(0)]).count(NAME), Some(0), "a count of nothing is told too");
    assert_eq!(told(&[of(5), of(5), of(5)]).count(NAME), Some(5));
    assert_eq!(told(&[of(5), of(u64::MAX), of(u64::MAX)]).count(NAME), Some(u64::MAX));
}

#[test]
fn a_rule_that_is_gone_keeps_its_counts_and_has_no_keys() {
    const REFUSALS: &str = "tidegate_refusals_total{policy=p,rule=a,limit=0,window=bucket}";
    const KEYS: &str = "tidegate_live_keys{policy=p,rule=a,limit=0}";
    let keys = LimitCounts { stats: stats(10), ..bucket(5) };
    let of = |limit: &LimitCounts| counts(vec![rule("a", false, vec![limit.clone()])]);
    let kept = told(&[of(&keys), counts(Vec::new())]);
    assert_eq!((kept.count(REFUSALS), kept.gauge(KEYS)), (Some(5), Some(0.0)));
    // The stalls were the process's, not the rule's.
    assert_eq!(kept.count("tidegate_clock_stalls_total{policy=p}"), Some(18));
    // It comes back: the policy knows what it refused, and its limiter is another.
    let kept = told(&[of(&keys), counts(Vec::new()), of(&LimitCounts { stats: stats(10), ..bucket(6) })]);
    assert_eq!((kept.count(REFUSALS), kept.gauge(KEYS)), (Some(6), Some(10.0)));
    assert_eq!(kept.count("tidegate_keys_claimed_total{policy=p,rule=a,limit=0}"), Some(11 + 11));
    assert_eq!(kept.count("tidegate_clock_stalls_total{policy=p}"), Some(18));
    // It begins anew without having been gone.
    assert_eq!(told(&[of(&bucket(5)), of(&bucket(2)), of(&bucket(3))]).count(REFUSALS), Some(8));
}

/// A rule is tried as a shadow first. When it is put in force, nobody has been refused yet.
#[test]
fn what_a_rule_only_watched_is_no_refusal_when_it_is_put_in_force() {
    const REFUSALS: &str = "tidegate_refusals_total{policy=p,rule=a,limit=0,window=bucket}";
    const SHADOW: &str = "tidegate_shadow_refusals_total{policy=p,rule=a,limit=0,window=bucket}";
    let of = |is_shadow, refusals| counts(vec![rule("a", is_shadow, vec![bucket(refusals)])]);
    // The policy counts a rule that watches apart from one of its name that is in force.
    let kept = told(&[of(true, 50), of(false, 1), of(false, 3), of(true, 57)]);
    assert_eq!((kept.count(SHADOW), kept.count(REFUSALS)), (Some(57), Some(3)));
    // Neither when it was gone in between.
    let kept = told(&[of(true, 50), counts(Vec::new()), of(false, 1)]);
    assert_eq!((kept.count(SHADOW), kept.count(REFUSALS)), (Some(50), Some(1)));
    // Nor has a limit of another kind refused what the one in its place did.
    let sliding = LimitCounts { refusals: vec![(WindowName::Sliding, 51)], stats: stats(0) };
    let kept = told(&[of(false, 50), counts(vec![rule("a", false, vec![sliding])])]);
    assert_eq!(kept.count("tidegate_refusals_total{policy=p,rule=a,limit=0,window=sliding}"), Some(1));
}

#[test]
fn a_policy_that_counts_nothing_tells_nothing() {
    let policy = Policy::new(crate::policy::Rules::default()).unwrap();
    let kept = Kept::default();
    with_local_recorder(&kept, || assert!(!Metrics::new().publish(&policy)));
    assert!(kept.words.lock().unwrap().is_empty());
}

proptest! {
    /// The twin adds up what happened, to a rule that now and then is gone, begins anew or is another's shadow.
    #[test]
    fn sums_are_the_twins(steps in prop::collection::vec((0_u64..100, 0..10_u8), 1..50)) {
        const NAMES: [&str; 2] = ["tidegate_refusals_total", "tidegate_shadow_refusals_total"];
        let (mut twin, mut counted, mut is_shadow) = ([0_u64; 2], [0_u64; 2], false);
        let kept = Kept::default();
        let mut told = Told::default();
        for (happened, what) in steps {
            let rules = match what {
                0 => Vec::new(),
                1 => {
                    // No more than before, or nobody could tell.
                    let count = &mut counted[usize::from(is_shadow)];
                    *count = happened.min(count.saturating_sub(1));
                    twin[usize::from(is_shadow)] += *count;
                    vec![rule("a", is_shadow, vec![bucket(*count)])]
                }
                _ => {
                    is_shadow ^= what == 2;
                    let count = &mut counted[usize::from(is_shadow)];
                    *count += happened;
                    twin[usize::from(is_shadow)] += happened;
                    vec![rule("a", is_shadow, vec![bucket(*count)])]
                }
            };
            with_local_recorder(&kept, || told.all(&[], &counts(rules)));
            for (name, sum) in NAMES.into_iter().zip(twin) {
                let count = kept.count(&format!("{name}{{rule=a,limit=0,window=bucket}}"));
                prop_assert_eq!(count.unwrap_or(0), sum);
            }
        }
    }
}
