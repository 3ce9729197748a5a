//! Lines as a subscriber writes them.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span;
use tracing::subscriber::with_default;
use tracing::{Metadata, Subscriber};

use super::*;
use crate::decision::WindowName;
use crate::time::Manual;

/// All that was written.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn text_log(&self, most: LevelFilter) -> impl Subscriber + use<> {
        let to = self.clone();
        let builder = tracing_subscriber::fmt().with_writer(move || to.clone()).with_max_level(most);
        builder.with_ansi(false).without_time().finish()
    }

    fn json_log(&self) -> impl Subscriber + use<> {
        let to = self.clone();
        let builder = tracing_subscriber::fmt().with_writer(move || to.clone());
        builder.json().flatten_event(true).finish()
    }

    fn json(&self) -> Vec<serde_json::Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A subscriber that writes every text as it is, a line an event.
struct Careless(Written);

impl Visit for Written {
    fn record_str(&mut self, field: &Field, value: &str) {
        write!(self, " {field}={value}").unwrap();
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Careless {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut to = self.0.clone();
        event.record(&mut to);
        to.write_all(b"\n").unwrap();
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

fn event(kind: EventKind) -> Event {
    Event {
        kind,
        at: Duration::from_secs(1_800_000_000),
        policy: "public".into(),
        rule: "address".into(),
        is_shadow: false,
        limit_number: 1,
        window: WindowName::Burst,
        key: Some("192.0.2.7".into()),
        fingerprint: 0xbeef,
        limit: 10,
        period: Duration::from_millis(1500),
        used: 12,
        remaining: 0,
        refused: 2,
        reason: Some(Reason::Exhausted),
        retry_after: Some(Duration::from_millis(250)),
    }
}

/// A log that tells `burst` lines, and one more a second; and its clock.
fn log(burst: u64) -> (Log<Manual>, Manual) {
    let clock = Manual::new();
    let limiter = SingleLimiter::builder(Limit::bucket(Rate::per_second(1), burst)).clock(clock.clone());
    (Log::limited_by(limiter.build().unwrap()), clock)
}

#[test]
fn a_line_tells_the_whole_event() {
    let written = Written::default();
    let (log, _clock) = log(10);
    with_default(written.text_log(LevelFilter::INFO), || log.tell(&event(EventKind::Refused)));
    let expected = " WARN tidegate: refused policy=\"public\" rule=\"address\" limit_number=1 window=\"burst\" shadow=false \
                    key=\"192.0.2.7\" fingerprint=\"00000000beef\" limit=10 period_s=1.5 used=12 remaining=0 refused=2 \
                    reason=\"exhausted\" retry_after_s=0.25 left_out=0\n";
    assert_eq!(written.text(), expected);

    let written = Written::default();
    let log = log.without_keys();
    let warned = Event { policy: "".into(), reason: None, retry_after: None, ..event(EventKind::Warned) };
    with_default(written.json_log(), || log.tell(&warned));
    let json = &written.json()[0];
    assert_eq!((&json["message"], &json["level"]), (&"warned".into(), &"INFO".into()));
    assert_eq!(
        (&json["fingerprint"], &json["used"], &json["period_s"]),
        (&"00000000beef".into(), &12.into(), &1.5.into())
    );
    for absent in ["policy", "key", "reason", "retry_after_s"] {
        assert!(json.get(absent).is_none(), "{json}");
    }
}

#[test]
fn refusals_are_warnings_and_what_shadow_rules_would_do_is_not() {
    let written = Written::default();
    let (log, _clock) = log(10);
    let kinds = [EventKind::Warned, EventKind::Refused, EventKind::StillRefusing, EventKind::Recovered];
    with_default(written.json_log(), || {
        for kind in kinds {
            log.tell(&event(kind));
            log.tell(&Event { is_shadow: true, ..event(kind) });
        }
    });
    let told: Vec<String> =
        written.json().iter().map(|line| format!("{} {}", line["message"], line["level"])).collect();
    let expected = [
        ("warned", "INFO", "INFO"),
        ("refused", "WARN", "INFO"),
        ("still_refusing", "WARN", "INFO"),
        ("recovered", "INFO", "INFO"),
    ];
    let expected = expected.into_iter().flat_map(|(kind, real, shadow)| [(kind, real), (kind, shadow)]);
    assert_eq!(told, expected.map(|(kind, level)| format!("\"{kind}\" \"{level}\"")).collect::<Vec<_>>());
}

#[test]
fn a_few_are_told_and_the_rest_are_counted_once() {
    let written = Written::default();
    let (log, clock) = log(2);
    with_default(written.json_log(), || {
        log.end();
        for _ in 0..7 {
            log.tell(&event(EventKind::Refused));
        }
        // Not yet, and then one.
        clock.advance(Duration::from_nanos(999_999_999));
        log.tell(&event(EventKind::Refused));
        clock.advance(Duration::from_nanos(1));
        log.tell(&event(EventKind::Recovered));
        log.tell(&event(EventKind::Warned));
        clock.set(Duration::ZERO);
        log.tell(&event(EventKind::Warned));
        log.end();
        log.end();
    });
    let told: Vec<String> =
        written.json().iter().map(|line| format!("{} {}", line["message"], line["left_out"])).collect();
    assert_eq!(
        told,
        ["\"refused\" 0", "\"refused\" 0", "\"recovered\" 6", "\"events that are not in the log\" 2"]
    );
}

#[test]
fn what_nobody_wants_to_read_takes_no_place() {
    let written = Written::default();
    let (log, _clock) = log(1);
    with_default(written.text_log(LevelFilter::WARN), || {
        for _ in 0..5 {
            log.tell(&event(EventKind::Warned));
        }
        log.tell(&event(EventKind::Refused));
        log.end();
    });
    let text = written.text();
    assert!(text.lines().count() == 1 && text.ends_with("left_out=0\n"), "{text}");
}

#[test]
fn no_text_forges_a_line_or_speaks_to_a_terminal() {
    let hostile = "a\n WARN tidegate: refused key=\"b\" \r\u{1b}[31m\u{9b}31m\u{7}\0\u{202e}\u{2066}\u{2028}\u{2029}\u{85}\u{61c}";
    let event = Event {
        policy: hostile.into(),
        rule: hostile.into(),
        key: Some(hostile.into()),
        ..event(EventKind::Refused)
    };
    let (log, _clock) = log(10);
    let [text, json, careless] = [(); 3].map(|()| Written::default());
    with_default(text.text_log(LevelFilter::INFO), || log.tell(&event));
    with_default(json.json_log(), || log.tell(&event));
    with_default(Careless(careless.clone()), || log.tell(&event));
    for written in [text, json, careless] {
        let text = written.text();
        let line = text.strip_suffix('\n').unwrap();
        let is_hostile = |c: char| c.is_control() || "\u{202e}\u{2066}\u{2028}\u{2029}\u{61c}".contains(c);
        assert!(!line.contains(is_hostile), "{line:?}");
        assert!(line.contains("31m"), "what is harmless is there: {line}");
    }
    // And none looks like another.
    assert_ne!(escaped("\n"), escaped("\\n"));
    assert_eq!(escaped("äöü 漢 \"x\""), "äöü 漢 \"x\"");
}

#[test]
fn threads_lose_no_event_between_them() {
    const EACH: usize = 2000;
    let written = Written::default();
    let (log, clock) = log(1);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                with_default(written.json_log(), || {
                    for _ in 0..EACH {
                        log.tell(&event(EventKind::Refused));
                        clock.advance(Duration::from_millis(10));
                    }
                });
            });
        }
    });
    with_default(written.json_log(), || log.end());
    let lines = written.json();
    let told = lines.iter().filter(|line| line["message"] == "refused").count();
    let left_out: u64 = lines.iter().map(|line| line["left_out"].as_u64().unwrap()).sum();
    assert!(told > 10 && left_out > 10, "{told} {left_out}");
    assert_eq!(u64::try_from(told).unwrap() + left_out, 4 * u64::try_from(EACH).unwrap());
}
