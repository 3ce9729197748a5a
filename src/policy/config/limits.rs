//! Limits: which of the four kinds a table is, what belongs to it, and whether a limiter could honour it.

use std::time::Duration;

use super::fields::{LIMIT, LIMIT_WANTED, OPENS, Shape, WINDOW};
use super::length;
use super::node::{Node, Value, quoted};
use super::problem::Problem;
use super::reader::{Fields, Given, Reader};
use crate::error::ConfigError;
use crate::limit::{Alignment, Limit, Rate, Shape as Kind, Window};
use crate::policy::OnRefusal;
use crate::word::Rule as Word;

/// A limit and the table that it was read from.
pub(super) struct Read<'n> {
    pub(super) limit: Limit,
    fields: Fields<'n>,
    path: String,
}

/// A field that says of which kind a limit is, and what else belongs to that kind.
const KINDS: [(&str, &str, &[&str]); 4] = [
    ("rate", "a bucket", &["rate", "burst", "debt_max"]),
    ("window", "a window", &["window", "opens"]),
    ("sliding", "a sliding window", &["sliding", "opens"]),
    ("sustain", "a pair of windows", &["sustain", "burst", "opens"]),
];

impl Reader<'_> {
    /// The limits of a rule, or of an override of a rule that has the limits `base`. None if any of them is wrong.
    pub(super) fn limits<'n>(&mut self, of: &Fields<'n>, base: Option<&[Read<'_>]>) -> Option<Vec<Read<'n>>> {
        let items = match (of.get("limit"), of.get("limits")) {
            (Some(one), None) => vec![(of.path("limit"), one.node)],
            (None, Some(many)) => {
                let items = self.list(of, "limits");
                if items.is_empty() && matches!(many.node.value, Value::List(_)) {
                    self.not_allowed(many.node, &of.path("limits"), "a list of one or more limits", None);
                }
                items
            }
            (Some(_), Some(many)) => {
                let path = of.path("limits");
                let problem = Problem::new(&path, "both limit and limits are there");
                self.report(
                    many.at,
                    problem.with_allowed("several limits are one list, limits = [{ … }, { … }]"),
                );
                return None;
            }
            (None, None) => {
                if !of.is_misspelt("limits") {
                    self.lacks(of, "limit", LIMIT_WANTED);
                }
                return None;
            }
        };
        if let Some(base) = base
            && base.len() != items.len()
            && !items.is_empty()
        {
            let path = of.path("limits");
            let says = format!("{path} has {}, and the rule has {}", items.len(), base.len());
            let problem = Problem::new(&path, says).with_found(items.len().to_string());
            self.report(
                of.at,
                problem.with_allowed("an override has one for each of the rule's, in their order"),
            );
            return None;
        }
        let count = items.len();
        let read = items.into_iter().enumerate().filter_map(|(at, (path, node))| {
            let opens = base.and_then(|base| base.get(at)).map(|base| base.limit.alignment());
            self.limit(node, path, opens)
        });
        let read: Vec<Read<'n>> = read.collect();
        (read.len() == count && count > 0).then_some(read)
    }

    /// What a table says, whether or not a limiter could honour it.
    fn limit<'n>(&mut self, node: &'n Node, path: String, opens: Option<Alignment>) -> Option<Read<'n>> {
        if !matches!(node.value, Value::Table(_)) {
            let meant = match &node.value {
                Value::Text(text) => length::quota(text).map(|_| format!("{{ window = {} }}", quoted(text))),
                _ => None,
            };
            self.not_allowed(node, &path, LIMIT_WANTED, meant.as_deref());
            return None;
        }
        let fields = self.fields(node, &path, &LIMIT)?;
        let named: Vec<_> = KINDS.iter().filter(|(name, ..)| fields.get(name).is_some()).collect();
        let (kind, what, belongs) = match named[..] {
            [kind] => *kind,
            [] => {
                let burst =
                    fields.get("burst").filter(|_| !KINDS.iter().any(|(name, ..)| fields.is_misspelt(name)));
                if let Some(burst) = burst {
                    let problem = Problem::new(&path, format!("{path} has burst alone"));
                    self.report(
                        burst.at,
                        problem.with_allowed("beside it must stand rate (a bucket) or sustain (two windows)"),
                    );
                } else if !KINDS.iter().any(|(name, ..)| fields.is_misspelt(name)) {
                    self.missing(node.at, &path, LIMIT_WANTED);
                }
                return None;
            }
            [first, second, ..] => {
                let at = fields.get(second.0).map_or(node.at, |given| given.at);
                let problem = Problem::new(&path, format!("{path} has both {} and {}", first.0, second.0));
                self.report(
                    at,
                    problem.with_allowed(
                        "a limit is of one kind; several limits are a list, limits = [{ … }, { … }]",
                    ),
                );
                return None;
            }
        };
        let stray = LIMIT.names().into_iter().filter(|name| !belongs.contains(name));
        for (name, given) in stray.filter_map(|name| fields.get(name).map(|given| (name, given))) {
            let field = fields.path(name);
            let problem = Problem::new(&field, format!("{field} does not belong to {what}"));
            self.report(given.at, problem.with_allowed(format!("{what} has {}", belongs.join(", "))));
        }
        let limit = match kind {
            "rate" => self.bucket(&fields),
            "window" => self.window(&fields, "window").map(Limit::window),
            "sliding" => self.window(&fields, "sliding").map(Limit::sliding_window),
            _ => self.pair(&fields),
        };
        let opens = if kind == "rate" { None } else { self.choice(&fields, "opens", &OPENS).or(opens) };
        let limit = limit?.align(opens.unwrap_or_default());
        Some(Read { limit, fields, path })
    }

    fn bucket(&mut self, fields: &Fields<'_>) -> Option<Limit> {
        let rate = fields.get("rate")?;
        let read = match &rate.node.value {
            Value::Text(text) => length::quota(text),
            _ => None,
        };
        if read.is_none() {
            self.wrong(rate.node, &fields.path("rate"), rate.shape());
        }
        let burst = match fields.get("burst") {
            None => {
                self.lacks(fields, "burst", "the most tokens that the bucket holds, a whole number");
                None
            }
            Some(given) => match given.node.value {
                Value::Whole(_) | Value::Number(_) => {
                    self.count_in(given.node, &fields.path("burst"), given.shape())
                }
                _ => {
                    let count = Shape::Count { min: 1, max: u64::MAX };
                    self.wrong(given.node, &fields.path("burst"), &count);
                    None
                }
            },
        };
        let debt_max = self.count(fields, "debt_max");
        let (tokens, period) = read?;
        let limit = Limit::bucket(Rate::new(tokens, period), burst?);
        Some(debt_max.map_or(limit, |tokens| limit.debt_max(tokens)))
    }

    fn pair(&mut self, fields: &Fields<'_>) -> Option<Limit> {
        self.lacks(fields, "burst", "the short window, as in \"30/15s\"");
        let (burst, sustain) = (self.window(fields, "burst"), self.window(fields, "sustain"));
        Some(Limit::burst_sustain(burst?, sustain?))
    }

    fn window(&mut self, fields: &Fields<'_>, name: &str) -> Option<Window> {
        let given = fields.get(name)?;
        let path = fields.path(name);
        match &given.node.value {
            Value::Text(text) => {
                let read = length::quota(text);
                if read.is_none() {
                    self.not_window(&given, &path);
                }
                read.map(|(limit, period)| Window::new(limit, period))
            }
            Value::Table(_) => {
                let long = self.fields(given.node, &path, &WINDOW)?;
                let limit = self.count(&long, "limit");
                let period = self.period(&long);
                Some(Window::new(limit?, period?))
            }
            _ => {
                self.not_window(&given, &path);
                None
            }
        }
    }

    fn not_window(&mut self, given: &Given<'_>, path: &str) {
        let allowed = "how many in which time, as in \"100/15s\", or a table of limit and period";
        self.not_allowed(given.node, path, allowed, None);
    }

    fn period(&mut self, long: &Fields<'_>) -> Option<Duration> {
        let given = long.get("period")?;
        let (read, meant) = match &given.node.value {
            Value::Text(text) => (length::duration(text), None),
            Value::Whole(seconds) => (None, Some(format!("{seconds}s"))),
            _ => (None, None),
        };
        if read.is_none() {
            self.not_allowed(given.node, &long.path("period"), &given.shape().allowed(), meant.as_deref());
        }
        read
    }

    /// Settles what of a limit depends on its rule, and reports what no limiter could honour.
    pub(super) fn settle(&mut self, read: &mut Read<'_>, on_refusal: OnRefusal) -> Limit {
        if !matches!(read.limit.shape(), Kind::Bucket { .. }) {
            read.limit = read.limit.count_refused(on_refusal == OnRefusal::Count);
        }
        if let Err(error) = Word::new(&read.limit) {
            self.unbuildable(read, &error);
        }
        read.limit
    }

    fn unbuildable(&mut self, read: &Read<'_>, error: &ConfigError) {
        let field = blamed(error).find_map(|name| read.fields.get(name).map(|given| (name, given.node.at)));
        let (path, at) = match field {
            Some((name, at)) => (read.fields.path(name), at),
            None => (read.path.clone(), read.fields.at),
        };
        let whole = error.to_string();
        let (says, allowed) = whole.split_once("; ").unwrap_or((&whole, ""));
        let says = says.replace("FirstRequest", "\"first-request\"");
        let allowed = allowed.replace("Clock or PerKey", "\"clock\" or \"per-key\"");
        self.report(at, Problem::new(&path, format!("{path}: {says}")).with_allowed(allowed));
    }

    /// Reports what an override may not change.
    pub(super) fn follows(&mut self, read: &Read<'_>, base: &Read<'_>) {
        let path = &read.path;
        let Err(error) = read.limit.follows(&base.limit) else { return };
        let (says, allowed) = match error {
            ConfigError::KindChanged { built, given } => {
                (format!("{path} is {given}"), format!("it must be {built}, as the rule's is"))
            }
            ConfigError::PeriodChanged { field, built, given } => (
                format!("{path}: {field} is {}", length::written(given)),
                format!(
                    "it must be {}, as the rule's is: an override changes how many, not in which time",
                    length::written(built)
                ),
            ),
            ConfigError::AlignmentChanged { .. } => (
                format!("{path}.opens is another than the rule's"),
                "leave it out: it is the rule's".to_owned(),
            ),
            error => (format!("{path}: {error}"), String::new()),
        };
        let at = blamed(&error)
            .find_map(|name| read.fields.get(name))
            .map_or(read.fields.at, |given| given.node.at);
        let problem = Problem::new(path, says);
        self.report(at, if allowed.is_empty() { problem } else { problem.with_allowed(allowed) });
    }
}

