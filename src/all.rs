//! [`all`]: one request against several limits, all or nothing.
//!
//! Each limit is charged as by `take`, in one order for all callers: by limiter, then by key. The first refusal has what was
//! charged given back, by receipt. There is no moment at which all limits change together: between its first charge
//! and its last, or its last refund, a call is seen by others as the charges that it has made so far. So another request
//! may be refused by a charge that is then given back; none is admitted by one.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use crate::answer::{Denied, Standing, whole_seconds};
use crate::exact::ExactLimiter;
use crate::limiter::Limiter;
use crate::receipt::Receipt;
use crate::single::SingleLimiter;
use crate::time::Clock;

/// A limiter's count that a request of some cost goes against: what [`all`] is given. Made by the limiters' `against` and
/// `against_n`.
pub trait Counted: sealed::Count {}

pub(crate) mod sealed {
    use super::{Denied, Receipt, Standing};

    /// What `all` needs of a count.
    pub trait Count {
        /// The limiter and the key: what is charged first goes by this, and what is charged together.
        fn place(&self) -> (u64, u64);
        fn cost(&self) -> u64;
        fn take(&self, cost: u64) -> Result<Receipt, Denied>;
        fn refund(&self, receipt: Receipt);
        fn standing(&self) -> Standing;
    }
}

/// A request against one count.
#[derive(Debug)]
pub struct Against<'a, L, Q: ?Sized> {
    limiter: &'a L,
    key: &'a Q,
    cost: u64,
}

impl<L, Q: ?Sized> Counted for Against<'_, L, Q> where Self: sealed::Count {}

/// The same for each limiter, but for what its methods take as a key.
macro_rules! count_of {
    ([$($generics:tt)*] $limiter:ty, $q:ty $(, $key:ident)?) => {
        impl<$($generics)*> sealed::Count for Against<'_, $limiter, $q> {
            fn place(&self) -> (u64, u64) {
                self.limiter.place($(self.$key)?)
            }

            fn cost(&self) -> u64 {
                self.cost
            }

            fn take(&self, cost: u64) -> Result<Receipt, Denied> {
                self.limiter.take($(self.$key,)? cost)
            }

            fn refund(&self, receipt: Receipt) {
                self.limiter.refund(receipt);
            }

            fn standing(&self) -> Standing {
                self.limiter.peek($(self.$key)?)
            }
        }
    };
}
count_of!([C: Clock, Q: Hash + ?Sized] Limiter<C>, Q, key);
count_of!([K: Hash + Eq + Borrow<Q>, C: Clock, Q: Hash + Eq + ToOwned<Owned = K> + ?Sized] ExactLimiter<K, C>, Q, key);
count_of!([C: Clock] SingleLimiter<C>, ());

impl<C: Clock> Limiter<C> {
    /// One request of `key`, as a part of [`all`](crate::all()).
    pub fn against<'a, Q: Hash + ?Sized>(&'a self, key: &'a Q) -> Against<'a, Self, Q> {
        self.against_n(key, 1)
    }

    /// A request of `key` that costs `cost`, as a part of [`all`](crate::all()).
    pub fn against_n<'a, Q: Hash + ?Sized>(&'a self, key: &'a Q, cost: u64) -> Against<'a, Self, Q> {
        Against { limiter: self, key, cost }
    }
}

impl<K: Hash + Eq, C: Clock> ExactLimiter<K, C> {
    /// One request of `key`, as a part of [`all`](crate::all()).
    pub fn against<'a, Q: Hash + Eq + ?Sized>(&'a self, key: &'a Q) -> Against<'a, Self, Q> {
        self.against_n(key, 1)
    }

    /// A request of `key` that costs `cost`, as a part of [`all`](crate::all()).
    pub fn against_n<'a, Q: Hash + Eq + ?Sized>(&'a self, key: &'a Q, cost: u64) -> Against<'a, Self, Q> {
        Against { limiter: self, key, cost }
    }
}

impl<C: Clock> SingleLimiter<C> {
    /// One request, as a part of [`all`](crate::all()).
    pub fn against(&self) -> Against<'_, Self, ()> {
        self.against_n(1)
    }

    /// A request that costs `cost`, as a part of [`all`](crate::all()).
    pub fn against_n(&self, cost: u64) -> Against<'_, Self, ()> {
        Against { limiter: self, key: &(), cost }
    }
}

