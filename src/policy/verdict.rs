//! What a policy answers: plain values, of which everything else is computed when it is asked.

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

use smallvec::SmallVec;

use super::rule::RefusalBody;
use super::shares::Shared;
use crate::answer::{Denied, Pass, Standing, whole_seconds};
use crate::decision::{WindowState, Windows};
use crate::limit::Limit;

/// What verdicts tell of a policy: no limiter stands here, so that a verdict that is kept keeps none.
pub(super) struct Told {
    pub(super) name: String,
    pub(super) body: Option<RefusalBody>,
    pub(super) rules: Box<[ToldRule]>,
}

/// The same of one rule.
pub(super) struct ToldRule {
    pub(super) name: String,
    pub(super) is_shadow: bool,
    pub(super) warn_percent: u8,
    pub(super) limits: Box<[Limit]>,
}

/// What one limit answered.
pub(super) type Answer = Result<Pass, Denied>;

/// What a [`Policy`](super::Policy) says to a request: whether it may go on, and how each rule stands that is about it.
///
/// It is a value of its own: keep it or send it to another thread as you like. It keeps no limiter alive. Made
/// without allocation where at most 8 rules match, with at most 8 limits in all.
#[must_use = "a request that is not allowed must not go on"]
pub struct Verdict {
    told: Shared<Told>,
    matched: SmallVec<[Matched; 8]>,
    answers: SmallVec<[Answer; 8]>,
    is_allowed: bool,
}

/// A rule that matched.
#[derive(Clone, Copy)]
struct Matched {
    rule: u32,
    /// Where its answers begin; they end where the next one's begin.
    answers_from: u32,
    is_exempt: bool,
    /// What it costs by this rule.
    cost: u64,
}

impl Verdict {
    #[inline]
    pub(super) fn new(told: Shared<Told>) -> Self {
        Self { told, matched: SmallVec::new(), answers: SmallVec::new(), is_allowed: true }
    }

    /// Goes on with this rule: the answers that follow are of its limits.
    #[inline]
    pub(super) fn begin(&mut self, rule: u32, is_exempt: bool, cost: u64) {
        let answers_from = u32::try_from(self.answers.len()).unwrap_or(u32::MAX);
        self.matched.push(Matched { rule, answers_from, is_exempt, cost });
    }

    #[inline]
    pub(super) fn add(&mut self, answer: Answer, is_shadow: bool) {
        self.is_allowed &= is_shadow || answer.is_ok();
        self.answers.push(answer);
    }

    /// Whether the request may go on: no rule but shadow ones refuses it.
    #[inline]
    pub fn is_allowed(&self) -> bool {
        self.is_allowed
    }

    /// Whether any rule is about the request; where none is, it is allowed. A rule that leaves it alone is about it.
    pub fn is_matched(&self) -> bool {
        !self.matched.is_empty()
    }

    /// The policy's name.
    pub fn policy(&self) -> &str {
        &self.told.0.name
    }

    /// The body that the policy wants for its refusals; `None`: what each client accepts.
    pub fn refusal_body(&self) -> Option<RefusalBody> {
        self.told.0.body
    }

    /// Whether one limit is all that the policy has.
    #[cfg(feature = "http")]
    pub(crate) fn is_of_one_limit(&self) -> bool {
        matches!(&*self.told.0.rules, [rule] if rule.limits.len() == 1)
    }

