//! Rules that are replaced while requests are decided.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tidegate::policy::{Changes, KeyPart, Matcher, Pattern, Policy, Request, Rule, Rules};
use tidegate::{Alignment, Clock, Limit, Manual, Rate, Window};

use super::{allowed, policy, rule, rule_for, rules};
use crate::common::{at_once, secs};

fn window(limit: u64, period: u64) -> Limit {
    Limit::window(Window::new(limit, secs(period))).align(Alignment::Clock)
}

const ADA: Request<'_> = Request::new("x").user("ada");

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn what_is_unchanged_goes_on_and_the_rest_is_told() {
    let user = || vec![KeyPart::User];
    let bucket = |burst| Limit::bucket(Rate::per_hour(1), burst);
    let (policy, _) = policy(rules(vec![
        rule("same", user(), &[window(10, 60), bucket(10)]),
        rule("larger", user(), &[window(10, 60), bucket(10)]),
        rule("other period", user(), &[window(10, 60)]),
        rule("other kind", user(), &[window(10, 60)]),
        rule("other key", user(), &[window(10, 60)]),
        rule("fewer", user(), &[window(10, 60), bucket(10)]),
        rule("more", user(), &[window(10, 60)]),
        rule("gone", user(), &[window(10, 60)]),
    ]));
    assert_eq!(allowed(&policy, &ADA, 4), 4);
    let same = Rule { shadow: true, warn_percent: 50, ..rule("same", user(), &[window(10, 60), bucket(10)]) };
    let changes = policy.replace(rules(vec![
        rule("new", user(), &[window(10, 60)]),
        rule("more", user(), &[bucket(10), window(10, 60)]),
        rule("fewer", user(), &[bucket(10)]),
        rule("other key", vec![KeyPart::Title], &[window(10, 60)]),
        rule("other kind", user(), &[bucket(10)]),
        rule("other period", user(), &[window(10, 30)]),
        rule("larger", user(), &[bucket(30), window(20, 60)]),
        same,
    ]));
    let expected = (
        names(&["same"]),
        names(&["fewer", "larger"]),
        names(&["new", "more", "other key", "other kind", "other period"]),
        names(&["gone"]),
    );
    let Changes { kept, changed, anew, removed, .. } = changes.unwrap();
    assert_eq!((kept, changed, anew, removed), expected);
    let verdict = policy.peek(&ADA);
    let remaining: Vec<(&str, Vec<u64>)> = verdict
        .rules()
        .map(|rule| (rule.name(), rule.limits().map(|limit| limit.remaining()).collect()))
        .collect();
    assert_eq!(
        remaining,
        [
            ("new", vec![10]),
            ("more", vec![10, 6]),
            ("fewer", vec![6]),
            ("other key", vec![10]),
            ("other kind", vec![10]),
            ("other period", vec![10]),
            ("larger", vec![26, 16]),
            ("same", vec![6, 6]),
        ]
    );
}

#[test]
fn a_bad_policy_leaves_the_old_one_in_force() {
    let (policy, _) = policy(rules(vec![rule("x", vec![], &[window(5, 60)])]));
    assert_eq!(allowed(&policy, &ADA, 3), 3);
    let bad = [
        rules(vec![rule("x", vec![], &[window(50, 60)]), rule("y", vec![], &[window(0, 60)])]),
        rules(vec![rule("x", vec![], &[window(0, 60)])]),
        rules(vec![rule("x", vec![], &[window(50, 60)]), rule("x", vec![], &[window(50, 60)])]),
    ];
    for bad in bad {
        policy.replace(bad).unwrap_err();
        assert_eq!(policy.peek(&ADA).nearest().unwrap().limit(), window(5, 60));
        assert_eq!(policy.peek(&ADA).nearest().unwrap().remaining(), 2);
    }
    assert_eq!(allowed(&policy, &ADA, 5), 2);
}

/// Two limits of one kind do not take each other's counts when one of them changes.
#[test]
fn a_limit_that_stays_keeps_its_own_counts() {
    let bucket = |rate, burst| Limit::bucket(Rate::per_hour(rate), burst);
    let (policy, _) = policy(rules(vec![rule("x", vec![], &[bucket(1, 10), bucket(2, 100)])]));
    assert_eq!(allowed(&policy, &ADA, 10), 10);
    assert!(!policy.check(&ADA).is_allowed());
    // The second is listed first now, beside one that follows the first.
    policy.replace(rules(vec![rule("x", vec![], &[bucket(9, 20), bucket(2, 100)])])).unwrap();
    let verdict = policy.peek(&ADA);
    let remaining: Vec<u64> =
        verdict.rules().next().unwrap().limits().map(|limit| limit.remaining()).collect();
    assert_eq!(remaining, [10, 89]);
}

