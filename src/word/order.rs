//! What may be done to a word beside a check: pure functions, as `decide` is.

use super::{Kind, Outcome, Rule};

/// What is asked of a key's word.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// Charge this cost if it fits, as a check does, but count no refusal.
    Take(u64),
    /// Charge this cost whether or not it fits, as far as the debt may go.
    Charge(u64),
    /// Charge this cost for a turn that comes after a wait of `wait_ns_max` at most. Of a bucket only.
    Reserve {
        /// Tokens.
        cost: u64,
        /// The longest wait, in nanoseconds.
        wait_ns_max: u64,
    },
    /// Give back what has not been refilled of a charge, and no more than so many tokens.
    Refund(Paid, u64),
    /// Give back as much of what is used, whoever paid it.
    Credit(u64),
    /// Undo a reservation, if nothing was charged or given back since.
    Cancel {
        /// The word as the reservation left it.
        left: u64,
        /// What it charged.
        tokens: u64,
    },
    /// Begin anew.
    Reset,
}

impl Order {
    /// Whether it takes nothing from a word, and only adds to it.
    pub fn charges(&self) -> bool {
        matches!(self, Self::Take(_) | Self::Charge(_) | Self::Reserve { .. })
    }

    /// Whether it undoes something that a rule did, and is carried out by that one.
    pub fn is_of_receipt(&self) -> bool {
        matches!(self, Self::Refund(..) | Self::Cancel { .. })
    }
}

/// A charge that may be given back.
#[derive(Clone, Copy, Debug)]
pub struct Paid {
    /// What was charged.
    pub tokens: u64,
    /// The word as the charge left it.
    pub word: u64,
    /// The limiter's time in nanoseconds that it was made at.
    pub ns: u64,
    /// Of a bucket: units that may have come back since, if that is more than its own rate gives.
    pub refilled: u64,
}

/// What came of an order, and the word to leave behind (the same one when nothing changes).
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Refused or not.
    pub outcome: Outcome,
    /// The word to leave behind.
    pub next: u64,
    /// Tokens that were charged, or given back (rounded up).
    pub tokens: u64,
}

impl Done {
    /// Nothing was changed.
    pub(crate) fn nothing(outcome: Outcome, word: u64) -> Self {
        Self { outcome, next: word, tokens: 0 }
    }

    fn changed((tokens, next): (u64, u64)) -> Self {
        Self { outcome: Outcome::Pass, next, tokens }
    }
}

impl Rule {
    /// Carries out an order on a word of `key` (its fingerprint) at `ns` of the limiter's time.
    pub fn carry_out(&self, order: Order, word: u64, ns: u64, key: u64) -> Done {
        let moment = self.moment(ns, key);
        match (order, &self.kind) {
            (Order::Take(cost), _) => {
                let decided = self.decide(word, moment, cost);
                match decided.outcome {
                    Outcome::Pass => Done::changed((cost, decided.next)),
                    refused => Done::nothing(refused, word),
                }
            }
            (Order::Charge(cost), Kind::Bucket(bucket)) => {
                Done::changed(bucket.charge(word, moment, cost, self.time.value_max()))
            }
            (Order::Charge(cost), Kind::Windows(windows)) => {
                Done::changed(windows.charge(word, moment, cost))
            }
            (Order::Reserve { cost, wait_ns_max }, Kind::Bucket(bucket)) => {
                let latest = self.moment(ns.saturating_add(wait_ns_max), key);
                let decided = bucket.reserve(word, moment, latest, cost, self.time.value_max());
                let tokens = if decided.outcome == Outcome::Pass { cost } else { 0 };
                Done { outcome: decided.outcome, next: decided.next, tokens }
            }
            (Order::Refund(paid, most), Kind::Bucket(bucket)) => {
                let since = moment.saturating_sub(self.moment(paid.ns, key)).max(paid.refilled);
                Done::changed(bucket.refund(word, moment, paid.tokens, most, since))
            }
            (Order::Refund(paid, most), Kind::Windows(windows)) => {
                Done::changed(windows.refund(word, moment, paid.tokens.min(most), paid.word))
            }
            (Order::Credit(tokens), Kind::Bucket(bucket)) => {
                Done::changed(bucket.refund(word, moment, tokens, tokens, 0))
            }
            (Order::Credit(tokens), Kind::Windows(windows)) => {
                Done::changed(windows.refund(word, moment, tokens, word))
            }
            (Order::Cancel { left, tokens }, Kind::Bucket(bucket)) if word == left => {
                Done::changed(bucket.refund(word, 0, tokens, tokens, 0))
            }
            (Order::Reset, _) => Done { outcome: Outcome::Pass, next: 0, tokens: 0 },
            (Order::Reserve { .. } | Order::Cancel { .. }, _) => Done::nothing(Outcome::Exhausted, word),
        }
    }

    /// The word with what an order took from another one, which was `seen` and is `next`, put back at `moment`.
    pub fn put_back(&self, word: u64, moment: u64, seen: u64, next: u64) -> u64 {
        match &self.kind {
            Kind::Bucket(bucket) => bucket.put_back(word, moment, (seen, next), self.time.value_max()),
            Kind::Windows(windows) => windows.put_back(word, moment, seen, next),
        }
    }

    /// What is used beyond the limit: of a bucket the tokens that must come back before one is available (rounded up),
    /// of windows what is counted above the limit, in the one that is furthest above.
    pub fn overdrawn(&self, word: u64, moment: u64) -> u64 {
        match &self.kind {
            Kind::Bucket(bucket) => bucket.overdrawn(word, moment),
            Kind::Windows(_) => {
                let above = |part: &super::Part| part.used.saturating_sub(part.limit);
                self.parts(word, moment).iter().map(above).max().unwrap_or(0)
            }
        }
    }

    /// The first moment of a reservation's turn, by the word that it left; `None` for windows, which have no turns.
    pub fn turn(&self, left: u64) -> Option<u64> {
        match &self.kind {
            Kind::Bucket(bucket) => Some(bucket.turn(left)),
            Kind::Windows(_) => None,
        }
    }
}
