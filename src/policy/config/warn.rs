//! What is no mistake but most likely not meant: limits that never bind, rules that nothing reaches, tables too small.

use std::fmt;
use std::time::Duration;

use super::length::told;
use super::pattern::pattern_text;
use super::reader::nearest;
use crate::limit::{Alignment, Limit, Shape, Window};
use crate::policy::{Cost, Counting, KeyPart, Matching, OnRefusal, Pattern, Rule, Rules};

/// Fewer addresses than this fill up in minutes.
const ADDRESSES_MIN: usize = 10_000;

/// Something about a rule that its author most likely did not mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    rule: String,
    says: String,
}

impl Warning {
    /// The name of the rule.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// What is odd, and what to do.
    pub fn says(&self) -> &str {
        &self.says
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {:?}: {}", self.rule, self.says)
    }
}

impl Rules {
    /// What is odd about the policy, in the order of its rules: limits that can never bind, rules that nothing can
    /// match or that an earlier one hides, costs that never fit, tables too small for their keys. What it says is so;
    /// what it does not say may be odd all the same.
    ///
    /// ```
    /// use tidegate::policy::Rules;
    ///
    /// let text = "[[rule]]\nname = 'a'\nkey = 'client_ip'\nlimit = { rate = '5/s', burst = 9 }\nmax_keys = 100\n";
    /// let warnings = Rules::from_toml(text, "a.toml")?.warnings();
    /// assert!(warnings[0].to_string().starts_with("rule \"a\": max_keys is 100, and addresses are many"));
    /// # Ok::<(), tidegate::policy::Problems>(())
    /// ```
    pub fn warnings(&self) -> Vec<Warning> {
        let mut all = Vec::new();
        for (at, rule) in self.rules.iter().enumerate() {
            let mut says = rule.oddities(self.counting);
            if self.matching == Matching::First
                && let Some(first) = self.rules[..at].iter().find(|first| hides(first, rule))
            {
                says.push(format!(
                    "is never asked: rule {:?} before it matches all that it matches, and matching is \"first\"; \
                     put it before that one",
                    first.name
                ));
            }
            if self.is_used_up_by_one(rule) {
                says.push(
                    "counts what other rules refuse as well, so that one client may use up what all share; \
                     counting = \"all-or-nothing\" charges it nothing for those"
                        .to_owned(),
                );
            }
            all.extend(says.into_iter().map(|says| Warning { rule: rule.name.clone(), says }));
        }
        all
    }
}

impl Rules {
    /// Whether a rule for everybody together counts what rules for each client refuse.
    fn is_used_up_by_one(&self, rule: &Rule) -> bool {
        let is_for_each = |other: &Rule| !other.key.is_empty() && !other.shadow;
        self.counting == Counting::EveryRule
            && self.matching == Matching::All
            && rule.key.is_empty()
            && !rule.shadow
            && self.rules.iter().any(is_for_each)
    }
}

impl Rule {
    fn oddities(&self, counting: Counting) -> Vec<String> {
        let mut says = Vec::new();
        self.unreachable(&mut says);
        self.never_fits(&mut says);
        self.never_binds(counting, &mut says);
        self.too_small(&mut says);
        self.misspelt(&mut says);
        says
    }

    fn misspelt(&self, says: &mut Vec<String>) {
        let names: Vec<&str> = self.matcher.attributes.iter().map(|(name, _)| name.as_str()).collect();
        for part in &self.key {
            let KeyPart::Attribute(name) = part else { continue };
            if let Some(meant) = nearest(name, &names).filter(|meant| meant != name) {
                says.push(format!(
                    "its key asks for attribute {name:?}, and match for {meant:?}; requests without the first are all counted together"
                ));
            }
        }
    }

    fn unreachable(&self, says: &mut Vec<String>) {
        for (name, wanted) in &self.matcher.attributes {
            if wanted.is_empty() {
                says.push(format!(
                    "matches nothing: attribute {name:?} has no pattern to be; give one, as \"*\""
                ));
            }
        }
        let apis = if self.matcher.apis.is_empty() {
            &[Pattern::Prefix(String::new())][..]
        } else {
            &self.matcher.apis
        };
        let is_exempt = |api| self.exempt.apis.iter().any(|exempt| covers(exempt, api));
        if apis.iter().all(is_exempt) {
            says.push("limits nothing: every API that it matches is exempt; narrow exempt.api".to_owned());
        }
    }

