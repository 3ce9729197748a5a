//! One contestant and the threads that ask it.

use std::error::Error;
use std::hint::black_box;
use std::marker::PhantomData;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use tidegate_cli::bench::rounds::start_together;

use crate::contestants::Contestant;
use crate::stream::{Key, Part};
use crate::workload::{Setup, TokenLimit};

/// A contestant whose type is hidden from the rounds but not from the timed loop, so that `check` is
/// inlined there as it would be in a server.
pub(crate) trait Runner {
    fn name(&self) -> &'static str;

    fn remark(&self) -> Option<&'static str>;

    /// Checks every key once, all of which must pass and be held.
    fn fill(&self, setup: &Setup) -> Result<(), Box<dyn Error>>;

    /// Checks each part on a thread of its own, key by key or batch by batch.
    fn round(&self, parts: &[Part<'_>], batched: bool) -> Result<Round, Box<dyn Error>>;

    /// Checks one part on the calling thread; how many passed.
    fn alone(&self, part: Part<'_>) -> u64;

    /// What evictions have forgiven, in limits of one key.
    fn forgiven_limits(&self) -> f64;

    /// Tokens that come back to one key in this time, by the contestant's own settings.
    fn comes_back(&self, limit: &TokenLimit, elapsed: Duration) -> f64;
}

/// What one round of one contestant came to.
pub(crate) struct Round {
    /// Nanoseconds a check, the mean of what each thread read from its own clock.
    pub(crate) ns: f64,
    pub(crate) admitted: u64,
}

/// The contestant `C`, asked with keys of type `K`.
pub(crate) struct Timed<K: ?Sized, C> {
    contestant: C,
    key: PhantomData<fn(&K)>,
}

impl<K: Key + ?Sized + 'static, C: Contestant<K> + 'static> Timed<K, C> {
    pub(crate) fn boxed(setup: &Setup) -> Result<Box<dyn Runner>, Box<dyn Error>> {
        let contestant = C::build(setup).map_err(|error| format!("{}: {error}", C::NAME))?;
        Ok(Box::new(Self { contestant, key: PhantomData }))
    }
}

impl<K: Key + ?Sized, C: Contestant<K>> Timed<K, C> {
    /// Nanoseconds a check on this thread, and how many passed. A function of its own, so that each
    /// contestant's loop can be found in a profile, and `ci/instructions.sh` can count what is inside it.
    #[inline(never)]
    fn timed_loop(&self, part: Part<'_>) -> (f64, u64) {
        let contestant = black_box(&self.contestant);
        let start = Instant::now();
        let admitted = K::count(part, |key| contestant.check(key));
        (start.elapsed().as_nanos() as f64 / part.len() as f64, admitted)
    }

    /// The same, batch by batch.
    #[inline(never)]
    fn timed_batches(&self, part: Part<'_>) -> (f64, u64) {
        let contestant = black_box(&self.contestant);
        let start = Instant::now();
        let admitted = K::count_batches(part, |keys| contestant.check_batch(keys));
        (start.elapsed().as_nanos() as f64 / part.len() as f64, admitted)
    }
}

impl<K: Key + ?Sized, C: Contestant<K>> Runner for Timed<K, C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn remark(&self) -> Option<&'static str> {
        C::REMARK
    }

    fn fill(&self, setup: &Setup) -> Result<(), Box<dyn Error>> {
        let keys = setup.keys;
        let admitted = K::count_all(keys, |key| self.contestant.check(key));
        if admitted != u64::from(keys) {
            return Err(format!("{} admitted {admitted} first checks of {keys} keys", C::NAME).into());
        }
        // A limiter that has dropped keys meanwhile would be timed on a smaller table.
        match self.contestant.keys_held() {
            Some(held) if held != usize::try_from(keys)? && !setup.flooded => {
                Err(format!("{} holds {held} of {keys} keys", C::NAME).into())
            }
            _ => Ok(()),
        }
    }

    fn round(&self, parts: &[Part<'_>], batched: bool) -> Result<Round, Box<dyn Error>> {
        let waiting = AtomicUsize::new(parts.len());
        let threads: Vec<(f64, u64)> = std::thread::scope(|scope| {
            let threads: Vec<_> = parts
                .iter()
                .map(|&part| {
                    let waiting = &waiting;
                    scope.spawn(move || {
                        start_together(waiting);
                        if batched { self.timed_batches(part) } else { self.timed_loop(part) }
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().map_err(|_| "a check panicked"))
                .collect::<Result<_, _>>()
        })?;
        let ns = threads.iter().map(|(ns, _)| ns).sum::<f64>() / threads.len() as f64;
        let admitted = threads.iter().map(|(_, admitted)| admitted).sum();
        Ok(Round { ns, admitted })
    }

    fn alone(&self, part: Part<'_>) -> u64 {
        self.timed_loop(part).1
    }

    fn forgiven_limits(&self) -> f64 {
        self.contestant.forgiven_limits()
    }

    fn comes_back(&self, limit: &TokenLimit, elapsed: Duration) -> f64 {
        C::comes_back(limit, elapsed)
    }
}
