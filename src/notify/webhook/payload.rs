//! The body of a message: JSON of less than 20 kB.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::pending::{Entry, Pending};
use crate::decision::Reason;
use crate::policy::Offender;

/// No body is longer, in bytes. Standard Webhooks asks for less than 20 kB.
pub(super) const BODY_MAX: usize = 20_000;
/// Of which the offenders get so much at most.
const OFFENDERS_MAX: usize = 3_000;
const OFFENDERS_TOLD: usize = 10;
/// A name or a key is cut short there, in bytes.
const TEXT_MAX: usize = 128;

/// What a message says of itself.
pub(super) struct Frame {
    /// What happened before was told before.
    pub(super) since: Duration,
    pub(super) until: Duration,
    /// Events in earlier messages that nobody accepted.
    pub(super) undelivered: u64,
}

/// Takes from what is pending as much as fits into a message. Returns the body and how many events are in it; `None` if nothing is pending.
pub(super) fn take(pending: &mut Pending, frame: &Frame, offenders: &[Offender]) -> Option<(String, u64)> {
    let policy = pending.policy()?.clone();
    let mut head = Object::new();
    head.text("policy", &policy);
    head.time("since", frame.since);
    head.time("until", frame.until);
    head.number("left_out", pending.left_out());
    head.number("undelivered", frame.undelivered);
    head.raw("offenders", &list_of_offenders(offenders));
    let mut data = head.open();
    let mut message = Object::new();
    message.text("type", "tidegate.limits");
    message.time("timestamp", frame.until);
    let message = message.open();

    data.push_str(",\"events\":[");
    // What follows the events, and `,"data":`.
    let frame_len = message.len() + 8 + "]}}".len();
    let mut is_first = true;
    let events = pending.take(&policy, |entry| {
        let text = of_entry(entry);
        let comma = usize::from(!is_first);
        let fits = frame_len + data.len() + comma + text.len() < BODY_MAX;
        if fits {
            data.push_str(if is_first { "" } else { "," });
            data.push_str(&text);
            is_first = false;
        }
        fits
    });
    Some((format!("{message},\"data\":{data}]}}}}"), events))
}

fn of_entry(entry: &Entry) -> String {
    let event = &entry.event;
    let mut object = Object::new();
    object.text("event", event.kind.as_str());
    object.text("rule", &event.rule);
    object.raw("shadow", if event.is_shadow { "true" } else { "false" });
    object.number("limit_number", event.limit_number as u64);
    object.text("window", event.window.as_str());
    object.maybe_text("key", event.key.as_deref());
    object.text("fingerprint", &format!("{:012x}", event.fingerprint));
    object.number("limit", event.limit);
    object.float("period_s", Some(event.period.as_secs_f64()));
    object.float("refill_per_s", Some(event.refill_per_s()));
    object.number("used", event.used);
    object.number("remaining", event.remaining);
    object.number("refused", event.refused);
    object.maybe_text("reason", event.reason.map(told_reason));
    object.float("retry_after_s", event.retry_after.map(|wait| wait.as_secs_f64()));
    object.number("times", entry.times);
    object.time("first_at", entry.first_at);
    object.time("at", event.at);
    object.close()
}

const fn told_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Exhausted => "exhausted",
        Reason::TooLarge => "too_large",
        Reason::Full => "full",
        Reason::Unsupported => "unsupported",
    }
}

/// The first ones, as many as there is room for.
fn list_of_offenders(offenders: &[Offender]) -> String {
    let mut list = String::from("[");
    for offender in offenders.iter().take(OFFENDERS_TOLD) {
        let mut object = Object::new();
        object.text("rule", &offender.rule);
        object.raw("shadow", if offender.is_shadow { "true" } else { "false" });
        object.number("limit_number", offender.limit_number as u64);
        object.maybe_text("key", offender.key.as_deref());
        object.text("fingerprint", &format!("{:012x}", offender.fingerprint));
        object.number("refused_least", offender.refused_least);
        object.number("refused_most", offender.refused_most);
        let object = object.close();
        if list.len() + object.len() > OFFENDERS_MAX {
            break;
        }
        list.push_str(if list.len() == 1 { "" } else { "," });
        list.push_str(&object);
    }
    list.push(']');
    list
}

/// An object of JSON, whose fields stay in the order in which they were given.
struct Object(String);

impl Object {
    fn new() -> Self {
        Self(String::from("{"))
    }

    /// `value` is JSON already.
    fn raw(&mut self, name: &str, value: &str) {
        let comma = if self.0.len() == 1 { "" } else { "," };
        // A String takes everything.
        _ = write!(self.0, "{comma}\"{name}\":{value}");
    }

    fn text(&mut self, name: &str, text: &str) {
        self.raw(name, &Value::from(cut_short(text)).to_string());
    }

    fn maybe_text(&mut self, name: &str, text: Option<&str>) {
        match text {
            Some(text) => self.text(name, text),
            None => self.raw(name, "null"),
        }
    }

    fn number(&mut self, name: &str, number: u64) {
        self.raw(name, &number.to_string());
    }

    /// JSON has no number for infinity.
    fn float(&mut self, name: &str, number: Option<f64>) {
        match number {
            Some(number) if number.is_finite() => self.raw(name, &number.to_string()),
            _ => self.raw(name, "null"),
        }
    }

