//! One request against all rules that are about it.

use std::time::Duration;

use smallvec::SmallVec;

use super::book::{Book, Ruling};
use super::events::Desk;
use super::key::Key;
use super::matcher::Found;
use super::request::Request;
use super::rule::{Cost, Counting};
use super::verdict::{Answer, Verdict};
use crate::answer::{Denied, Pass};
use crate::decision::Reason;
use crate::limiter::Limiter;
use crate::receipt::Receipt;
use crate::time::Clock;
use crate::word::Threshold;

/// Of each rule that is about a request, the hash of its key; none if it leaves the request alone.
type Hashes = SmallVec<[Option<u64>; 8]>;

/// A request against one limit.
struct Count<'a, C> {
    limiter: &'a Limiter<C>,
    key: Key<'a>,
    cost: u64,
}

/// By hand: a derived one would want a clock that is `Copy`.
impl<C> Clone for Count<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<C> Copy for Count<'_, C> {}

impl<C: Clock> Count<'_, C> {
    /// What a check would be told. Changes nothing.
    fn look(&self) -> Answer {
        let standing = self.limiter.peek(&self.key);
        let snapshot = standing.snapshot;
        if standing.retry_after(self.cost) == Some(Duration::ZERO) {
            return Ok(Pass { snapshot });
        }
        let is_too_large = standing.windows().iter().any(|window| self.cost > window.limit);
        let reason = if is_too_large { Reason::TooLarge } else { Reason::Exhausted };
        Err(Denied { snapshot, cost: self.cost, reason, back_at_ns: 0, is_counted: false })
    }

    fn charge(&self) -> Answer {
        self.limiter.charge(&self.key, self.cost).map(as_pass)
    }
}

/// What a charge left.
#[allow(clippy::needless_pass_by_value, reason = "the charge is not given back any more")]
fn as_pass(receipt: Receipt) -> Pass {
    Pass { snapshot: receipt.snapshot }
}

/// Charges all of the counts or none; what each answers, in their order. The first refusal has all before it given back.
fn all_or_none<'a, C: Clock + 'a>(
    counts: impl Iterator<Item = Count<'a, C>> + Clone,
) -> SmallVec<[Answer; 8]> {
    let mut receipts = SmallVec::<[Receipt; 8]>::new();
    for (at, count) in counts.clone().enumerate() {
        match count.limiter.take(&count.key, count.cost) {
            Ok(receipt) => receipts.push(receipt),
            Err(denied) => {
                for (count, receipt) in counts.clone().zip(receipts) {
                    count.limiter.refund(receipt);
                }
                let answer = |(number, count): (usize, Count<'a, C>)| {
                    if number == at { Err(denied) } else { count.look() }
                };
                return counts.enumerate().map(answer).collect();
            }
        }
    }
    receipts.into_iter().map(|receipt| Ok(as_pass(receipt))).collect()
}

impl<C: Clock> Ruling<C> {
    /// What the request costs by this rule.
    #[inline]
    fn cost(&self, request: &Request<'_>) -> u64 {
        let cost = match &self.rule.cost {
            Cost::Fixed(cost) => *cost,
            Cost::OfRequest => request.cost,
            Cost::Attribute(name) => request.attribute(name).map_or(1, number),
        };
        cost.max(1)
    }

    fn counts<'a>(
        &'a self,
        book: &'a Book<C>,
        request: &'a Request<'a>,
    ) -> impl Iterator<Item = Count<'a, C>> + Clone {
        let key = Key::new(&self.rule.key, request, &book.digests);
        let cost = self.cost(request);
        self.limiters.iter().map(move |limiter| Count { limiter, key, cost })
    }
}

/// The number that a text stands for, rounded up; what is no number costs the most there is, so that nothing odd is cheap.
fn number(text: &str) -> u64 {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return number;
    }
    match text.parse::<f64>() {
        // Saturates: a text of more digits than 64 bits have is the largest.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        Ok(number) if number >= 0.0 => number.ceil() as u64,
        _ => u64::MAX,
    }
}

impl<C: Clock> Book<C> {
    /// Decides the request and counts it, as the policy says. Each road makes the verdict where the caller wants it: it is large.
    #[inline]
    pub(super) fn check(&self, request: &Request<'_>, desk: Option<&Desk>) -> Verdict {
        if let Some(desk) = desk {
            desk.checked();
        }
        match (self.counting, desk) {
            (Counting::EveryRule, None) => self.check_each(request),
            (Counting::EveryRule, Some(desk)) => self.check_each_noting(request, desk),
            (Counting::AllOrNothing, desk) => self.check_all_or_nothing(request, desk),
        }
    }

    /// Whether [`check`](Self::check) would allow the request, which is counted.
    pub(super) fn allows(&self, request: &Request<'_>, desk: Option<&Desk>) -> bool {
        if self.counting == Counting::AllOrNothing || desk.is_some() {
            return self.check(request, desk).is_allowed();
        }
        let (mut found, mut hashes) = (Found::new(), Hashes::new());
        let mut is_allowed = true;
        self.find(request, &mut found, &mut hashes);
        for (&number, &hash) in found.iter().zip(&hashes) {
            let (ruling, Some(hash)) = (&self.rules[number as usize], hash) else { continue };
            let cost = ruling.cost(request);
            for limiter in &ruling.limiters {
                is_allowed &= limiter.allow_hashed(hash, cost) | ruling.rule.shadow;
            }
        }
        is_allowed
    }

    /// Every limit of every rule counts.
    #[inline(never)]
    fn check_each(&self, request: &Request<'_>) -> Verdict {
        self.answers(request, |_, (limiter, _), _, hash, cost| limiter.check_hashed(hash, cost))
    }