    fn never_fits(&self, says: &mut Vec<String>) {
        let Cost::Fixed(cost) = self.cost else { return };
        let all = self.limits.iter().chain(self.overrides.iter().flat_map(|other| &other.limits));
        if let Some(least) = all.map(most_at_once).filter(|&most| most < cost).min() {
            says.push(format!(
                "a request costs {cost}, and a limit of {least} never has room for it; raise the limit"
            ));
        }
    }

    fn never_binds(&self, counting: Counting, says: &mut Vec<String>) {
        // The numbers of the overrides are others.
        if !self.overrides.is_empty() {
            return;
        }
        let parts = parts(&self.limits);
        let is_each = counting == Counting::EveryRule;
        for (at, part) in parts.iter().enumerate() {
            // Refused requests fill a window beyond what others let pass. A bucket does not count them.
            if is_each && self.on_refusal == OnRefusal::Count && !matches!(part.of, Of::Bucket { .. }) {
                continue;
            }
            let binds = |(other_at, other): &(usize, &Part)| {
                // Each limit by itself counts what another refuses.
                *other_at != at
                    && (!is_each || part.limit == other.limit)
                    && never_reached(part, other)
                    && !(*other_at > at && never_reached(other, part))
            };
            if let Some((_, other)) = parts.iter().enumerate().find(binds) {
                let (this, other) = (part.told(), other.told());
                says.push(format!("{this} can never refuse: {other} lets no more than that through; leave it out or lower it"));
            }
        }
    }

    fn too_small(&self, says: &mut Vec<String>) {
        if self.max_keys < self.overrides.len() {
            says.push(format!(
                "max_keys is {}, and there are {} overrides; it should be what there are keys at one time",
                self.max_keys,
                self.overrides.len()
            ));
        }
        let by_address = self.key.iter().any(|part| matches!(part, KeyPart::ClientIp { .. }));
        if by_address && self.max_keys < ADDRESSES_MIN {
            says.push(format!(
                "max_keys is {}, and addresses are many: a full table forgives who owes least or turns newcomers away; \
                 make it {ADDRESSES_MIN} or more",
                self.max_keys
            ));
        }
    }
}

/// The most that a fresh key may have in one request.
fn most_at_once(limit: &Limit) -> u64 {
    match limit.shape() {
        Shape::Bucket { burst, .. } => burst,
        Shape::Window(one) | Shape::Sliding(one) => one.limit(),
        Shape::BurstSustain { burst, .. } => burst.limit(),
    }
}

/// A bucket or a single window of a rule.
struct Part {
    of: Of,
    /// The limit that it is of: its windows tile each other.
    limit: usize,
    alignment: Alignment,
}

enum Of {
    Bucket { tokens: u64, period: Duration, burst: u64 },
    Window(Window),
    Sliding(Window),
}

fn parts(limits: &[Limit]) -> Vec<Part> {
    let mut parts = Vec::new();
    for (at, limit) in limits.iter().enumerate() {
        let mut add = |of| parts.push(Part { of, limit: at, alignment: limit.alignment() });
        match limit.shape() {
            Shape::Bucket { rate, burst } => {
                add(Of::Bucket { tokens: rate.tokens(), period: rate.period(), burst })
            }
            Shape::Window(one) => add(Of::Window(one)),
            Shape::Sliding(one) => add(Of::Sliding(one)),
            Shape::BurstSustain { burst, sustain } => {
                add(Of::Window(burst));
                add(Of::Window(sustain));
            }
        }
    }
    parts
}

impl Part {
    fn told(&self) -> String {
        match self.of {
            Of::Bucket { tokens, period, burst } => {
                format!("the bucket of {tokens} in {}, {burst} at once,", told(period))
            }
            Of::Window(one) => format!("the window of {} in {}", one.limit(), told(one.period())),
            Of::Sliding(one) => format!("the sliding window of {} in {}", one.limit(), told(one.period())),
        }
    }

