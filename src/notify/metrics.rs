//! [`Metrics`]: what a policy has counted, for the facade `metrics`. The only file that names it.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::sync::{Mutex, PoisonError};

use metrics::{Counter, Gauge, Key, KeyName, Label, Level, Metadata, SharedString, Unit, with_recorder};

#[cfg(feature = "webhook")]
use super::webhook::{EndpointStatus, Webhooks};
use crate::policy::{Counts, LimitCounts, Policy, RuleCounts};
use crate::time::Clock;

/// Series of one name.
struct Family {
    name: &'static str,
    is_gauge: bool,
    says: &'static str,
}

const fn counter(name: &'static str, says: &'static str) -> Family {
    Family { name, is_gauge: false, says }
}

const CHECKS: Family = counter("tidegate_policy_checks_total", "Requests that the policy decided");
const REFUSALS: Family =
    counter("tidegate_refusals_total", "Requests that a limit refused, by the window to wait for");
const SHADOW_REFUSALS: Family =
    counter("tidegate_shadow_refusals_total", "Requests that a limit of a shadow rule would have refused");
const LIVE_KEYS: Family =
    Family { name: "tidegate_live_keys", is_gauge: true, says: "Keys that owe something now, estimated" };
const CLAIMED: Family = counter("tidegate_keys_claimed_total", "Places claimed for new keys");
const EVICTIONS: Family =
    counter("tidegate_forced_evictions_total", "Keys evicted for want of room that owed something");
const FULL: Family = counter("tidegate_keys_refused_total", "New keys refused for want of room");
const UNTRACKED: Family =
    counter("tidegate_keys_untracked_total", "New keys that passed uncounted for want of room");
const RACES: Family = counter(
    "tidegate_races_lost_total",
    "Checks that lost every race and were answered as if there were no room",
);
const LEASES: Family = counter("tidegate_leases_total", "Leases of hot keys that threads took");
const LAPSED: Family =
    counter("tidegate_lapsed_tokens_total", "Tokens of leases that were charged and spent by nobody");
const STALLS: Family =
    counter("tidegate_clock_stalls_total", "Times that the clock was found stopped, and done without");
const DROPPED: Family = counter("tidegate_events_dropped_total", "Events dropped for want of room");
const UNSEEN: Family =
    counter("tidegate_refusals_unseen_total", "Refusals that events and offenders know nothing of");

const MESSAGES: Family =
    counter("tidegate_webhook_messages_total", "Messages to endpoints of webhooks, by what became of them");
const FAILED: Family = counter(
    "tidegate_webhook_failed_attempts_total",
    "Attempts at a message that failed; it is tried again while it may be",
);
const TOLD: Family =
    counter("tidegate_webhook_events_total", "Events that an endpoint wanted, by what became of them");
const GONE: Family = Family {
    name: "tidegate_webhook_gone",
    is_gauge: true,
    says: "1 of an endpoint that answered 410, and gets nothing more; else 0",
};

const FAMILIES: [&Family; 18] = [
    &CHECKS,
    &REFUSALS,
    &SHADOW_REFUSALS,
    &LIVE_KEYS,
    &CLAIMED,
    &EVICTIONS,
    &FULL,
    &UNTRACKED,
    &RACES,
    &LEASES,
    &LAPSED,
    &STALLS,
    &DROPPED,
    &UNSEEN,
    &MESSAGES,
    &FAILED,
    &TOLD,
    &GONE,
];

static METADATA: Metadata<'static> = Metadata::new("tidegate", Level::INFO, Some(module_path!()));

