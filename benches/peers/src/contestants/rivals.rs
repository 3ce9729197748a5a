//! The peers, each with the store, the clock and the settings that its own documents start from.
//!
//! A limit is a token bucket of `burst` and a rate. Two peers count in windows instead; theirs is as long as
//! an empty bucket takes to be full, with room for the burst.

use std::cell::RefCell;
use std::error::Error;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use quota::{QuotaPolicy, QuotaPool, RefillRate};
use trypema::local::LocalRateLimiterProvider;
use trypema::{BucketSize, RateLimit, RateLimitDecision, RateLimiterBuilder, WindowSize};

use super::Contestant;
use crate::workload::{Setup, TokenLimit};

/// governor's keyed limiter on the store and the clock that it takes by default.
pub(super) struct Governor<K: Hash + Eq + Clone>(DefaultKeyedRateLimiter<K>);

impl<K: Hash + Eq + Clone> Governor<K> {
    fn new(limit: &TokenLimit) -> Result<Self, Box<dyn Error>> {
        let burst = NonZeroU32::new(limit.burst).ok_or("a burst of 0")?;
        let quota = Quota::with_period(limit.period / limit.tokens)
            .ok_or("a rate above one a nanosecond")?
            .allow_burst(burst);
        Ok(Self(RateLimiter::keyed(quota)))
    }
}

const GOVERNOR: &str = "governor 0.10";

impl Contestant<u64> for Governor<u64> {
    const NAME: &'static str = GOVERNOR;

    fn build(setup: &Setup) -> Result<Self, Box<dyn Error>> {
        Self::new(&setup.limit)
    }

    #[inline]
    fn check(&self, key: &u64) -> bool {
        self.0.check_key(key).is_ok()
    }