/// The fields that an error is about; the first that is there is to blame.
fn blamed(error: &ConfigError) -> impl Iterator<Item = &'static str> {
    let names: &[&str] = match error {
        ConfigError::Zero { field }
        | ConfigError::ZeroPeriod { field }
        | ConfigError::BeyondHorizon { field, .. }
        | ConfigError::TooWide { field, .. }
        | ConfigError::PeriodChanged { field, .. } => match field.split(' ').next() {
            Some("rate") => &["rate"],
            Some("burst") => &["burst"],
            Some("sustain") => &["sustain"],
            _ => &["window", "sliding"],
        },
        ConfigError::NotAMultiple { .. } | ConfigError::SustainBelowBurst { .. } => &["sustain"],
        ConfigError::BurstTooLarge { .. } => &["burst"],
        ConfigError::RateTooHigh { .. } => &["rate"],
        ConfigError::PeriodsTooWide { .. } => &["burst", "window", "sliding"],
        ConfigError::SlidingFromFirstRequest | ConfigError::AlignmentChanged { .. } => &["opens"],
        _ => &[],
    };
    names.iter().copied()
}

impl Read<'_> {
    pub(super) fn is_sliding(&self) -> bool {
        matches!(self.limit.shape(), Kind::Sliding(_))
    }
}