/// Decides one request against several limits: either all of them are charged, or none is.
///
/// Refusals are not counted, whatever the limits say. A key that stands in `counts` more than once is charged once, with the
/// sum. (Keys of one limiter are told apart by the 64 bits of their hash here.)
///
/// All limits are charged in one order, whatever the order in `counts`, and what was charged before a refusal is given
/// back. Meanwhile other requests see it as charged: one may be refused for it, none is admitted by it. What comes
/// back to a bucket in those few hundred nanoseconds is not given back twice. Keys that were new stay in their tables, and a window
/// that opens at a first request stays open.
///
/// ```
/// use tidegate::{Limit, Limiter, Rate, SingleLimiter, all};
///
/// let server = SingleLimiter::builder(Limit::bucket(Rate::per_second(10_000), 100)).build()?;
/// let tenants = Limiter::builder(Limit::bucket(Rate::per_second(500), 50)).build()?;
/// let users = Limiter::builder(Limit::bucket(Rate::per_minute(1), 2)).build()?;
/// let decide = || all([&server.against(), &tenants.against("acme"), &users.against(&("acme", 7))]);
///
/// assert!(decide().is_ok() && decide().is_ok());
/// let denied = decide().unwrap_err();
/// assert_eq!(denied.refused_by(), 2); // the third of them
/// assert_eq!(tenants.peek("acme").remaining(), 48); // not charged for the refused one
/// # Ok::<(), tidegate::ConfigError>(())
/// ```
///
/// A pass allocates nothing, a refusal does.
///
/// # Errors
/// [`AllDenied`] when the request must not go on.
pub fn all<const N: usize>(counts: [&dyn Counted; N]) -> Result<AllPass<N>, AllDenied> {
    let mut costs = counts.map(|count| count.cost());
    let places = counts.map(|count| count.place());
    let mut order: [usize; N] = std::array::from_fn(|index| index);
    order.sort_unstable_by_key(|&index| (places[index], index));
    // Of equal places the first bears the cost of all.
    for at in (1..N).rev() {
        let (before, index) = (order[at - 1], order[at]);
        if places[before] == places[index] {
            costs[before] = costs[before].saturating_add(std::mem::take(&mut costs[index]));
        }
    }
    let mut receipts: [Option<Receipt>; N] = std::array::from_fn(|_| None);
    for &index in &order {
        if costs[index] == 0 && counts[index].cost() > 0 {
            continue; // another bears it
        }
        match counts[index].take(costs[index]) {
            Ok(receipt) => receipts[index] = Some(receipt),
            Err(denied) => {
                for (count, receipt) in counts.iter().zip(receipts) {
                    if let Some(receipt) = receipt {
                        count.refund(receipt);
                    }
                }
                return Err(AllDenied::new(&counts, &costs, index, denied));
            }
        }
    }
    Ok(AllPass { receipts })
}

/// Every limit was charged.
#[must_use = "a pass is only one of two answers"]
pub struct AllPass<const N: usize> {
    receipts: [Option<Receipt>; N],
}

impl<const N: usize> AllPass<N> {
    /// The least that any of the limits has left, in units of cost; `u64::MAX` of none.
    pub fn remaining(&self) -> u64 {
        let receipts = self.receipts.iter().flatten();
        receipts.map(|receipt| receipt.standing().remaining()).min().unwrap_or(u64::MAX)
    }

    /// The receipts, in the order of the counts, to be given back each to its limiter. `None` where another count of
    /// the same key bears the cost.
    pub fn into_receipts(self) -> [Option<Receipt>; N] {
        self.receipts
    }
}

impl<const N: usize> fmt::Debug for AllPass<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllPass").field("receipts", &self.receipts).finish()
    }
}

/// One of several limits refuses, and none was charged.
#[derive(Clone, Debug)]
pub struct AllDenied {
    refused_by: usize,
    /// Boxed: with it the error would be larger than what one likes to return.
    denied: Box<Denied>,
    remaining: u64,
    retry_after: Option<Duration>,
}

impl AllDenied {
    fn new(counts: &[&dyn Counted], costs: &[u64], refused_by: usize, denied: Denied) -> Self {
        let (mut remaining, mut retry_after) = (denied.remaining(), denied.retry_after());
        for (index, (count, &cost)) in counts.iter().zip(costs).enumerate() {
            let standing = count.standing();
            remaining = remaining.min(standing.remaining());
            if index != refused_by {
                retry_after = retry_after.zip(standing.retry_after(cost)).map(|(one, other)| one.max(other));
            }
        }
        Self { refused_by, denied: Box::new(denied), remaining, retry_after }
    }

    /// Which count refused: its number among those that [`all`] was given, from 0. Others may have refused too; of equal
    /// keys it is the first.
    pub fn refused_by(&self) -> usize {
        self.refused_by
    }

    /// What that one answered, to the sum of its key's costs.
    pub fn denied(&self) -> &Denied {
        &self.denied
    }

    /// The least that any of the limits has left, in units of cost.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The longest of the waits after which each limit would let its part pass, if nobody else came first; `None` if one
    /// of them never will.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// [`retry_after`](Self::retry_after) in whole seconds, as [`Denied::retry_after_secs`] tells it: `u64::MAX` where no wait
    /// is enough.
    pub fn retry_after_secs(&self) -> u64 {
        self.retry_after.map_or(u64::MAX, whole_seconds)
    }
}

impl fmt::Display for AllDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused by count {} (from 0): {}", self.refused_by, self.denied)?;
        match self.retry_after {
            Some(wait) if Some(wait) != self.denied.retry_after() => {
                write!(f, "; all of them fit after {wait:?}")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for AllDenied {}
