//! Series as Prometheus reads them: a recorder of the facade `metrics`, and the text of all that it has.
//!
//! The crate metrics-exporter-prometheus (0.18.3) does this too. With it the series of a rule that is gone would stay until the
//! end, families would stand in another order in each answer, two backslashes of a label would be read as one, and what
//! histograms need would be built, of which the server has none.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::atomics::AtomicU64;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// The type of the text: <https://prometheus.io/docs/instrumenting/exposition_formats/#text-format-details>.
pub(super) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Series by their names. One is told as long as somebody holds its handle.
#[derive(Default)]
pub(super) struct Registry {
    families: Mutex<BTreeMap<String, Family>>,
}

#[derive(Default)]
struct Family {
    kind: Kind,
    says: String,
    /// By their labels as they stand in the text. A gauge's word holds the bits of a floating point number, as the facade has it.
    series: BTreeMap<String, Arc<AtomicU64>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Counter,
    Gauge,
}

impl Registry {
    /// All series that somebody holds, by name and labels.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (name, family) in self.families().iter_mut() {
            family.series.retain(|_, word| Arc::strong_count(word) > 1);
            if family.series.is_empty() {
                continue;
            }
            let kind = match family.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            // Writing to a string does not fail.
            _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", family.says);
            for (labels, word) in &family.series {
                // ORDERING: Relaxed: each series is a count for itself.
                let word = word.load(std::sync::atomic::Ordering::Relaxed);
                _ = match family.kind {
                    Kind::Counter => writeln!(text, "{name}{labels} {word}"),
                    Kind::Gauge => writeln!(text, "{name}{labels} {}", f64::from_bits(word)),
                };
            }
        }
        text
    }

    /// Nothing that holds it panics.
    fn families(&self) -> MutexGuard<'_, BTreeMap<String, Family>> {
        self.families.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn describe(&self, name: &KeyName, kind: Kind, says: &str) {
        let mut families = self.families();
        let family = families.entry(name.as_str().to_owned()).or_default();
        (family.kind, family.says) = (kind, escaped(says, false));
    }

    fn word(&self, key: &Key, kind: Kind) -> Arc<AtomicU64> {
        let mut families = self.families();
        let family = families.entry(key.name().to_owned()).or_default();
        family.kind = kind;
        Arc::clone(family.series.entry(labels(key)).or_default())
    }
}

impl Recorder for Registry {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, says: SharedString) {
        self.describe(&name, Kind::Counter, &says);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, says: SharedString) {
        self.describe(&name, Kind::Gauge, &says);
    }

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.word(key, Kind::Counter))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.word(key, Kind::Gauge))
    }

    /// Nobody here makes one.
    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// Names are those that stand in the sources; values may be anybody's.
fn labels(key: &Key) -> String {
    let mut text = String::new();
    for label in key.labels() {
        let before = if text.is_empty() { '{' } else { ',' };
        _ = write!(text, "{before}{}=\"{}\"", label.key(), escaped(label.value(), true));
    }
    if !text.is_empty() {
        text.push('}');
    }
    text
}

/// What the format asks for; quotes end a label only.
fn escaped(text: &str, is_label: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if is_label { text.replace('"', "\\\"") } else { text }
}

#[cfg(test)]
mod tests {
    use metrics::{Label, Level};

    use super::*;

    const METADATA: Metadata<'static> = Metadata::new("", Level::INFO, None);

    fn key(name: &'static str, labels: &[(&'static str, &str)]) -> Key {
        let labels: Vec<Label> =
            labels.iter().map(|(name, value)| Label::new(*name, (*value).to_owned())).collect();
        Key::from_parts(name, labels)
    }

    #[test]
    fn series_stand_by_family_and_go_with_their_handles() {
        let registry = Registry::default();
        registry.describe_counter("b_total".into(), None, "Of \\ and\n\"lines\"".into());
        let first = registry.register_counter(&key("b_total", &[("of", "x"), ("by", "1")]), &METADATA);
        let gauge = registry.register_gauge(&key("c", &[]), &METADATA);
        let second = registry.register_counter(&key("b_total", &[("of", "a")]), &METADATA);
        let same = registry.register_counter(&key("b_total", &[("of", "a")]), &METADATA);
        registry.describe_gauge("unused".into(), None, "Nothing of it is told".into());
        first.increment(u64::MAX);
        second.increment(2);
        same.increment(3);
        gauge.set(-0.5);
        let help = "# HELP b_total Of \\\\ and\\n\"lines\"\n# TYPE b_total counter\n";
        let rest = "b_total{of=\"x\",by=\"1\"} 18446744073709551615\n# HELP c \n# TYPE c gauge\nc -0.5\n";
        assert_eq!(registry.text(), format!("{help}b_total{{of=\"a\"}} 5\n{rest}"));
        drop(second);
        assert!(registry.text().contains("of=\"a\""), "the other handle is there");
        drop(same);
        assert_eq!(registry.text(), format!("{help}{rest}"));
        // One of that name begins anew.
        let again = registry.register_counter(&key("b_total", &[("of", "a")]), &METADATA);
        again.increment(1);
        assert!(registry.text().contains("b_total{of=\"a\"} 1\n"));
    }

    #[test]
    fn no_label_ends_before_its_end() {
        let registry = Registry::default();
        let hostile = ["\"} 1\nforged 1", "\\", "\\\\", "\\\"", "a\\nb"];
        let handles = hostile.map(|value| registry.register_counter(&key("a", &[("v", value)]), &METADATA));
        let text = registry.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines.len(), hostile.len(), "{text}");
        for value in hostile {
            // Read back as the format has it.
            let read = |line: &&str| {
                let quoted = line.strip_prefix("a{v=\"").unwrap().strip_suffix("\"} 0").unwrap();
                let (mut read, mut chars) = (String::new(), quoted.chars());
                while let Some(c) = chars.next() {
                    assert_ne!(c, '"', "{line}");
                    read.push(match c {
                        '\\' => match chars.next().unwrap() {
                            'n' => '\n',
                            c => c,
                        },
                        c => c,
                    });
                }
                read
            };
            assert!(lines.iter().any(|line| read(line) == value), "{value:?} in {text}");
        }
        drop(handles);
    }
}