    /// The most that this lets through in any time of such a length.
    fn most_in(&self, length: Duration) -> u128 {
        let length = length.as_nanos();
        match self.of {
            Of::Bucket { tokens, period, burst } => {
                let refill = u128::from(tokens).saturating_mul(length).div_ceil(period.as_nanos().max(1));
                refill.saturating_add(burst.into())
            }
            Of::Window(one) => {
                let windows = length.div_ceil(one.period().as_nanos().max(1)).saturating_add(1);
                windows.saturating_mul(one.limit().into())
            }
            Of::Sliding(one) => {
                let refill =
                    u128::from(one.limit()).saturating_mul(length).div_ceil(one.period().as_nanos().max(1));
                refill.saturating_add(one.limit().into())
            }
        }
    }
}

/// Whether `part` has room for all that `other` lets through, whatever comes.
fn never_reached(part: &Part, other: &Part) -> bool {
    match part.of {
        Of::Window(one) => {
            if let Of::Window(short) = other.of {
                let (long_ns, short_ns) = (one.period().as_nanos(), short.period().as_nanos().max(1));
                // Elsewhere each limit has phases or openings of its own.
                let tiles = part.limit == other.limit
                    || (part.alignment == Alignment::Clock && other.alignment == Alignment::Clock);
                if tiles && long_ns.is_multiple_of(short_ns) {
                    return (long_ns / short_ns).saturating_mul(short.limit().into()) <= one.limit().into();
                }
            }
            other.most_in(one.period()) <= one.limit().into()
        }
        // What it weighs is at most all of this period and of the one before.
        Of::Sliding(one) => other.most_in(one.period().saturating_mul(2)) <= one.limit().into(),
        Of::Bucket { tokens, period, burst } => {
            // As much at once, and as much in the long run.
            let (at_once, most, each) = match other.of {
                Of::Bucket { tokens, period, burst } => (burst.into(), tokens, period),
                Of::Window(one) => (u128::from(one.limit()) * 2, one.limit(), one.period()),
                Of::Sliding(one) => (u128::from(one.limit()), one.limit(), one.period()),
            };
            let slower = u128::from(most).saturating_mul(period.as_nanos())
                <= u128::from(tokens).saturating_mul(each.as_nanos());
            at_once <= burst.into() && slower
        }
    }
}

/// Whether `first` is about every request that `rule` is about. What it leaves alone it keeps from those behind it too.
fn hides(first: &Rule, rule: &Rule) -> bool {
    let (wide, narrow) = (&first.matcher, &rule.matcher);
    let all = [Pattern::Prefix(String::new())];
    let apis = if narrow.apis.is_empty() { &all[..] } else { &narrow.apis };
    let is_covered = |by: &[Pattern], wanted: &[Pattern]| {
        wanted.iter().all(|wanted| by.iter().any(|wide| covers(wide, wanted)))
    };
    let has = |name: &String, by: &[Pattern]| {
        narrow.attributes.iter().any(|(other, wanted)| other == name && is_covered(by, wanted))
    };
    (wide.apis.is_empty() || is_covered(&wide.apis, apis))
        && wide.attributes.iter().all(|(name, by)| has(name, by))
}

/// Whether every text that `narrow` is, `wide` is too. It may say no of globs that do.
fn covers(wide: &Pattern, narrow: &Pattern) -> bool {
    let head = |glob: &str| glob.split(['*', '?']).next().unwrap_or_default().len();
    match (wide, narrow) {
        (wide, narrow) if wide == narrow => true,
        (Pattern::Glob(glob), _) if !glob.is_empty() && glob.bytes().all(|byte| byte == b'*') => true,
        (Pattern::Prefix(prefix), Pattern::Exact(text) | Pattern::Prefix(text)) => text.starts_with(prefix),
        (Pattern::Prefix(prefix), Pattern::Glob(glob)) => glob[..head(glob)].starts_with(prefix),
        (Pattern::Glob(_), Pattern::Exact(text)) => wide.is_met_by(text),
        _ => pattern_text(wide) == pattern_text(narrow),
    }
}
