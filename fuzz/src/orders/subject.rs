//! Who is played with: the three limiters side by side, or one with little room.

use std::time::Duration;

use tidegate::{
    Denied, ExactLimiter, Limiter, Manual, OnFull, Pass, Receipt, Reservation, SingleLimiter, Standing,
    Stats, Windows,
};

/// Keys of the three limiters; the single one is asked whatever the first of them is.
const FEW: u64 = 3;
/// More than the smallest table has slots.
const MANY: u64 = 120;
const SINGLE: u64 = 0;

pub enum Subject {
    Alike(Box<Alike>),
    Full(Box<Limiter<Manual>>, OnFull),
}

pub struct Alike {
    pub slots: Limiter<Manual>,
    pub exact: ExactLimiter<u64, Manual>,
    pub single: SingleLimiter<Manual>,
    /// Answers of the first two can be compared.
    pub are_same: bool,
    /// Those of the single one too.
    pub is_single_same: bool,
}

/// A receipt of each.
pub struct Paid(pub Receipt, Option<Receipt>, Option<Receipt>);

/// A place in the line of each.
pub struct Place(pub Reservation, Option<Reservation>, Option<Reservation>);

/// What is compared of an answer.
type Seen = (bool, u64, Option<Duration>, Duration, Windows);

fn seen_of_check(answer: &Result<Pass, Denied>) -> Seen {
    match answer {
        Ok(pass) => (true, pass.remaining(), None, pass.reset_after(), pass.windows()),
        Err(denied) => seen_of_denied(denied),
    }
}

fn seen_of_denied(denied: &Denied) -> Seen {
    (false, denied.remaining(), denied.retry_after(), denied.reset_after(), denied.windows())
}

fn seen_of(standing: &Standing) -> Seen {
    let wait = standing.retry_after(1);
    (true, standing.remaining() + (standing.debt() << 32), wait, standing.reset_after(), standing.windows())
}

impl Alike {
    /// The three were answered alike, as far as they can be.
    fn compare<T: PartialEq + std::fmt::Debug>(&self, slots: &T, exact: &T, single: Option<&T>) {
        if self.are_same {
            assert_eq!(slots, exact, "a Limiter and an ExactLimiter");
            if let Some(single) = single.filter(|_| self.is_single_same) {
                assert_eq!(slots, single, "a Limiter and a SingleLimiter");
            }
        }
    }

    fn receipts(
        &self,
        slots: Result<Receipt, Denied>,
        exact: Result<Receipt, Denied>,
        single: Option<Result<Receipt, Denied>>,
    ) -> Result<Paid, Denied> {
        let seen = |answer: &Result<Receipt, Denied>| match answer {
            Ok(receipt) => (seen_of(&receipt.standing()), receipt.charged(), receipt.uncharged()),
            Err(denied) => (seen_of_denied(denied), 0, 0),
        };
        self.compare(&seen(&slots), &seen(&exact), single.as_ref().map(seen).as_ref());
        Ok(Paid(slots?, exact.ok(), single.and_then(Result::ok)))
    }
}

impl Subject {
    pub fn keys(&self) -> u64 {
        match self {
            Self::Alike(_) => FEW,
            Self::Full(..) => MANY,
        }
    }

    pub fn slots(&self) -> &Limiter<Manual> {
        match self {
            Self::Alike(alike) => &alike.slots,
            Self::Full(limiter, _) => limiter,
        }
    }

    pub fn stats(&self) -> Stats {
        self.slots().stats()
    }

    pub fn peek(&self, key: u64) -> Standing {
        let standing = self.slots().peek(&key);
        if let Self::Alike(alike) = self {
            let single = (key == SINGLE).then(|| seen_of(&alike.single.peek()));
            alike.compare(&seen_of(&standing), &seen_of(&alike.exact.peek(&key)), single.as_ref());
        }
        standing
    }

    pub fn check(&self, key: u64, cost: u64) -> Result<Pass, Denied> {
        let answer = self.slots().check_n(&key, cost);
        if let Self::Alike(alike) = self {
            let exact = alike.exact.check_n(&key, cost);
            let single = (key == SINGLE).then(|| seen_of_check(&alike.single.check_n(cost)));
            alike.compare(&seen_of_check(&answer), &seen_of_check(&exact), single.as_ref());
        }
        answer
    }

    pub fn take(&self, key: u64, cost: u64) -> Result<Paid, Denied> {
        let answer = self.slots().take(&key, cost);
        match self {
            Self::Alike(alike) => {
                let single = (key == SINGLE).then(|| alike.single.take(cost));
                alike.receipts(answer, alike.exact.take(&key, cost), single)
            }
            Self::Full(..) => answer.map(|receipt| Paid(receipt, None, None)),
        }
    }

    pub fn charge(&self, key: u64, cost: u64) -> Result<Paid, Denied> {
        let answer = self.slots().charge(&key, cost);
        match self {
            Self::Alike(alike) => {
                let single = (key == SINGLE).then(|| alike.single.charge(cost));
                alike.receipts(answer, alike.exact.charge(&key, cost), single)
            }
            Self::Full(..) => answer.map(|receipt| Paid(receipt, None, None)),
        }
    }

    pub fn refund(&self, Paid(slots, exact, single): Paid) -> u64 {
        let back = self.slots().refund(slots);
        if let Self::Alike(alike) = self {
            let exact = exact.map_or(0, |receipt| alike.exact.refund(receipt));
            alike.compare(&back, &exact, single.map(|receipt| alike.single.refund(receipt)).as_ref());
        }
        back
    }

    pub fn refund_key(&self, key: u64, tokens: u64) -> u64 {
        let back = self.slots().refund_key(&key, tokens);
        if let Self::Alike(alike) = self {
            let single = (key == SINGLE).then(|| alike.single.refund_tokens(tokens));
            alike.compare(&back, &alike.exact.refund_key(&key, tokens), single.as_ref());
        }
        back
    }

    pub fn reset(&self, key: u64) {
        assert!(self.slots().reset(&key));
        if let Self::Alike(alike) = self {
            assert!(alike.exact.reset(&key));
            assert!(key != SINGLE || alike.single.reset());
        }
    }

    pub fn reserve(&self, key: u64, cost: u64, wait_max: Duration) -> Result<Place, Denied> {
        let answer = self.slots().reserve(&key, cost, wait_max);
        let Self::Alike(alike) = self else { return answer.map(|place| Place(place, None, None)) };
        let exact = alike.exact.reserve(&key, cost, wait_max);
        let single = (key == SINGLE).then(|| alike.single.reserve(cost, wait_max));
        let seen = |answer: &Result<Reservation, Denied>| match answer {
            Ok(place) => (Some((place.wait(), place.charged())), None),
            Err(denied) => (None, Some(seen_of_denied(denied))),
        };
        alike.compare(&seen(&answer), &seen(&exact), single.as_ref().map(seen).as_ref());
        Ok(Place(answer?, exact.ok(), single.and_then(Result::ok)))
    }

    pub fn cancel(&self, Place(slots, exact, single): Place) -> bool {
        let was = self.slots().cancel(slots);
        if let Self::Alike(alike) = self {
            let exact = exact.is_some_and(|place| alike.exact.cancel(place));
            alike.compare(&was, &exact, single.map(|place| alike.single.cancel(place)).as_ref());
        }
        was
    }

    pub fn warm(&mut self, key: u64) {
        self.slots().warm(&key);
        if let Self::Alike(alike) = self {
            alike.single.warm();
            alike.are_same = false;
        }
    }
}