    /// The same, with a look at each answer before it is put away: answers are large, and a second look would be at memory. Apart
    /// from the other, so that who notes nothing pays nothing.
    #[inline(never)]
    fn check_each_noting(&self, request: &Request<'_>, desk: &Desk) -> Verdict {
        self.answers(request, |ruling, (limiter, threshold), limit, hash, cost| {
            let mut is_above = None;
            let answer = limiter.check_seen(hash, cost, |word, moment| {
                is_above = Some(limiter.core.engine.rule.reaches(threshold, word, moment));
            });
            if ruling.is_notable((limiter, threshold), &answer, is_above) {
                self.note(desk, request, (ruling, limit, hash), &answer);
            }
            answer
        })
    }

    /// What each limit of each rule that is about the request answers, asked in order.
    #[inline(always)]
    fn answers(
        &self,
        request: &Request<'_>,
        ask: impl Fn(&Ruling<C>, (&Limiter<C>, &Threshold), usize, u64, u64) -> Answer,
    ) -> Verdict {
        let mut verdict = Verdict::new(self.told.hold());
        let (mut found, mut hashes) = (Found::new(), Hashes::new());
        self.find(request, &mut found, &mut hashes);
        for (&number, &hash) in found.iter().zip(&hashes) {
            let ruling = &self.rules[number as usize];
            let cost = ruling.cost(request);
            verdict.begin(number, hash.is_none(), cost);
            let Some(hash) = hash else { continue };
            for (limit, counted) in ruling.counted().enumerate() {
                verdict.add(ask(ruling, counted, limit, hash, cost), ruling.rule.shadow);
            }
        }
        verdict
    }

    /// The rules that are about the request, each with the hash of the request's key, or none if it leaves the request
    /// alone. All keys are hashed first, and the lines of all tables asked for, so that they come at the same time.
    #[inline(always)]
    fn find(&self, request: &Request<'_>, found: &mut Found, hashes: &mut Hashes) {
        self.matchers.find(request, found);
        let mut last = (usize::MAX, 0);
        for &number in found.iter() {
            let ruling = &self.rules[number as usize];
            if ruling.exemptions.holds(request) {
                hashes.push(None);
                continue;
            }
            // Of rules in a row that count by the same key, the first hashes it for all.
            if last.0 != ruling.key_number {
                let key = Key::new(&ruling.rule.key, request, &self.digests);
                last =
                    (ruling.key_number, ruling.limiters.first().map_or(0, |limiter| limiter.hash_of(&key)));
            }
            hashes.push(Some(last.1));
            for limiter in &ruling.limiters {
                limiter.fetch(last.1);
            }
        }
    }

    /// What a check would be told. Changes nothing.
    pub(super) fn look(&self, request: &Request<'_>) -> Verdict {
        self.each(request, None, |count| count.look())
    }

    /// Charges every limit with a cost, whether or not it fits.
    pub(super) fn charge(&self, request: &Request<'_>, cost: u64, desk: Option<&Desk>) -> Verdict {
        let verdict = self.each(request, Some(cost), |count| count.charge());
        if let Some(desk) = desk {
            self.note_verdict(desk, request, &verdict);
        }
        verdict
    }

    /// Asks every limit of every rule that is about the request, in order.
    fn each(
        &self,
        request: &Request<'_>,
        cost: Option<u64>,
        ask: impl Fn(Count<'_, C>) -> Answer,
    ) -> Verdict {
        let mut verdict = Verdict::new(self.told.hold());
        let mut found = Found::new();
        self.matchers.find(request, &mut found);
        for &number in &found {
            let ruling = &self.rules[number as usize];
            let is_exempt = ruling.exemptions.holds(request);
            verdict.begin(number, is_exempt, cost.unwrap_or_else(|| ruling.cost(request)));
            if is_exempt {
                continue;
            }
            for count in ruling.counts(self, request) {
                let count = Count { cost: cost.unwrap_or(count.cost), ..count };
                verdict.add(ask(count), ruling.rule.shadow);
            }
        }
        verdict
    }

    /// The rules that count are one group; each shadow rule is a group by itself, whatever the others say.
    #[inline(never)]
    fn check_all_or_nothing(&self, request: &Request<'_>, desk: Option<&Desk>) -> Verdict {
        let mut verdict = Verdict::new(self.told.hold());
        let mut found = Found::new();
        self.matchers.find(request, &mut found);
        let rulings = found.iter().map(|&number| (number, &self.rules[number as usize]));
        let asked =
            rulings.clone().filter(|(_, ruling)| !ruling.rule.shadow && !ruling.exemptions.holds(request));
        let counts = asked.flat_map(|(_, ruling)| ruling.counts(self, request));
        let mut answers = all_or_none(counts).into_iter();
        for (number, ruling) in rulings {
            let is_exempt = ruling.exemptions.holds(request);
            verdict.begin(number, is_exempt, ruling.cost(request));
            if is_exempt {
                continue;
            }
            if ruling.rule.shadow {
                let apart = all_or_none(ruling.counts(self, request));
                apart.into_iter().for_each(|answer| verdict.add(answer, true));
            } else {
                let own = answers.by_ref().take(ruling.limiters.len());
                own.for_each(|answer| verdict.add(answer, false));
            }
        }
        if let Some(desk) = desk {
            self.note_verdict(desk, request, &verdict);
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_a_number_and_never_free() {
        let texts = ["7", "0", "", "x", "-5", "+5", "1.5", " 7", "18446744073709551616"];
        assert_eq!(texts.map(number), [7, 0, u64::MAX, u64::MAX, u64::MAX, 5, 2, 7, u64::MAX]);
    }
}