    /// The rules that are about the request, in their order.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = RuleState<'_>> {
        (0..self.matched.len()).map(|at| RuleState { verdict: self, at })
    }

    /// The numbers of the rules that are about the request, in their order.
    pub(super) fn rule_numbers(&self) -> impl Iterator<Item = u32> {
        self.matched.iter().map(|matched| matched.rule)
    }

    /// The rules that refuse it: no shadow rule is among them.
    pub fn refusing(&self) -> impl Iterator<Item = RuleState<'_>> {
        self.rules().filter(|rule| rule.refuses() && !rule.is_shadow())
    }

    /// The limits of all rules but the shadow ones.
    fn limits(&self) -> impl Iterator<Item = LimitState<'_>> {
        self.rules().filter(|rule| !rule.is_shadow()).flat_map(|rule| rule.limits())
    }

    /// Of the limits that refuse, the one with the longest wait; of equals the first. `None` if it is allowed.
    pub fn binding(&self) -> Option<LimitState<'_>> {
        let refusing = self.limits().filter_map(|limit| Some((limit.denied()?.retry_after(), limit)));
        // A wait that never ends is the longest.
        let key = |wait: Option<Duration>| wait.unwrap_or(Duration::MAX);
        let longest = refusing.reduce(|one, other| if key(other.0) > key(one.0) { other } else { one });
        longest.map(|(_, limit)| limit)
    }

    /// The limit with the smallest share left, of those that count: what a client does well to look at. Of equals the first;
    /// shadow rules are left out. `None` where no rule counts the request.
    pub fn nearest(&self) -> Option<LimitState<'_>> {
        self.limits().reduce(|one, other| if other.tightest_is_below(&one) { other } else { one })
    }

    /// The shortest wait after which the same request is allowed, if nobody else comes first. Zero if it is allowed, `None` if no
    /// wait is enough.
    ///
    /// A limit that had room may be what is waited for: under [`Counting::EveryRule`](super::Counting::EveryRule) it has counted what
    /// another refused, and may have no room for it again.
    pub fn retry_after(&self) -> Option<Duration> {
        let counted = self.limits().filter(|_| !self.is_allowed);
        counted
            .map(|limit| limit.again_after())
            .try_fold(Duration::ZERO, |longest, wait| Some(longest.max(wait?)))
    }

    /// What a client is to be told to wait: [`retry_after`](Self::retry_after), or the longest place of the rules that refuse and
    /// [stagger](super::Rule::staggers), if that is longer.
    pub fn retry_after_staggered(&self) -> Option<Duration> {
        let places = self.limits().filter_map(|limit| limit.denied().and_then(Denied::retry_after_staggered));
        self.retry_after().map(|wait| places.fold(wait, Duration::max))
    }

    /// [`retry_after_staggered`](Self::retry_after_staggered) in whole seconds, as
    /// [`retry_after_secs`](Self::retry_after_secs) has the shortest wait.
    pub fn retry_after_staggered_secs(&self) -> u64 {
        if self.is_allowed { 0 } else { self.retry_after_staggered().map_or(u64::MAX, whole_seconds) }
    }

    /// [`retry_after`](Self::retry_after) in whole seconds as the `Retry-After` field of HTTP wants it: rounded up, at least 1. 0 if it is allowed,
    /// `u64::MAX` where no wait is enough: do not tell a caller to try again then.
    pub fn retry_after_secs(&self) -> u64 {
        if self.is_allowed { 0 } else { self.retry_after().map_or(u64::MAX, whole_seconds) }
    }
}

impl fmt::Debug for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verdict")
            .field("is_allowed", &self.is_allowed)
            .field("rules", &self.rules().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// How a rule stands that is about a request.
#[derive(Clone, Copy)]
pub struct RuleState<'v> {
    verdict: &'v Verdict,
    at: usize,
}

impl<'v> RuleState<'v> {
    fn told(&self) -> &'v ToldRule {
        &self.verdict.told.0.rules[self.verdict.matched[self.at].rule as usize]
    }

    fn answers(&self) -> &'v [Answer] {
        let from = |at: usize| self.verdict.matched.get(at).map(|matched| matched.answers_from as usize);
        let until = from(self.at + 1).unwrap_or(self.verdict.answers.len());
        &self.verdict.answers[from(self.at).unwrap_or(until)..until]
    }

    /// Its name.
    pub fn name(&self) -> &'v str {
        &self.told().name
    }

    /// Whether it decides and reports and never refuses.
    pub fn is_shadow(&self) -> bool {
        self.told().is_shadow
    }

    /// Whether it leaves the request alone: it then has counted nothing.
    pub fn is_exempt(&self) -> bool {
        self.verdict.matched[self.at].is_exempt
    }

    /// Whether one of its limits has no room for the request. A shadow rule says what it would do.
    pub fn refuses(&self) -> bool {
        self.answers().iter().any(Result::is_err)
    }

    /// Whether one of its limits is used up to the share that is worth a warning.
    pub fn warns(&self) -> bool {
        let warn_percent = u64::from(self.told().warn_percent);
        self.limits().any(|limit| limit.used_percent() >= warn_percent)
    }

    /// Its limits, in their order; none if it leaves the request alone.
    pub fn limits(&self) -> impl Iterator<Item = LimitState<'v>> + use<'v> {
        let rule = *self;
        (rule.answers().iter().enumerate()).map(move |(number, answer)| LimitState { rule, number, answer })
    }
}