/// A clock that counts how many of it there are: one in each limiter.
struct Counted {
    clock: Manual,
    live: Arc<AtomicUsize>,
}

impl Counted {
    fn new(clock: Manual, live: &Arc<AtomicUsize>) -> Self {
        live.fetch_add(1, Ordering::SeqCst);
        Self { clock, live: Arc::clone(live) }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(self.clock.clone(), &self.live)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Clock for Counted {
    fn coarse(&self) -> u64 {
        self.clock.coarse()
    }

    fn precise(&self) -> u64 {
        self.clock.precise()
    }

    fn unix(&self) -> Duration {
        self.clock.unix()
    }
}

/// The policies that follow each other: one rule stays, one has another number each time, one is there every other time.
fn edition(number: u64) -> Rules {
    let small = |rule: Rule| Rule { max_keys: 16, ..rule };
    let both = || vec![KeyPart::User];
    let mut all = vec![
        small(rule("stays", both(), &[window(100_000, 3_600)])),
        small(rule_for("number", both(), &[window(500 + 300 * (number % 2), 3_600)])),
    ];
    if number % 2 == 1 {
        let matcher = Matcher { apis: vec![Pattern::Prefix("num".to_owned())], ..Matcher::default() };
        let often = small(rule(
            "comes and goes",
            both(),
            &[window(1_000_000, 3_600), Limit::bucket(Rate::per_day(1), 1_000_000)],
        ));
        all.insert(0, Rule { matcher, ..often });
    }
    rules(all)
}

/// Tells the others that it is over, also when an assertion has failed.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_thousand_reloads_under_load() {
    const RELOADS: u64 = 1_000;
    let live = Arc::new(AtomicUsize::new(0));
    let clock = Counted::new(Manual::new(), &live);
    let policy = Policy::builder(edition(0)).clock(clock).build().unwrap();
    let at_rest = live.load(Ordering::SeqCst);
    let is_over = AtomicBool::new(false);
    let counts = at_once(3, |thread| {
        if thread == 2 {
            let _end = AtEnd(&is_over);
            for number in 1..=RELOADS {
                let changes = policy.replace(edition(number)).unwrap();
                assert_eq!(changes.kept, ["stays"]);
                assert_eq!(changes.changed, ["number"]);
                let (anew, removed) = (changes.anew.len(), changes.removed.len());
                assert_eq!((anew, removed), if number % 2 == 1 { (1, 0) } else { (0, 1) });
            }
            return (0, 0);
        }
        let (mut checks, mut admitted) = (0_u64, 0_u64);
        while !is_over.load(Ordering::SeqCst) {
            let verdict = policy.check(&Request::new("number").user("ada"));
            let names: Vec<&str> = verdict.rules().map(|rule| rule.name()).collect();
            assert!(names.ends_with(&["stays", "number"]), "{names:?}");
            assert!(verdict.rules().all(|rule| rule.limits().next().is_some()));
            checks += 1;
            let number = verdict.rules().last().unwrap();
            admitted += u64::from(!number.refuses());
        }
        (checks, admitted)
    });
    let (checks, admitted) = counts.iter().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    assert!(checks > 10_000, "{checks}");
    // No fresh burst in a thousand changes of the number, and the last one was there to be had.
    assert!((500..=800).contains(&admitted), "{admitted}");
    let verdict = policy.peek(&Request::new("number").user("ada"));
    let stays = verdict.rules().next().unwrap().limits().next().unwrap().windows()[0];
    assert_eq!(
        stays.observed.min(100_000),
        checks.min(100_000),
        "every check was counted by the rule that stays"
    );
    // What has been removed goes when nobody reads it any more; a check that passes by lets it go.
    for _ in 0..1_000_000 {
        if live.load(Ordering::SeqCst) == at_rest {
            break;
        }
        assert!(!policy.check(&Request::new("number").user("ada")).is_allowed());
    }
    assert_eq!(live.load(Ordering::SeqCst), at_rest);
    drop(policy);
}

/// A policy that goes takes its limiters with it, and a verdict that is kept tells what it told.
#[test]
fn a_verdict_outlives_its_policy() {
    let live = Arc::new(AtomicUsize::new(0));
    let clock = Counted::new(Manual::new(), &live);
    let policy = Policy::builder(edition(1)).clock(clock).build().unwrap();
    let verdict = policy.check(&Request::new("number").user("ada"));
    drop(policy);
    assert_eq!(live.load(Ordering::SeqCst), 0);
    let names: Vec<&str> = verdict.rules().map(|rule| rule.name()).collect();
    assert_eq!(names, ["comes and goes", "stays", "number"]);
}