/// Tells what a policy has [counted](Policy::counts) to the recorder of the facade `metrics`: a local one, or the one that
/// the program has installed.
///
/// Checks count by themselves and know nothing of it. Call [`publish`](Self::publish) before each scrape, or every few
/// seconds. Each policy needs a `Metrics` of its own, with a [label](Self::label) that tells it from others.
///
/// | series | what |
/// |---|---|
/// | `tidegate_policy_checks_total` | requests that the policy decided |
/// | `tidegate_refusals_total{rule, limit, window}` | requests that a limit refused, by the window that they have to wait for; one that several refuse is in each |
/// | `tidegate_shadow_refusals_total{rule, limit, window}` | the same of rules that only watch, which refuse nobody |
/// | `tidegate_live_keys{rule, limit}` | keys that owe something now, a gauge: see [`Stats::live_estimate`](crate::Stats::live_estimate) |
/// | `tidegate_keys_claimed_total{rule, limit}` | places claimed for new keys |
/// | `tidegate_forced_evictions_total{rule, limit}` | evictions of keys that owed something |
/// | `tidegate_keys_refused_total{rule, limit}` | new keys refused for want of room |
/// | `tidegate_keys_untracked_total{rule, limit}` | new keys that passed uncounted for want of room |
/// | `tidegate_races_lost_total{rule, limit}` | checks that lost every race and were answered as if there were no room |
/// | `tidegate_leases_total{rule, limit}` | leases of hot keys |
/// | `tidegate_lapsed_tokens_total{rule, limit}` | tokens of leases that nobody spent |
/// | `tidegate_clock_stalls_total` | how often the clock's refresher was found stopped, and done without |
/// | `tidegate_events_dropped_total` | events dropped for want of room |
/// | `tidegate_refusals_unseen_total` | refusals that events and offenders know nothing of |
///
/// and, with the feature `webhook`, of [`publish_webhooks`](Self::publish_webhooks):
///
/// | series | what |
/// |---|---|
/// | `tidegate_webhook_messages_total{endpoint, outcome}` | messages that were `delivered`, `given_up` or, at a stop, `lost` |
/// | `tidegate_webhook_failed_attempts_total{endpoint}` | attempts that failed |
/// | `tidegate_webhook_events_total{endpoint, outcome}` | events that were `delivered`, `left_out` for want of room, `undelivered`, or at a stop `lost` |
/// | `tidegate_webhook_gone{endpoint}` | 1 where the endpoint answered 410, a gauge |
///
/// `limit` is the limit's number among the rule's, from 0.
///
/// Counters never go back. Of a rule that is gone they stay where they are, and its gauge is 0. A limit that begins anew with a
/// reload goes on from there, as far as it can be told: not if between two calls it counts more than the one before it had.
///
/// ```
/// use tidegate::notify::Metrics;
/// use tidegate::policy::{EventSettings, Policy, Rules};
///
/// let text = r#"
/// [[rule]]
/// name = "address"
/// key = "client_ip"
/// limit = { rate = "2/s", burst = 5 }
/// "#;
/// let rules = Rules::from_toml(text, "limits.toml")?;
/// let policy = Policy::builder(rules).events(EventSettings::new()).build()?;
/// // Once, after the program has installed its recorder:
/// Metrics::describe();
/// let metrics = Metrics::new().label("policy", "public");
/// // Before each scrape:
/// metrics.publish(&policy);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Metrics {
    labels: Vec<Label>,
    /// Held from before counts are read until they are told, so that nothing older is told after it.
    told: Mutex<Told>,
    /// The same of webhooks.
    #[cfg(feature = "webhook")]
    told_of_webhooks: Mutex<Told>,
}

/// What was told last, with the recorder's handles.
#[derive(Default)]
struct Told {
    /// Each count as it was last read.
    before: HashMap<Key, Series<u64>>,
    counters: HashMap<Key, Series<Counter>>,
    gauges: HashMap<Key, Series<Gauge>>,
    /// The most stalls that any limit has told of.
    stalls: u64,
    /// How often counts were told.
    rounds: u64,
}

struct Series<T> {
    told: T,
    /// The last round that knew it.
    round: u64,
}

impl Metrics {
    /// For one policy. Handles of series are the recorder's that is there when they are first published.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a label to each series.
    #[must_use]
    pub fn label(mut self, name: impl Into<SharedString>, value: impl Into<SharedString>) -> Self {
        self.labels.push(Label::new(name.into(), value.into()));
        self
    }

    /// Tells the recorder what each series is. All are counts, without a unit.
    pub fn describe() {
        with_recorder(|recorder| {
            for &Family { name, is_gauge, says } in FAMILIES {
                let (name, unit) = (KeyName::from_const_str(name), Some(Unit::Count));
                if is_gauge {
                    recorder.describe_gauge(name, unit, says.into());
                } else {
                    recorder.describe_counter(name, unit, says.into());
                }
            }
        });
    }

    /// Tells the recorder what the policy has counted. Any thread may at any time; calls wait for each other.
    ///
    /// `false`, and nothing is told, where [`PolicyBuilder::events`](crate::policy::PolicyBuilder::events) was not called: such a
    /// policy does not count.
    pub fn publish<C: Clock + Clone + 'static>(&self, policy: &Policy<C>) -> bool {
        // What one that panicked has told is told.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(counts) = policy.counts() else { return false };
        told.all(&self.labels, &counts);
        true
    }

    /// Tells the recorder what became of messages and events, for each endpoint. Needs the features `metrics` and `webhook`. As
    /// [`publish`](Self::publish).
    #[cfg(feature = "webhook")]
    pub fn publish_webhooks(&self, webhooks: &Webhooks) {
        let mut told = self.told_of_webhooks.lock().unwrap_or_else(PoisonError::into_inner);
        told.rounds += 1;
        for endpoint in webhooks.endpoints() {
            told.endpoint(&self.labels, &endpoint);
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("labels", &self.labels).finish_non_exhaustive()
    }
}

