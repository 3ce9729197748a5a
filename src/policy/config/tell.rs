//! What a rule means, in a sentence or two.

use std::time::Duration;

use super::length::told;
use crate::limit::{Alignment, Limit, Shape, Window};
use crate::policy::{Cost, Counting, Exempt, KeyPart, Matcher, OnRefusal, Pattern, RefusalBody, Rule, Rules};

impl Rules {
    /// What each rule means in this policy, in their order: see [`Rule::sentence`]. Where all rules count a request or none,
    /// no refused request counts, whatever a rule says.
    pub fn sentences(&self) -> Vec<String> {
        self.rules.iter().map(|rule| rule.sentence_under(self.counting)).collect()
    }

    /// What the policy says of the bodies of its refusals over HTTP, in a sentence; `None` if it leaves that to what each
    /// client accepts.
    pub fn body_sentence(&self) -> Option<String> {
        let what = match self.body? {
            RefusalBody::Fgrl => "the JSON of fine-grained rate limiting, with type",
            RefusalBody::FgrlLimitType => "the JSON of fine-grained rate limiting, with limitType",
            RefusalBody::GameBackend => "the JSON of a game back end",
            RefusalBody::Problem => "problem details",
            RefusalBody::Text => "one line of text",
        };
        Some(format!("Refused over HTTP with {what}."))
    }
}

impl Rule {
    /// What the rule means, in a sentence and perhaps a few short ones: who may have how much in which time, how its
    /// windows open, whether refused requests count (where each rule counts for itself), and who is left alone. One line.
    ///
    /// ```
    /// use tidegate::policy::Rules;
    ///
    /// let rules = Rules::default_policy();
    /// assert_eq!(
    ///     rules.rules[0].sentence(),
    ///     "stats-read: each user and title may make 100 requests in 15 s and 300 in 5 min, counted from its first \
    ///      request; refused requests count. Exempt: title \"legacy-title-0001\"."
    /// );
    /// ```
    pub fn sentence(&self) -> String {
        self.sentence_under(Counting::EveryRule)
    }

    fn sentence_under(&self, counting: Counting) -> String {
        let scope = scope(&self.name, &self.matcher);
        let verb = if self.cost == Cost::Fixed(1) { "make" } else { "spend" };
        let mut text = format!("{}: {scope}{} may {verb} {}", self.name, who(&self.key), self.amounts());
        text.push_str(&self.cost_told());
        text.push_str(&opening(&self.limits));
        if self.limits.iter().any(|limit| !is_bucket(limit)) {
            text.push_str(match (self.on_refusal, counting) {
                (OnRefusal::Count, Counting::EveryRule) => "; refused requests count",
                _ => "; refused requests do not count",
            });
        }
        text.push('.');
        if let Some(exempt) = exempt_told(&self.exempt) {
            text.push_str(&format!(" Exempt: {exempt}."));
        }
        match self.overrides.len() {
            0 => {}
            1 => text.push_str(" One key has limits of its own."),
            many => text.push_str(&format!(" {many} keys have limits of their own.")),
        }
        if self.shadow {
            text.push_str(" It only watches: nothing is refused.");
        }
        text
    }

    fn amounts(&self) -> String {
        let noun = if self.cost == Cost::Fixed(1) { "requests" } else { "units" };
        let mut parts = Vec::new();
        for limit in &self.limits {
            let mut window = |window: Window, any: &str| {
                let noun = if parts.is_empty() {
                    format!(" {}", plural(noun, window.limit()))
                } else {
                    String::new()
                };
                parts.push(format!("{}{noun} in {any}{}", grouped(window.limit()), told(window.period())));
            };
            match limit.shape() {
                Shape::Window(one) => window(one, ""),
                Shape::Sliding(one) => window(one, "a sliding "),
                Shape::BurstSustain { burst, sustain } => {
                    window(burst, "");
                    window(sustain, "");
                }
                Shape::Bucket { rate, burst } => {
                    let noun = if parts.is_empty() {
                        format!(" {}", plural(noun, rate.tokens()))
                    } else {
                        String::new()
                    };
                    let period = each_period(rate.period());
                    parts.push(format!(
                        "{}{noun} {period} on average, up to {} at once",
                        grouped(rate.tokens()),
                        grouped(burst)
                    ));
                }
            }
        }
        joined(parts, "and")
    }

    fn cost_told(&self) -> String {
        match &self.cost {
            Cost::Fixed(1) => String::new(),
            Cost::Fixed(cost) => format!(", {} a request", grouped(*cost)),
            Cost::OfRequest => ", as many for each request as it says".to_owned(),
            Cost::Attribute(name) => format!(", as many for each request as its {name:?} says"),
        }
    }
}

fn is_bucket(limit: &Limit) -> bool {
    matches!(limit.shape(), Shape::Bucket { .. })
}

fn plural(noun: &str, number: u64) -> &str {
    if number == 1 { noun.trim_end_matches('s') } else { noun }
}

