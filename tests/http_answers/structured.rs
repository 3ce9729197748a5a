//! The draft's fields are lists of RFC 9651: another's reader finds in them what was meant, for any names and numbers.

use proptest::prelude::*;
use sfv::{BareItem, List, ListEntry, Parser};
use tidegate::http::{Answering, Names};
use tidegate::policy::{KeyPart, Policy, Request, Rule, Rules};
use tidegate::{Limit, Manual, Rate, Window};

use super::secs;

/// A list that another has read: each name, with its parameters.
type Read = Vec<(String, Vec<(String, i64)>)>;

fn read(field: &str) -> Read {
    let list: List = Parser::new(field).parse().unwrap_or_else(|error| panic!("{error}: {field}"));
    let entry = |entry: &ListEntry| {
        let ListEntry::Item(item) = entry else { panic!("{field}") };
        let BareItem::String(name) = &item.bare_item else { panic!("{field}") };
        let parameter = |(key, value): (&sfv::Key, &BareItem)| {
            let BareItem::Integer(number) = value else { panic!("{field}") };
            (key.as_str().to_owned(), i64::from(*number))
        };
        (name.as_str().to_owned(), item.params.iter().map(parameter).collect())
    };
    list.iter().map(entry).collect()
}

const MOST: u64 = 999_999_999_999_999;

/// What a name is told as, by the words of the documentation.
fn told(name: &str) -> String {
    let printable = |c: char| if (' '..='~').contains(&c) { c } else { '?' };
    name.chars().map(printable).take(128).collect()
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,8}", "[ -~]{1,12}", "\\PC{1,6}", "[\"\\\\\\x00-\\x20é€]{1,4}", "[a\u{fc}]{100,160}"]
}

fn limits() -> impl Strategy<Value = Limit> {
    let number = prop_oneof![1_u64..100, 1_u64..2_000_000, Just(20_000_000)];
    let period = prop_oneof![
        (1_u64..100_000).prop_map(secs),
        (1_u64..100_000).prop_map(std::time::Duration::from_millis),
    ];
    (number, period, 0..4, 2_u32..20).prop_map(|(number, period, kind, bursts)| match kind {
        0 => Limit::bucket(Rate::new(number, period), number),
        1 => Limit::window(Window::new(number, period)),
        2 => Limit::sliding_window(Window::new(number.min(1_000), period)),
        _ => Limit::burst_sustain(
            Window::new(number.min(1_000), period),
            Window::new(number.min(1_000), period * bursts),
        ),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
    #[test]
    fn what_is_written_is_read_by_another(
        drawn in prop::collection::vec((names(), prop::collection::vec(limits(), 1..3)), 1..4),
        windows: bool,
        asks in 1_usize..6,
        waits in 0_u64..40_000,
    ) {
        let mut rules: Vec<Rule> = Vec::new();
        for (name, limits) in drawn {
            if rules.iter().all(|rule| rule.name != name) {
                rules.push(Rule { max_keys: 10, ..Rule::new(name, vec![KeyPart::User], limits) });
            }
        }
        let clock = Manual::new();
        let rules = Rules { rules, ..Rules::default() };
        let built = Policy::builder(rules.clone()).seed(1).clock(clock.clone()).build();
        prop_assume!(built.is_ok());
        let policy = built.unwrap();
        let request = Request::new("x").user("ada");
        (1..asks).for_each(|_| _ = policy.check(&request));
        clock.advance(std::time::Duration::from_millis(waits));
        let verdict = policy.check(&request);
        let fields = Answering::new().names(if windows { Names::Windows } else { Names::Full }).fields(&verdict);
        let field = |wanted: &str| {
            let found = fields.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value.to_str().unwrap().to_owned())
        };
        let (quota, state) = (read(&field("ratelimit-policy").unwrap()), read(&field("ratelimit").unwrap()));
        let all: Vec<_> = verdict.rules().flat_map(|rule| rule.limits().collect::<Vec<_>>()).collect();
        let states: Vec<_> = all
            .iter()
            .flat_map(|limit| limit.windows().iter().map(|state| (*limit, *state)).collect::<Vec<_>>())
            .collect();
        prop_assert_eq!((quota.len(), state.len()), (states.len(), states.len()));
        let retry_after = field("retry-after").map(|wait| wait.parse::<u64>().unwrap());
        prop_assert_eq!(retry_after, verdict.retry_after().filter(|_| !verdict.is_allowed()).map(|wait| {
            (wait.as_nanos().div_ceil(1_000_000_000) as u64).max(1)
        }));
        for (place, (limit, window)) in states.iter().enumerate() {
            let ((name, parameters), (same, more)) = (&quota[place], &state[place]);
            prop_assert_eq!(name, same);
            prop_assert!(quota[..place].iter().all(|(other, _)| other != name), "{} twice", name);
            if !windows {
                prop_assert!(name.starts_with(&told(limit.rule().name())), "{}", name);
            }
            let ns = window.period.as_nanos();
            let w = (ns % 1_000_000_000 == 0).then(|| ("w".to_owned(), (ns / 1_000_000_000) as i64));
            let q = [("q".to_owned(), window.limit.min(MOST) as i64)];
            prop_assert_eq!(parameters, &q.into_iter().chain(w).collect::<Vec<_>>());
            let next = window.next_after.as_nanos();
            let t = (next > 0).then(|| ("t".to_owned(), next.div_ceil(1_000_000_000) as i64));
            let r = [("r".to_owned(), window.remaining.min(MOST) as i64)];
            prop_assert_eq!(more, &r.into_iter().chain(t).collect::<Vec<_>>());
            if let (true, Some(wait)) = (window.refuses, retry_after) {
                prop_assert!(more.get(1).is_none_or(|(_, t)| *t as u64 <= wait), "{} after {}", wait, name);
            }
        }
    }
}

/// The period that is told is the one that the limit was given, though the limiter counts in units of its own.
#[test]
fn whole_periods_stay_whole() {
    for seconds in [1, 2, 3, 7, 15, 60, 300, 3_600, 86_400, 604_800, 31_536_000] {
        for limit in [
            Limit::window(Window::new(7, secs(seconds))),
            Limit::sliding_window(Window::new(7, secs(seconds))),
            Limit::bucket(Rate::new(7, secs(seconds)), 7),
            Limit::bucket(Rate::new(1, secs(seconds)), 3),
        ] {
            let limiter = tidegate::SingleLimiter::builder(limit).clock(Manual::new()).build().unwrap();
            let fields = Answering::new().fields(&limiter.check());
            let told = read(fields.iter().next().unwrap().1.to_str().unwrap());
            let [(_, parameters)] = &told[..] else { panic!("{told:?}") };
            let is_slow = format!("{limit:?}").contains("tokens: 1,");
            let period = seconds as i64 * if is_slow { 3 } else { 1 };
            assert_eq!(parameters[1..], [("w".to_owned(), period)], "{limit:?}");
        }
    }
}
