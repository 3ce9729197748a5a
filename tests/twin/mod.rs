//! The naive twin: what a limiter should answer, written to be obviously right and nothing else.
//!
//! Plain `u128` arithmetic, one `HashMap` entry a key, primitives in and out: no type of the crate under
//! test stands here, so unit tests, property tests and fuzz targets can all include this file by `#[path]`.
//!
//! Times are nanoseconds since the clock's origin. Every answer describes the state after the request, except
//! [`Share::refuses`], which is judged before the request is counted.
//!
//! Range: `now < 2^63` ns, `rate < 2^34`, `burst · period < 2^97` ns: inside it nothing overflows `u128`.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each test that includes the twin uses a part of it, and none exports it"
)]

mod sliding;

use std::collections::HashMap;

pub use sliding::Sliding;

/// What one window (or the bucket) has to say about one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The largest cost that can ever pass.
    pub limit: u128,
    /// The cost that would pass now.
    pub remaining: u128,
    /// Used in the current period.
    pub observed: u128,
    /// Nanoseconds until there is more; 0 when nothing is used.
    pub next_ns: u128,
    /// Nanoseconds until all of it is back.
    pub reset_ns: u128,
    /// Whether this one stood in the way of this request.
    pub refuses: bool,
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request passes.
    pub passed: bool,
    /// Whether its cost is above a limit, so that no wait helps.
    pub too_large: bool,
    /// One entry for a bucket or a window; two, burst first, for burst + sustain.
    pub shares: Vec<Share>,
    /// Which share speaks for all: the one with the fewest left when the request passed, the one that is waited
    /// for when it was refused; the later one when two are equal.
    pub speaker: usize,
    /// The smallest of the shares' remaining.
    pub remaining: u128,
    /// Until the smallest remaining grows.
    pub next_ns: u128,
    /// Until all of it is back.
    pub reset_ns: u128,
    /// The shortest wait after which the same request passes; `None` when it passed or never can.
    pub retry_ns: Option<u128>,
}

impl Decision {
    fn passed(shares: Vec<Share>) -> Self {
        let speaker = fewest_left(&shares);
        Self::new(true, shares, speaker, None)
    }

    fn refused(shares: Vec<Share>, speaker: usize, retry_ns: Option<u128>) -> Self {
        Self::new(false, shares, speaker, retry_ns)
    }

    fn new(passed: bool, shares: Vec<Share>, speaker: usize, retry_ns: Option<u128>) -> Self {
        let fewest = fewest_left(&shares);
        Self {
            passed,
            too_large: !passed && retry_ns.is_none(),
            speaker,
            remaining: shares[fewest].remaining,
            next_ns: shares[fewest].next_ns,
            reset_ns: shares.iter().map(|share| share.reset_ns).max().unwrap_or(0),
            retry_ns,
            shares,
        }
    }
}

/// The index of the share with the fewest left; the later one of two equals.
fn fewest_left(shares: &[Share]) -> usize {
    let mut fewest = 0;
    for (index, share) in shares.iter().enumerate() {
        if share.remaining <= shares[fewest].remaining {
            fewest = index;
        }
    }
    fewest
}

/// A token bucket by the generic cell rate algorithm, in exact rational arithmetic.
///
/// For `rate` tokens per `period_ns`, time is counted in ticks of `1 / rate` ns: one nanosecond is `rate` ticks
/// and one token takes `period_ns` ticks. Both are whole numbers whatever the rate, so nothing is ever rounded.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: u128,
    period_ns: u128,
    burst: u128,
    /// For each key, the tick at which its bucket will be full again.
    full_at: HashMap<u64, u128>,
}

impl Bucket {
    /// A bucket of `burst` tokens that refills at `rate` tokens per `period_ns`.
    #[must_use]
    pub fn new(rate: u128, period_ns: u128, burst: u128) -> Self {
        assert!(rate > 0 && period_ns > 0 && burst > 0);
        Self { rate, period_ns, burst, full_at: HashMap::new() }
    }

    /// Decides a request of `cost` for `key`, and charges it if it passes. Cost 0 looks only.
    pub fn check(&mut self, key: u64, now_ns: u128, cost: u128) -> Decision {
        if cost > self.burst {
            return Decision::refused(vec![self.share(key, now_ns, true)], 0, None);
        }
        if !self.fits(key, now_ns, cost) {
            let share = self.share(key, now_ns, true);
            let fits_at = self.full_at(key) + cost * self.period_ns - self.burst * self.period_ns;
            return Decision::refused(vec![share], 0, Some(self.wait_ns(fits_at, now_ns)));
        }
        self.charge(key, now_ns, cost);
        Decision::passed(vec![self.share(key, now_ns, false)])
    }

