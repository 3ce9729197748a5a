//! tidegate's limiters, on their default clock.

use std::borrow::Borrow;
use std::error::Error;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Builder, ExactLimiter, Limit, Limiter, Manual, Rate};

use super::Contestant;
use crate::workload::{Setup, TokenLimit};

pub(super) const SLOTS: &str = "tidegate";
pub(super) const EXACT: &str = "tidegate exact";

fn bucket(limit: &TokenLimit) -> Limit {
    Limit::bucket(Rate::new(limit.tokens.into(), limit.period), limit.burst.into())
}

/// Asks for the time once a millisecond, as other traffic of a server would, until the result is dropped.
pub(crate) fn keep_awake() -> Result<Awake, Box<dyn Error>> {
    let (awake, other) = (Arc::new(()), Limiter::builder(Limit::bucket(Rate::per_second(1), 1)).build()?);
    let is_wanted = Arc::downgrade(&awake);
    std::thread::spawn(move || {
        while is_wanted.upgrade().is_some() {
            let _ = other.check("traffic");
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    Ok(Awake(awake))
}

/// Keeps tidegate's clock going.
pub(crate) struct Awake(#[expect(dead_code, reason = "to be dropped")] Arc<()>);

/// The exact table. Flooded, it refuses newcomers as long as everybody it holds owes something.
pub(super) struct Exact<K>(ExactLimiter<K>);

impl<K, Q> Contestant<Q> for Exact<K>
where
    K: Hash + Eq + Borrow<Q> + Send + Sync,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
{
    const NAME: &'static str = EXACT;

    fn build(setup: &Setup) -> Result<Self, Box<dyn Error>> {
        let keys = setup.keys.try_into()?;
        Ok(Self(ExactLimiter::builder(bucket(&setup.limit)).max_keys(keys).build()?))
    }

    #[inline]
    fn check(&self, key: &Q) -> bool {
        self.0.check(key).is_ok()
    }

    fn keys_held(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

fn slots(setup: &Setup) -> Result<Builder, Box<dyn Error>> {
    let builder = Limiter::builder(bucket(&setup.limit)).max_keys(setup.keys.try_into()?);
    Ok(match setup.seed {
        Some(seed) => builder.seed(seed),
        None => builder,
    })
}

/// The slot table, the default. Flooded, it evicts who owes least.
pub(super) struct Slots(Limiter);

impl<K: Hash + ?Sized> Contestant<K> for Slots {
    const NAME: &'static str = SLOTS;

    fn build(setup: &Setup) -> Result<Self, Box<dyn Error>> {
        Ok(Self(slots(setup)?.build()?))
    }

    #[inline]
    fn check(&self, key: &K) -> bool {
        self.0.check(key).is_ok()
    }

    #[inline]
    fn check_batch(&self, keys: &[&K]) -> u64 {
        let mut admitted = 0;
        self.0.check_many(keys.iter().copied(), |answer| admitted += u64::from(answer.is_ok()));
        admitted
    }

    fn forgiven_limits(&self) -> f64 {
        self.0.stats().forgiven_limits
    }
}

/// The slot table on a clock that stands still: on one that goes, how often a check reads the counter, and how much a
/// thread leases at once, depend on how fast it checks, and a count of instructions must not. For no timing. If
/// `LEASED`, the thread that built it has a lease of the key 0 from the start, as threads that get in each other's way
/// do.
pub(super) struct Still<const LEASED: bool>(Limiter<Manual>);

impl<const LEASED: bool> Contestant<u64> for Still<LEASED> {
    const NAME: &'static str = if LEASED { "tidegate leased" } else { "tidegate still" };

    fn build(setup: &Setup) -> Result<Self, Box<dyn Error>> {
        let limiter = slots(setup)?.clock(Manual::new()).build()?;
        if LEASED {
            limiter.warm(&0_u64);
        }
        Ok(Self(limiter))
    }

    #[inline]
    fn check(&self, key: &u64) -> bool {
        self.0.check(key).is_ok()
    }
}
