//! Events for tests.

use std::time::Duration;

use crate::decision::{Reason, WindowName};
use crate::policy::{Event, EventKind, Offender};

pub(super) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Of the key `user-N` where that is the fingerprint, in a bucket of 20 that refills in 4 s.
pub(super) fn event(kind: EventKind, fingerprint: u64) -> Event {
    let is_refusal = kind == EventKind::Refused;
    Event {
        kind,
        at: Duration::from_millis(1_767_225_600_250),
        policy: "shop".into(),
        rule: "profile".into(),
        is_shadow: false,
        limit_number: 0,
        window: WindowName::Bucket,
        key: Some(format!("user-{fingerprint}").into()),
        fingerprint,
        limit: 20,
        period: Duration::from_secs(4),
        used: if kind == EventKind::Recovered { 0 } else { 20 },
        remaining: if kind == EventKind::Recovered { 20 } else { 0 },
        refused: u64::from(is_refusal),
        reason: is_refusal.then_some(Reason::Exhausted),
        retry_after: Some(if is_refusal { Duration::from_millis(200) } else { Duration::ZERO }),
    }
}

pub(super) fn offender(fingerprint: u64) -> Offender {
    Offender {
        rule: "profile".into(),
        is_shadow: false,
        limit_number: 0,
        key: Some(format!("user-{fingerprint}").into()),
        fingerprint,
        refused_least: 1_000 - fingerprint,
        refused_most: 1_002 - fingerprint,
    }
}