    fn keys_held(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

thread_local! {
    /// A `String` is looked up by a `String`. This one is filled anew each time, which allocates nothing.
    static KEY: RefCell<String> = const { RefCell::new(String::new()) };
}

impl Contestant<str> for Governor<String> {
    const NAME: &'static str = GOVERNOR;

    fn build(setup: &Setup) -> Result<Self, Box<dyn Error>> {
        Self::new(&setup.limit)
    }

    #[inline]
    fn check(&self, key: &str) -> bool {
        KEY.with_borrow_mut(|owned| {
            owned.clear();
            owned.push_str(key);
            self.0.check_key(owned).is_ok()
        })
    }

    fn keys_held(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// quota's pool, which its documents would have told how many keys to expect.
pub(super) struct QuotaRs<K: Hash + Eq>(QuotaPool<K>);

impl<K, Q> Contestant<Q> for QuotaRs<K>
where
    K: Hash + Eq + Clone + std::borrow::Borrow<Q> + Send + Sync,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
{
    const NAME: &'static str = "quota 0.3";

    fn build(setup: &Setup) -> Result<Self, Box<dyn Error>> {
        let Setup { keys, limit, .. } = setup;
        let policy = QuotaPolicy::new()
            .set_capacity(limit.burst.into())
            .set_refill_rate(RefillRate::per_sec(limit.tokens_per_second()));
        Ok(Self(QuotaPool::with_capacity(policy, limit.burst.into(), usize::try_from(*keys)?)))
    }

    #[inline]
    fn check(&self, key: &Q) -> bool {
        self.0.check(key, 1)
    }

    fn keys_held(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// rate-net's token bucket on its default clock. Its documents ask for 1.5 to 2 times the room of the keys
/// that are expected; flooded, it gets no more room than the others.
pub(super) struct RateNet(rate_net::RateLimiter);

impl RateNet {
    fn new(setup: &Setup) -> Result<Self, Box<dyn Error>> {
        let Setup { keys, limit, flooded, .. } = setup;
        let room = usize::try_from(*keys)?;
        let room = if *flooded { room } else { room + room.div_ceil(2) };
        let limiter = rate_net::RateLimiter::builder()
            .quota(limit.tokens, limit.period)
            .burst(limit.burst)
            .eviction(rate_net::Eviction::capacity(room))
            .try_build()?;
        Ok(Self(limiter))
    }
}

const RATE_NET: &str = "rate-net 2.1";

impl Contestant<u64> for RateNet {
    const NAME: &'static str = RATE_NET;

    fn build(setup: &Setup) -> Result<Self, Box<dyn Error>> {
        Self::new(setup)
    }

    #[inline]
    fn check(&self, key: &u64) -> bool {
        self.0.check(*key).is_allow()
    }

    fn keys_held(&self) -> Option<usize> {
        Some(self.0.tracked_keys())
    }
}

impl Contestant<str> for RateNet {
    const NAME: &'static str = RATE_NET;

    fn build(setup: &Setup) -> Result<Self, Box<dyn Error>> {
        Self::new(setup)
    }

    #[inline]
    fn check(&self, key: &str) -> bool {
        self.0.check(key).is_allow()
    }

    fn keys_held(&self) -> Option<usize> {
        Some(self.0.tracked_keys())
    }
}

/// pingora's rate estimator at its default size. A request passes while no more than the burst was observed
/// in the current interval.
pub(super) struct Pingora {
    rate: pingora_limits::rate::Rate,
    burst: isize,
}

impl<K: Hash + ?Sized> Contestant<K> for Pingora {
    const NAME: &'static str = "pingora-limits 0.9";
    const REMARK: Option<&'static str> = Some("an estimate: 4 096 counters, whatever the keys");

    fn build(setup: &Setup) -> Result<Self, Box<dyn Error>> {
        let rate = pingora_limits::rate::Rate::new(setup.limit.window());
        Ok(Self { rate, burst: setup.limit.burst.try_into()? })
    }

    #[inline]
    fn check(&self, key: &K) -> bool {
        self.rate.observe(&key, 1) <= self.burst
    }
}

/// tokio-rate-limit's default algorithm, which needs no runtime. It takes whole tokens a second, no fewer
/// than one, and text for keys.
pub(super) struct TokioRateLimit(tokio_rate_limit::RateLimiter);

impl TokioRateLimit {
    fn tokens_per_second(limit: &TokenLimit) -> u64 {
        let period_s = limit.period.as_secs().max(1);
        (u64::from(limit.tokens) / period_s).max(1)
    }
}

impl Contestant<str> for TokioRateLimit {
    const NAME: &'static str = "tokio-rate-limit 0.10";
    const REMARK: Option<&'static str> = Some("refills at 1 a second at least; text keys only");

    fn build(setup: &Setup) -> Result<Self, Box<dyn Error>> {
        let limiter = tokio_rate_limit::RateLimiter::builder()
            .requests_per_second(Self::tokens_per_second(&setup.limit))
            .burst(setup.limit.burst.into())
            .build()?;
        Ok(Self(limiter))
    }

    #[inline]
    fn check(&self, key: &str) -> bool {
        self.0.check(key).permitted
    }

    fn comes_back(limit: &TokenLimit, elapsed: Duration) -> f64 {
        Self::tokens_per_second(limit) as f64 * elapsed.as_secs_f64()
    }
}

/// trypema's local provider: a sliding window, in steps that are to the window as in its README, and the
/// clean-up that is on by default. It takes text for keys.
pub(super) struct Trypema {
    provider: Arc<LocalRateLimiterProvider>,
    rate: RateLimit,
}

impl Contestant<str> for Trypema {
    const NAME: &'static str = "trypema 2.2";
    const REMARK: Option<&'static str> = Some("a sliding window; text keys only");

    fn build(setup: &Setup) -> Result<Self, Box<dyn Error>> {
        const STEPS: u64 = 6_000; // 10 ms in one minute
        let window_s = setup.limit.window().as_secs().max(1);
        let step_ms = (window_s * 1_000 / STEPS).max(1);
        let provider = LocalRateLimiterProvider::builder()
            .window_size(WindowSize::seconds(window_s)?)
            .bucket_size(BucketSize::milliseconds(step_ms)?)
            .build()?;
        let rate = RateLimit::per_second(f64::from(setup.limit.burst) / window_s as f64)?;
        Ok(Self { provider, rate })
    }

    #[inline]
    fn check(&self, key: &str) -> bool {
        matches!(self.provider.absolute().inc(key, &self.rate, 1), RateLimitDecision::Allowed)
    }
}
