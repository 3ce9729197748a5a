//! How an attempt ended, and how long to wait for the next one.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime};

use super::settings::WebhookSettings;

/// A receiver that asks for a longer wait gets no longer one.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Delivered,
    /// The receiver wants no more messages.
    Gone,
    Failed(Failure),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) why: String,
    /// The wait that the receiver asks for.
    pub(super) retry_after: Option<Duration>,
    /// Nobody was asked, because of the address.
    pub(super) is_address_refused: bool,
}

/// What a status means. A redirect is followed by nobody: it is a failure as others are.
pub(super) fn outcome(status: u16, retry_after: Option<&str>, now: SystemTime) -> Outcome {
    match status {
        200..=299 => Outcome::Delivered,
        410 => Outcome::Gone,
        _ => Outcome::Failed(Failure {
            why: format!(
                "answered {status}{}",
                if (300..400).contains(&status) { ", a redirect" } else { "" }
            ),
            retry_after: retry_after.and_then(|text| wait_in(text, now)),
            is_address_refused: false,
        }),
    }
}

/// The wait that a `Retry-After` asks for, in seconds or as a date (RFC 9110, 10.2.3), up to a day. `None` if it is neither.
fn wait_in(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let wait = if is_number {
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

/// The wait after so many failed attempts: doubled after each, and a random part of it, up to all, on top.
pub(super) fn backoff(settings: &WebhookSettings, attempts: u32, random: u64) -> Duration {
    let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
    let wait = settings.backoff.saturating_mul(doubled).min(settings.backoff_max);
    #[expect(clippy::cast_precision_loss, reason = "any part will do")]
    let part = random as f64 / u64::MAX as f64;
    wait + wait.mul_f64(part)
}

/// 64 bits that no other process has, nor this one twice but by chance.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Fri, 02 Jan 1970 00:00:00 GMT.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(86_400)
    }

    #[test]
    fn a_receiver_says_when_to_come_back() {
        for (text, seconds) in [
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("0", Some(0)),
            ("99999999999999999999999", Some(86_400)),
            ("Fri, 02 Jan 1970 00:01:30 GMT", Some(90)),
            ("Friday, 02-Jan-70 00:01:30 GMT", Some(90)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Fri, 02 Jan 2026 00:00:00 GMT", Some(86_400)),
            ("-5", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(wait_in(text, now()), seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn a_status_is_success_or_the_end_or_a_failure() {
        assert!(
            [200, 201, 204, 299].iter().all(|&status| outcome(status, None, now()) == Outcome::Delivered)
        );
        assert_eq!(outcome(410, Some("9"), now()), Outcome::Gone);
        for status in [100, 199, 300, 301, 307, 308, 400, 404, 409, 411, 429, 500, 503] {
            let Outcome::Failed(failure) = outcome(status, Some("9"), now()) else { panic!("{status}") };
            assert_eq!(failure.retry_after, Some(Duration::from_secs(9)));
        }
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let settings = WebhookSettings::new().backoff(Duration::from_secs(1), Duration::from_secs(10));
        let waits = |random| {
            (1..=6).map(move |attempt| backoff(&settings, attempt, random).as_secs()).collect::<Vec<_>>()
        };
        assert_eq!(waits.clone()(0), [1, 2, 4, 8, 10, 10]);
        assert_eq!(waits(u64::MAX), [2, 4, 8, 16, 20, 20]);
    }

    proptest! {
        #[test]
        fn no_wait_is_outside_its_range(attempt in 0..=u32::MAX, part in any::<u64>(), first in 1..86_400_000_u64, more in 0..86_400_000_u64) {
            let (first, max) = (Duration::from_millis(first), Duration::from_millis(first + more));
            let wait = backoff(&WebhookSettings::new().backoff(first, max), attempt, part);
            prop_assert!(wait >= first && wait <= 2 * max);
        }
    }

    #[test]
    fn randomness_differs() {
        let mut drawn: Vec<u64> = (0..100).map(|_| random()).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 100);
    }
}