impl fmt::Debug for RuleState<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleState")
            .field("name", &self.name())
            .field("is_shadow", &self.is_shadow())
            .field("is_exempt", &self.is_exempt())
            .field("answers", &self.answers())
            .finish_non_exhaustive()
    }
}

/// How one limit of a rule stands for the request's key.
#[derive(Clone, Copy)]
pub struct LimitState<'v> {
    rule: RuleState<'v>,
    number: usize,
    answer: &'v Answer,
}

impl<'v> LimitState<'v> {
    /// The rule that it is a limit of.
    pub fn rule(&self) -> RuleState<'v> {
        self.rule
    }

    /// Whether the rule has no other limit.
    #[cfg(feature = "http")]
    pub(crate) fn is_the_only_one(&self) -> bool {
        self.rule.told().limits.len() == 1
    }

    /// Its number among the rule's limits, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The limit of the rule as the policy said it when the verdict was given. A key with an [override](super::Override) has
    /// another: [`windows`](Self::windows) tell it.
    pub fn limit(&self) -> Limit {
        self.rule.told().limits[self.number]
    }

    /// What it answered. Where another limit's refusal left this one uncharged (under
    /// [`Counting::AllOrNothing`](super::Counting::AllOrNothing)), or the policy was only looked at, what it would answer: a
    /// pass is then one to come, and tells of the key as it stands without it.
    pub fn answer(&self) -> Result<Pass, Denied> {
        *self.answer
    }

    /// The same, where it stands.
    #[cfg(feature = "http")]
    pub(crate) fn answer_ref(&self) -> Result<&'v Pass, &'v Denied> {
        self.answer.as_ref()
    }

    /// Its refusal, if it has no room for the request.
    pub fn denied(&self) -> Option<&'v Denied> {
        self.answer.as_ref().err()
    }

    /// The wait until it has room for the same request once more; `None` if it never has.
    fn again_after(&self) -> Option<Duration> {
        match self.answer {
            Ok(pass) => {
                Standing { snapshot: pass.snapshot }.retry_after(self.rule.verdict.matched[self.rule.at].cost)
            }
            Err(denied) => denied.retry_after(),
        }
    }

    /// Its windows (or its bucket) as they stand.
    pub fn windows(&self) -> Windows {
        match self.answer {
            Ok(pass) => pass.windows(),
            Err(denied) => denied.windows(),
        }
    }

    /// What it still has, in units of cost.
    pub fn remaining(&self) -> u64 {
        match self.answer {
            Ok(pass) => pass.remaining(),
            Err(denied) => denied.remaining(),
        }
    }

    /// The share of it that is used, in whole percent, rounded down: of the window of which most is. Above 100 where more
    /// is counted than is allowed.
    pub fn used_percent(&self) -> u64 {
        let percent = |window: &WindowState| {
            let percent = u128::from(window.observed) * 100 / u128::from(window.limit.max(1));
            u64::try_from(percent).unwrap_or(u64::MAX)
        };
        self.windows().iter().map(percent).max().unwrap_or(0)
    }

    /// Whether a smaller share of it is left than of another.
    fn tightest_is_below(&self, other: &Self) -> bool {
        let tightest = |limit: &Self| {
            // A limit without room has nothing left, whatever its windows would say to others.
            let has_room = limit.remaining() > 0;
            let left = |window: &WindowState| (if has_room { window.remaining } else { 0 }, window.limit);
            limit
                .windows()
                .iter()
                .map(left)
                .reduce(|one, other| if compare_shares(other, one).is_lt() { other } else { one })
        };
        match (tightest(self), tightest(other)) {
            (Some(one), Some(other)) => compare_shares(one, other).is_lt(),
            _ => false,
        }
    }
}

/// Of two shares, each so much of so much, how one is to the other.
pub(crate) fn compare_shares((left, limit): (u64, u64), (other_left, other_limit): (u64, u64)) -> Ordering {
    (u128::from(left) * u128::from(other_limit)).cmp(&(u128::from(other_left) * u128::from(limit)))
}

impl fmt::Debug for LimitState<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitState")
            .field("rule", &self.rule.name())
            .field("number", &self.number)
            .field("answer", self.answer)
            .finish_non_exhaustive()
    }
}