/// A number with spaces between its thousands, from five digits on.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut made = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            made.push(' ');
        }
        made.push(digit);
    }
    made
}

/// `a, b and c`.
fn joined(mut parts: Vec<String>, word: &str) -> String {
    match parts.pop() {
        Some(last) if parts.is_empty() => last,
        Some(last) => format!("{} {word} {last}", parts.join(", ")),
        None => String::new(),
    }
}

fn who(key: &[KeyPart]) -> String {
    if key.is_empty() {
        return "everybody together".to_owned();
    }
    let part = |part: &KeyPart| match part {
        KeyPart::Title => "title".to_owned(),
        KeyPart::Namespace => "namespace".to_owned(),
        KeyPart::User => "user".to_owned(),
        KeyPart::ClientIp { v4_bits: 32, v6_bits: 128 } => "client address".to_owned(),
        KeyPart::ClientIp { v4_bits: 32, v6_bits } => format!("client address (IPv6: /{v6_bits})"),
        KeyPart::ClientIp { v4_bits, v6_bits } => format!("client network (/{v4_bits}, IPv6: /{v6_bits})"),
        KeyPart::Entity => "entity".to_owned(),
        KeyPart::Attribute(name) => format!("value of {name:?}"),
        KeyPart::Custom(name, _) => (*name).to_owned(),
    };
    format!("each {}", joined(key.iter().map(part).collect(), "and"))
}

/// `a second`, `15 s`.
fn each_period(period: Duration) -> String {
    match period.as_nanos() {
        1_000_000_000 => "a second".to_owned(),
        60_000_000_000 => "a minute".to_owned(),
        3_600_000_000_000 => "an hour".to_owned(),
        86_400_000_000_000 => "a day".to_owned(),
        _ => format!("in {}", told(period)),
    }
}

fn patterns(wanted: &[Pattern]) -> String {
    if wanted.is_empty() {
        return "nothing".to_owned();
    }
    joined(wanted.iter().map(pattern).collect(), "or")
}

fn pattern(wanted: &Pattern) -> String {
    match wanted {
        Pattern::Prefix(text) if text.is_empty() => "anything".to_owned(),
        Pattern::Exact(text) => text.clone(),
        wanted => super::pattern::pattern_text(wanted),
    }
}

/// Which requests, where the rule's name does not say it already.
fn scope(name: &str, matcher: &Matcher) -> String {
    let says_it = matches!(&matcher.apis[..], [Pattern::Exact(api)] if api == name);
    let mut scope = String::new();
    if !matcher.apis.is_empty() && !says_it {
        scope = format!("on {}", patterns(&matcher.apis));
    }
    for (name, wanted) in &matcher.attributes {
        let word = if scope.is_empty() { "where" } else { " where" };
        scope.push_str(&format!("{word} {name:?} is {}", patterns(wanted)));
    }
    if scope.is_empty() { scope } else { scope + ", " }
}

fn opening(limits: &[Limit]) -> String {
    let mut told: Vec<Alignment> = Vec::new();
    for limit in limits.iter().filter(|limit| !is_bucket(limit)) {
        if !told.contains(&limit.alignment()) {
            told.push(limit.alignment());
        }
    }
    let each = limits.iter().filter(|limit| !is_bucket(limit)).count() > 1;
    match told[..] {
        [Alignment::FirstRequest] if each => ", each counted from its first request".to_owned(),
        [Alignment::FirstRequest] => ", counted from its first request".to_owned(),
        [Alignment::Clock] => ", counted by the clock".to_owned(),
        [Alignment::PerKey] => ", counted in periods of its own".to_owned(),
        _ => String::new(),
    }
}

fn exempt_told(exempt: &Exempt) -> Option<String> {
    /// More are counted, not told.
    const TOLD_MAX: usize = 3;
    let mut parts = Vec::new();
    let mut add = |noun: &str, texts: Vec<String>| match texts.len() {
        0 => {}
        1..=TOLD_MAX => {
            let quoted = texts.iter().map(|text| format!("{text:?}")).collect();
            let s = if texts.len() == 1 { "" } else { "s" };
            parts.push(format!("{noun}{s} {}", joined(quoted, "and")));
        }
        many => parts.push(format!("{many} {noun}s")),
    };
    add("title", exempt.titles.clone());
    add("namespace", exempt.namespaces.clone());
    add("caller", exempt.callers.clone());
    let name = |kind| {
        super::fields::ENTITY_TYPES.iter().find(|(_, known)| known == kind).map_or("", |(name, _)| name)
    };
    add("caller type", exempt.caller_types.iter().map(|kind| name(kind).to_owned()).collect());
    add("API", exempt.apis.iter().map(super::pattern::pattern_text).collect());
    for (name, wanted) in &exempt.attributes {
        parts.push(format!("{name:?} of {}", patterns(wanted)));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}