impl Told {
    fn all(&mut self, labels: &[Label], counts: &Counts) {
        self.rounds += 1;
        self.count(&CHECKS, labels.to_vec(), counts.checks);
        self.count(&DROPPED, labels.to_vec(), counts.events_dropped);
        self.count(&UNSEEN, labels.to_vec(), counts.refusals_unseen);
        for rule in &counts.rules {
            for (number, limit) in rule.limits.iter().enumerate() {
                let rule_is = Label::new("rule", SharedString::from_shared(rule.name.clone()));
                let limit_is = Label::new("limit", number.to_string());
                self.limit(rule, limit, &[labels, &[rule_is, limit_is]].concat());
            }
        }
        self.count(&STALLS, labels.to_vec(), self.stalls);
        self.forget_others();
    }

    #[cfg(feature = "webhook")]
    fn endpoint(&mut self, labels: &[Label], status: &EndpointStatus) {
        let labels = [labels, &[Label::new("endpoint", status.name.clone())]].concat();
        let with = |outcome| [&labels[..], &[Label::from_static_parts("outcome", outcome)]].concat();
        let counts = &status.counts;
        for (family, outcome, count) in [
            (&MESSAGES, "delivered", counts.delivered),
            (&MESSAGES, "given_up", counts.given_up),
            (&MESSAGES, "lost", counts.lost_at_stop),
            (&TOLD, "delivered", counts.events_delivered),
            (&TOLD, "left_out", counts.events_left_out),
            (&TOLD, "undelivered", counts.events_undelivered),
            (&TOLD, "lost", counts.events_lost_at_stop),
        ] {
            self.count(family, with(outcome), count);
        }
        self.count(&FAILED, labels.clone(), counts.failed_attempts);
        self.gauge(&GONE, labels, status.is_gone.into());
    }

    fn limit(&mut self, rule: &RuleCounts, limit: &LimitCounts, labels: &[Label]) {
        let family = if rule.is_shadow { &SHADOW_REFUSALS } else { &REFUSALS };
        for (at, &(window, count)) in limit.refusals.iter().enumerate() {
            // A limit that is now another has not refused what the one in its place did.
            let place = Label::new("place", at.to_string());
            let refused = Key::from_parts(family.name, [labels, &[place]].concat());
            let more = self.more(refused, count);
            let window = Label::from_static_parts("window", window.as_str());
            self.add(family, [labels, &[window]].concat(), more);
        }
        let stats = &limit.stats;
        for (family, count) in [
            (&CLAIMED, stats.claims),
            (&EVICTIONS, stats.forced_evictions),
            (&FULL, stats.full),
            (&UNTRACKED, stats.untracked),
            (&RACES, stats.exhausted),
            (&LEASES, stats.leases),
            (&LAPSED, stats.lapsed),
        ] {
            self.count(family, labels.to_vec(), count);
        }
        self.gauge(&LIVE_KEYS, labels.to_vec(), stats.live_estimate);
        // Limits of one policy have one clock.
        self.stalls = self.stalls.max(stats.clock_stalls);
    }

    fn count(&mut self, family: &Family, labels: Vec<Label>, count: u64) {
        let more = self.more(Key::from_parts(family.name, labels.clone()), count);
        self.add(family, labels, more);
    }

    /// By how much a count is more than when it was last read. One that is less than it was has begun anew.
    fn more(&mut self, key: Key, count: u64) -> u64 {
        let before = self.before.entry(key).or_insert(Series { told: 0, round: 0 });
        before.round = self.rounds;
        count.checked_sub(mem::replace(&mut before.told, count)).unwrap_or(count)
    }

    fn add(&mut self, family: &Family, labels: Vec<Label>, more: u64) {
        let series = self.counters.entry(Key::from_parts(family.name, labels)).or_insert_with_key(|key| {
            let told = with_recorder(|recorder| recorder.register_counter(key, &METADATA));
            Series { told, round: 0 }
        });
        series.told.increment(more);
        series.round = self.rounds;
    }

    fn gauge(&mut self, family: &Family, labels: Vec<Label>, value: u64) {
        let key = Key::from_parts(family.name, labels);
        let series = self.gauges.entry(key).or_insert_with_key(|key| {
            let told = with_recorder(|recorder| recorder.register_gauge(key, &METADATA));
            Series { told, round: 0 }
        });
        #[expect(clippy::cast_precision_loss, reason = "it is an estimate")]
        series.told.set(value as f64);
        series.round = self.rounds;
    }

    /// Forgets series that this round did not know.
    fn forget_others(&mut self) {
        let round = self.rounds;
        self.counters.retain(|_, series| series.round == round);
        // What a rule has refused the policy knows for as long as it lives, also when the rule comes back.
        self.before.retain(|key, series| {
            series.round == round || [REFUSALS.name, SHADOW_REFUSALS.name].contains(&key.name())
        });
        self.gauges.retain(|_, series| {
            let is_known = series.round == round;
            if !is_known {
                series.told.set(0.0);
            }
            is_known
        });
    }
}

#[cfg(test)]
mod tests;