    /// Whether a request of `cost` would pass; changes nothing.
    #[must_use]
    pub fn fits(&self, key: u64, now_ns: u128, cost: u128) -> bool {
        let now = now_ns * self.rate;
        cost == 0 || self.full_at(key).max(now) + cost * self.period_ns <= now + self.burst * self.period_ns
    }

    /// Takes `cost` tokens without asking whether they are there: for tests that follow another's decisions.
    pub fn charge(&mut self, key: u64, now_ns: u128, cost: u128) {
        if cost == 0 {
            return;
        }
        let full_at = self.full_at(key).max(now_ns * self.rate) + cost * self.period_ns;
        self.full_at.insert(key, full_at);
    }

    /// Goes on at another rate, of the same period, with another burst. What was used of a token or of many stays used.
    pub fn turn(&mut self, rate: u128, burst: u128, now_ns: u128) {
        assert!(rate > 0 && burst > 0);
        for full_at in self.full_at.values_mut() {
            *full_at = now_ns * rate + full_at.saturating_sub(now_ns * self.rate);
        }
        (self.rate, self.burst) = (rate, burst);
    }

    fn full_at(&self, key: u64) -> u128 {
        self.full_at.get(&key).copied().unwrap_or(0)
    }

    fn share(&self, key: u64, now_ns: u128, refuses: bool) -> Share {
        let missing = self.full_at(key).saturating_sub(now_ns * self.rate);
        // Tokens that are not whole yet count as used.
        let used = missing.div_ceil(self.period_ns).min(self.burst);
        let next_at = self.full_at(key).saturating_sub(used.saturating_sub(1) * self.period_ns);
        Share {
            limit: self.burst,
            remaining: self.burst - used,
            observed: used,
            next_ns: if used == 0 { 0 } else { self.wait_ns(next_at, now_ns) },
            reset_ns: self.wait_ns(self.full_at(key), now_ns),
            refuses,
        }
    }

    /// Whole nanoseconds from `now_ns` until the tick `at` is reached.
    fn wait_ns(&self, at: u128, now_ns: u128) -> u128 {
        at.saturating_sub(now_ns * self.rate).div_ceil(self.rate)
    }
}

/// Where a key's windows begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Windows tile time, `shift_ns` after the clock's origin at position 0: the Unix time of the origin for
    /// windows on the wall clock, a number of the key's own (see [`Windows::shift_key`]) for shifted ones.
    Tiled {
        /// What is added to now before it is divided into windows.
        shift_ns: u128,
    },
    /// Windows open at the first request after the last one's end. Now is floored on a grid of the first period
    /// divided by `2^grid`; `None` is the nanosecond itself.
    FirstRequest {
        /// The base-two logarithm of the number of grid steps in the first period.
        grid: Option<u32>,
    },
}

/// One or two fixed windows counted at once, the second's period a whole multiple of the first's.
#[derive(Clone, Debug)]
pub struct Windows {
    /// Limit and period in ns, the shorter first.
    windows: Vec<(u128, u128)>,
    start: Start,
    count_refused: bool,
    shifts_ns: HashMap<u64, u128>,
    keys: HashMap<u64, Counts>,
}

/// One key's counts. Positions are in steps of the grid.
#[derive(Clone, Debug)]
struct Counts {
    /// Where the longest window opened.
    opened: u128,
    /// Which of the short windows inside it is current.
    burst_number: u128,
    /// Used, one entry a window.
    used: Vec<u128>,
}

impl Windows {
    /// Windows of `(limit, period_ns)`: one, or burst then sustain.
    #[must_use]
    pub fn new(windows: &[(u128, u128)], start: Start, count_refused: bool) -> Self {
        assert!(windows.len() == 1 || windows.len() == 2);
        assert!(windows.iter().all(|&(limit, period_ns)| limit > 0 && period_ns > 0));
        assert_eq!(windows[windows.len() - 1].1 % windows[0].1, 0);
        Self {
            windows: windows.to_vec(),
            start,
            count_refused,
            shifts_ns: HashMap::new(),
            keys: HashMap::new(),
        }
    }

    /// Gives `key` a shift of its own in place of the one all tiled windows share.
    pub fn shift_key(&mut self, key: u64, shift_ns: u128) {
        self.shifts_ns.insert(key, shift_ns);
    }

