//! What events and counts cost a policy's checks: a policy that notes them ÷ one that does not. A plain harness: both are timed
//! in one round, turn and turn about, and the figure is the median of the rounds' ratios, with the middle half of them.
//!
//! ```console
//! $ cargo bench -p tidegate --bench events
//! ```
//!
//! With the name of a case and `with` or `without` it only runs that one, so many times, for a profiler or a tool that counts instructions
//! (`ci/instructions.sh`): in the function `timed_loop`, on a clock that stands still.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a bench may stop at the first surprise")]

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use tidegate::policy::{EventSettings, KeyPart, Policy, Request, Retry, Rule, Rules};
use tidegate::{Clock, Limit, Manual, Rate, Window};

const CHECKS: usize = 100_000;
const ROUNDS: usize = 31;

/// What is asked, and how it is answered.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    rules: usize,
    kind: Kind,
    users: usize,
    passes: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// A bucket that nobody comes near the end of, or that is empty for hours.
    Bucket,
    /// Burst and sustain windows, as large.
    Windows,
    /// A bucket that is used above the threshold.
    NearEnd,
    /// A bucket whose refused come back one after the other.
    Staggered,
    /// A bucket that a reload has changed.
    Changed,
}

const CASES: [Case; 10] = [
    Case { name: "passes", rules: 1, kind: Kind::Bucket, users: 1_000, passes: true },
    Case { name: "passes_windows", rules: 1, kind: Kind::Windows, users: 1_000, passes: true },
    Case { name: "passes_three", rules: 3, kind: Kind::Bucket, users: 1_000, passes: true },
    Case { name: "passes_staggered", rules: 1, kind: Kind::Staggered, users: 1_000, passes: true },
    Case { name: "passes_changed", rules: 1, kind: Kind::Changed, users: 1_000, passes: true },
    Case { name: "passes_near_end", rules: 1, kind: Kind::NearEnd, users: 1, passes: true },
    Case { name: "refused_one_key", rules: 1, kind: Kind::Bucket, users: 1, passes: false },
    Case { name: "refused_windows", rules: 1, kind: Kind::Windows, users: 1, passes: false },
    Case { name: "refused_1k_keys", rules: 1, kind: Kind::Bucket, users: 1_000, passes: false },
    Case { name: "refused_100k_keys", rules: 1, kind: Kind::Bucket, users: 100_000, passes: false },
];

impl Case {
    fn limit(&self) -> Limit {
        let most = if self.passes { 1_000_000_000 } else { 1 };
        let hour = Duration::from_secs(3_600);
        match self.kind {
            Kind::Bucket | Kind::NearEnd | Kind::Staggered | Kind::Changed => {
                Limit::bucket(Rate::per_hour(1), most)
            }
            Kind::Windows if self.passes => {
                Limit::burst_sustain(Window::new(most / 1_000, hour), Window::new(most / 1_000, 20 * hour))
            }
            Kind::Windows => Limit::burst_sustain(Window::new(1, hour), Window::new(1, 20 * hour)),
        }
    }

    /// A policy, used as far as the case wants it.
    fn policy<C: Clock + Clone + 'static>(&self, clock: C, told: bool, users: &[String]) -> Policy<C> {
        let rule = |number| Rule {
            max_keys: 2 * self.users.max(500),
            retry: (self.kind == Kind::Staggered).then_some(Retry::Staggered),
            ..Rule::new(format!("rule-{number}"), vec![KeyPart::User, KeyPart::Title], vec![self.limit()])
        };
        let rules = Rules { rules: (0..self.rules).map(rule).collect(), ..Rules::default() };
        let builder = Policy::builder(rules).clock(clock).seed(7);
        let policy = if told { builder.events(EventSettings::new()) } else { builder }.build().unwrap();
        if self.kind == Kind::Changed {
            let mut rules = policy.rules();
            rules
                .iter_mut()
                .for_each(|rule| rule.limits = vec![Limit::bucket(Rate::per_hour(1), 900_000_000)]);
            policy.replace(Rules { rules, ..Rules::default() }).unwrap();
        }
        for user in users {
            let used = if self.kind == Kind::NearEnd { 900_000_000 } else { 1 };
            _ = policy.charge(&request(user), used);
        }
        policy.drain_events(|_| ());
        assert_eq!(policy.check(&request(&users[0])).is_allowed(), self.passes);
        policy
    }

    /// So many different users, each as likely as any other.
    fn users(&self) -> (Vec<String>, Vec<usize>) {
        let users = (0..self.users).map(|number| format!("{number:016}")).collect();
        let mut state = 7_u64;
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % self.users
        };
        (users, (0..CHECKS).map(next).collect())
    }
}

fn request(user: &str) -> Request<'_> {
    Request::new("profile/read").user(user).title("chess")
}

/// Not inlined, so that a profile shows it.
#[inline(never)]
fn timed_loop<C: Clock + Clone + 'static>(policy: &Policy<C>, (users, order): &(Vec<String>, Vec<usize>)) {
    for &number in order {
        _ = black_box(policy.check(&request(&users[number])).is_allowed());
    }
}

/// Checks a second, of so many threads together; each reads its own clock.
fn per_second(policy: &Policy, threads: usize, users: &(Vec<String>, Vec<usize>)) -> f64 {
    let start = Barrier::new(threads);
    let work = || {
        start.wait();
        let begun = Instant::now();
        timed_loop(policy, users);
        begun.elapsed().as_secs_f64()
    };
    let times: Vec<f64> = thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    // A host drains a few times a second: once after so many checks is more often than that.
    policy.drain_events(|_| ());
    times.iter().map(|seconds| CHECKS as f64 / seconds).sum()
}

fn time() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    println!("time of a check with events ÷ without, medians of {ROUNDS} rounds\n");
    println!("{:<18} {:>7} {:>11} {:>6}  middle half", "case", "threads", "ns without", "÷");
    for case in CASES {
        let users = case.users();
        for threads in [1, cores] {
            let policies = [false, true].map(|told| case.policy(tidegate::Ticking::new(), told, &users.0));
            let (mut times, mut ratios) = (Vec::new(), Vec::new());
            for round in 0..ROUNDS {
                let mut both = [0.0, 0.0];
                for turn in 0..2 {
                    let which = (round + turn) % 2;
                    both[which] = per_second(&policies[which], threads, &users);
                }
                times.push(threads as f64 / both[0] * 1e9);
                ratios.push(both[0] / both[1]);
            }
            times.sort_by(f64::total_cmp);
            ratios.sort_by(f64::total_cmp);
            let [low, middle, high] = [1, 2, 3].map(|quarter| ratios[quarter * ROUNDS / 4]);
            let ns = times[ROUNDS / 2];
            println!("{:<18} {threads:>7} {ns:>11.1} {middle:>6.2}  {low:.2} to {high:.2}", case.name);
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    match &words[..] {
        [] => time(),
        [name, told, times @ ..] => {
            let times: usize = times.first().map_or(1, |times| times.parse().unwrap());
            let case = CASES.iter().find(|case| case.name == name).expect("the name of a case");
            let users = case.users();
            let policy = case.policy(Manual::new(), told == "with", &users.0);
            (0..times).for_each(|_| timed_loop(&policy, &users));
            println!("checks: {}", times * CHECKS);
        }
        _ => eprintln!("usage: events [CASE with|without [TIMES]]"),
    }
}