    fn time(&mut self, name: &str, unix: Duration) {
        self.text(name, &rfc_3339(unix));
    }

    fn open(self) -> String {
        self.0
    }

    fn close(self) -> String {
        self.0 + "}"
    }
}

fn cut_short(text: &str) -> String {
    if text.len() <= TEXT_MAX {
        return text.to_owned();
    }
    let end = (0..=TEXT_MAX - '…'.len_utf8()).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// In UTC, to the millisecond. What is after the year 9999 is told as its end.
pub(super) fn rfc_3339(unix: Duration) -> String {
    const LAST_MS: u128 = 253_402_300_799_999;
    let ns = i128::try_from(unix.as_millis().min(LAST_MS) * 1_000_000).unwrap_or(0);
    let time = OffsetDateTime::from_unix_timestamp_nanos(ns).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    time.format(&Rfc3339).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{event, offender};
    use super::*;
    use crate::policy::EventKind;

    const FRAME: Frame = Frame {
        since: Duration::from_secs(1_767_225_550),
        until: Duration::from_secs(1_767_225_610),
        undelivered: 0,
    };

    #[test]
    fn times_are_told_in_utc() {
        assert_eq!(rfc_3339(Duration::from_millis(1_767_225_600_250)), "2026-01-01T00:00:00.25Z");
        assert_eq!(rfc_3339(Duration::ZERO), "1970-01-01T00:00:00Z");
        assert_eq!(rfc_3339(Duration::MAX), "9999-12-31T23:59:59.999Z");
    }

    /// The page shows what is sent, line breaks aside.
    #[test]
    fn the_body_is_the_one_in_the_docs() {
        let mut pending = Pending::default();
        let mut refusing = event(EventKind::StillRefusing, 7);
        (refusing.refused, refusing.used, refusing.remaining) = (41, 14, 6);
        refusing.at = Duration::from_millis(1_767_225_604_250);
        let mut recovered = event(EventKind::Recovered, 7);
        (recovered.refused, recovered.at) = (42, Duration::from_millis(1_767_225_608_250));
        let first = event(EventKind::Refused, 7);
        assert!([&first, &refusing, &recovered].iter().all(|event| pending.add(event)));
        let worst = Offender { refused_least: 42, refused_most: 42, ..offender(7) };
        let (body, events) = take(&mut pending, &FRAME, &[worst]).unwrap();
        assert_eq!(events, 3);
        let page = include_str!("../../../docs/webhooks.md");
        let shown = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let unfolded: String = shown.lines().map(str::trim_start).collect();
        assert_eq!(body, unfolded);
        let read: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(read["data"]["events"][2]["event"], "recovered");
    }

    #[test]
    fn a_flood_of_texts_that_grow_is_below_the_bound() {
        let mut pending = Pending::default();
        let grows = "\u{1}".repeat(400);
        for key in 0..10_000 {
            let mut event = event(EventKind::Refused, key);
            event.key = Some(format!("{key}{grows}").into());
            (event.rule, event.policy) = (grows.as_str().into(), grows.as_str().into());
            (event.limit, event.used, event.refused) = (u64::MAX, u64::MAX, u64::MAX);
            (event.period, event.at) = (Duration::ZERO, Duration::MAX);
            pending.add(&event);
        }
        let mut worst = offender(1);
        (worst.rule, worst.key) = (grows.as_str().into(), Some(grows.as_str().into()));
        let worst = vec![worst; 40];
        let (mut told, mut bodies) = (0, 0);
        while let Some((body, events)) = take(&mut pending, &FRAME, &worst) {
            assert!(body.len() < BODY_MAX && events > 0, "{} bytes, {events} events", body.len());
            let read: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(read["data"]["events"].as_array().unwrap().len() as u64, events);
            assert_eq!(read["data"]["left_out"], if bodies == 0 { 9_900 } else { 0 });
            assert!(!read["data"]["offenders"].as_array().unwrap().is_empty());
            (told, bodies) = (told + events, bodies + 1);
        }
        assert_eq!(told, 100);
        // Of ordinary keys a body holds some forty.
        (0..100).for_each(|key| assert!(pending.add(&event(EventKind::Refused, key))));
        let (body, events) = take(&mut pending, &FRAME, &[]).unwrap();
        assert!(events >= 40 && body.len() > BODY_MAX - 500, "{events} events in {} bytes", body.len());
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut_short(&"ä".repeat(64)), "ä".repeat(64));
        let cut = cut_short(&"ä".repeat(65));
        assert_eq!((cut.len(), cut.chars().count()), (127, 63));
    }

    #[test]
    fn a_message_is_about_one_policy() {
        let mut pending = Pending::default();
        let mut other = event(EventKind::Refused, 1);
        other.policy = "gateway".into();
        assert!(pending.add(&event(EventKind::Refused, 1)) && pending.add(&other));
        for name in ["shop", "gateway"] {
            let (body, events) = take(&mut pending, &FRAME, &[]).unwrap();
            assert!(body.contains(&format!("\"policy\":\"{name}\"")) && events == 1, "{body}");
        }
        assert_eq!(take(&mut pending, &FRAME, &[]), None);
    }
}
