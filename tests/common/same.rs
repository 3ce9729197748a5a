//! The comparison of an answer with the twin's. Tests and a fuzz target include this file, beside `twin`.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each of those who include this file uses a part of it, and none exports it"
)]

use std::fmt::Debug;

use tidegate::{Denied, Pass, Reason, WindowState};

use super::twin::{Decision, Share};

/// The parts of an answer that the twin also gives, in the twin's terms.
fn as_decision(answer: &Result<Pass, Denied>) -> Decision {
    let (states, remaining, next, reset) = match answer {
        Ok(pass) => (pass.windows().to_vec(), pass.remaining(), pass.next_after(), pass.reset_after()),
        Err(denied) => {
            (denied.windows().to_vec(), denied.remaining(), denied.next_after(), denied.reset_after())
        }
    };
    let speaker = match answer {
        Ok(_) => 0,
        Err(denied) => states
            .iter()
            .position(|state| state.name == denied.binding())
            .unwrap_or_else(|| panic!("binding {} is no window of {denied:?}", denied.binding())),
    };
    Decision {
        passed: answer.is_ok(),
        too_large: matches!(answer, Err(denied) if denied.reason() == Reason::TooLarge),
        shares: states.iter().map(as_share).collect(),
        speaker,
        remaining: u128::from(remaining),
        next_ns: next.as_nanos(),
        reset_ns: reset.as_nanos(),
        retry_ns: answer.err().and_then(|denied| denied.retry_after()).map(|wait| wait.as_nanos()),
    }
}

fn as_share(state: &WindowState) -> Share {
    Share {
        limit: u128::from(state.limit),
        remaining: u128::from(state.remaining),
        observed: u128::from(state.observed),
        next_ns: state.next_after.as_nanos(),
        reset_ns: state.reset_after.as_nanos(),
        refuses: state.refuses,
    }
}

/// Takes over the expected waits that `found` misses by at most `slack_ns`.
fn overlook(slack_ns: u128, found: &mut Decision, expected: &Decision) {
    let overlook = |found: &mut u128, expected: u128| {
        if found.abs_diff(expected) <= slack_ns {
            *found = expected;
        }
    };
    overlook(&mut found.next_ns, expected.next_ns);
    overlook(&mut found.reset_ns, expected.reset_ns);
    if let (Some(found), Some(expected)) = (&mut found.retry_ns, expected.retry_ns) {
        overlook(found, expected);
    }
    for (found, expected) in found.shares.iter_mut().zip(&expected.shares) {
        overlook(&mut found.next_ns, expected.next_ns);
        overlook(&mut found.reset_ns, expected.reset_ns);
    }
}

/// Compares every field of an answer with the twin's.
///
/// Two things are left open because the limiter's contract leaves them open: which windows a request that can
/// never fit blames, and who speaks for a pass (its `limit()` is compared instead).
pub fn assert_same(answer: &Result<Pass, Denied>, expected: &Decision, context: &dyn Debug) {
    assert_same_within(0, answer, expected, context);
}

/// The same with every wait allowed to differ by `slack_ns`: where windows end between two nanoseconds.
pub fn assert_same_within(
    slack_ns: u128,
    answer: &Result<Pass, Denied>,
    expected: &Decision,
    context: &dyn Debug,
) {
    let mut found = as_decision(answer);
    let told_ns = found.retry_ns;
    overlook(slack_ns, &mut found, expected);
    let mut expected = expected.clone();
    match answer {
        Ok(pass) => assert_eq!(
            u128::from(pass.limit()),
            expected.shares[expected.speaker].limit,
            "limit of {pass:?}, twin {expected:?}, {context:?}"
        ),
        Err(denied) => {
            let binding = &found.shares[found.speaker];
            assert_ne!(denied.reason(), Reason::Full, "{context:?}");
            assert_eq!(u128::from(denied.limit()), binding.limit, "{context:?}");
            assert_eq!(u128::from(denied.observed()), binding.observed, "{context:?}");
            let seconds = told_ns.map(|ns| ns.div_ceil(1_000_000_000).max(1));
            if let Some(seconds) = seconds {
                assert_eq!(u128::from(denied.retry_after_secs()), seconds, "{context:?}");
            }
        }
    }
    if expected.passed || expected.too_large {
        found.speaker = expected.speaker;
    }
    if expected.too_large {
        for (found, expected) in found.shares.iter_mut().zip(&mut expected.shares) {
            found.refuses = expected.refuses;
        }
    }
    assert_eq!(found, expected, "tidegate (left), twin (right), {context:?}");
}