    /// Decides a request of `cost` for `key`, and counts it. Cost 0 looks only; a cost above a limit counts nowhere.
    pub fn check(&mut self, key: u64, now_ns: u128, cost: u128) -> Decision {
        let mut counts = self.counts_at(key, now_ns);
        let blocked = |counts: &Counts| -> Vec<bool> {
            let over = |(&(limit, _), &used): (&(u128, u128), &u128)| cost > 0 && used + cost > limit;
            self.windows.iter().zip(&counts.used).map(over).collect()
        };
        let refuses = blocked(&counts);
        if let Some(small) = self.windows.iter().position(|&(limit, _)| cost > limit) {
            return Decision::refused(self.shares(key, &counts, now_ns, &refuses), small, None);
        }
        let passes = !refuses.contains(&true);
        let counted = cost > 0 && (passes || self.count_refused);
        if counted {
            counts.used.iter_mut().for_each(|used| *used += cost);
            self.keys.insert(key, counts.clone());
        }
        let shares = self.shares(key, &counts, now_ns, &refuses);
        if passes {
            return Decision::passed(shares);
        }
        // What stands in the way from now on, this request counted: it is over when the last such window ends.
        let speaker = blocked(&counts).iter().rposition(|&blocks| blocks).unwrap_or(0);
        let retry_ns = self.end_ns(key, &counts, speaker) - now_ns;
        Decision::refused(shares, speaker, Some(retry_ns))
    }

    /// Goes on with other limits for the same periods; all counts stay.
    pub fn turn(&mut self, limits: &[u128]) {
        assert_eq!(limits.len(), self.windows.len());
        self.windows.iter_mut().zip(limits).for_each(|(window, &limit)| window.0 = limit);
    }

    /// Whether refused requests count from now on.
    pub fn set_count_refused(&mut self, count_refused: bool) {
        self.count_refused = count_refused;
    }

    /// The key's counts with every window that is over by now emptied.
    fn counts_at(&self, key: u64, now_ns: u128) -> Counts {
        let position = self.position(key, now_ns);
        let burst_steps = self.steps(self.windows[0].1);
        let longest_steps = self.steps(self.windows[self.windows.len() - 1].1);
        if let Some(counts) = self.keys.get(&key)
            && position < counts.opened + longest_steps
        {
            let mut counts = counts.clone();
            // Before its opening (the clock stepped back) a key stays in its latest window.
            let burst_number = position.saturating_sub(counts.opened) / burst_steps;
            if burst_number > counts.burst_number {
                counts.burst_number = burst_number;
                counts.used[0] = 0;
            }
            return counts;
        }
        let opened = match self.start {
            Start::Tiled { .. } => position - position % longest_steps,
            Start::FirstRequest { .. } => position,
        };
        let burst_number = (position - opened) / burst_steps;
        Counts { opened, burst_number, used: vec![0; self.windows.len()] }
    }

    fn shares(&self, key: u64, counts: &Counts, now_ns: u128, refuses: &[bool]) -> Vec<Share> {
        let share = |index: usize| {
            let (limit, _) = self.windows[index];
            let observed = counts.used[index];
            let left_ns = if observed == 0 { 0 } else { self.end_ns(key, counts, index) - now_ns };
            Share {
                limit,
                remaining: limit.saturating_sub(observed),
                observed,
                next_ns: left_ns,
                reset_ns: left_ns,
                refuses: refuses[index],
            }
        };
        (0..self.windows.len()).map(share).collect()
    }

    /// When the window `index` ends, in ns since the clock's origin.
    fn end_ns(&self, key: u64, counts: &Counts, index: usize) -> u128 {
        let end = if index + 1 == self.windows.len() {
            counts.opened + self.steps(self.windows[index].1)
        } else {
            counts.opened + (counts.burst_number + 1) * self.steps(self.windows[0].1)
        };
        // The first nanosecond that is not before the end's step.
        let (steps, period_ns) = (self.steps(self.windows[0].1), self.windows[0].1);
        (end * period_ns).div_ceil(steps) - self.shift_ns(key)
    }

    fn position(&self, key: u64, now_ns: u128) -> u128 {
        (now_ns + self.shift_ns(key)) * self.steps(self.windows[0].1) / self.windows[0].1
    }

    fn shift_ns(&self, key: u64) -> u128 {
        match self.start {
            Start::Tiled { shift_ns } => self.shifts_ns.get(&key).copied().unwrap_or(shift_ns),
            Start::FirstRequest { .. } => 0,
        }
    }

    /// How many steps of the grid a period has.
    fn steps(&self, period_ns: u128) -> u128 {
        match self.start {
            Start::FirstRequest { grid: Some(grid) } => (period_ns / self.windows[0].1) << grid,
            _ => period_ns,
        }
    }
}
