//! The sliding window counter: every count of every window is kept, and a wait is found by trying.

use std::collections::HashMap;

use super::{Decision, Share};

/// A sliding window: the last aligned window counts by the share of it that is younger than one period.
#[derive(Clone, Debug)]
pub struct Sliding {
    limit: u128,
    period_ns: u128,
    /// Added to now before it is divided into windows; a key may have its own.
    shift_ns: u128,
    shifts_ns: HashMap<u64, u128>,
    count_refused: bool,
    /// Counts, and what is used, stop here.
    count_max: u128,
    /// For each key and number of a window, what was counted in it.
    counted: HashMap<u64, HashMap<u128, u128>>,
}

impl Sliding {
    /// At most `limit` in each `period_ns`, by the weighed count.
    #[must_use]
    pub fn new(limit: u128, period_ns: u128, shift_ns: u128, count_refused: bool) -> Self {
        assert!(limit > 0 && period_ns > 0);
        Self {
            limit,
            period_ns,
            shift_ns,
            shifts_ns: HashMap::new(),
            count_refused,
            count_max: u128::MAX,
            counted: HashMap::new(),
        }
    }

    /// Has every count stop at `count_max`, as one in a field of a word does.
    pub fn saturate_at(&mut self, count_max: u128) {
        self.count_max = count_max;
    }

    /// Gives `key` a shift of its own.
    pub fn shift_key(&mut self, key: u64, shift_ns: u128) {
        self.shifts_ns.insert(key, shift_ns);
    }

    /// Decides a request of `cost` for `key`, and counts it. Cost 0 looks only; a cost above the limit never counts.
    pub fn check(&mut self, key: u64, now_ns: u128, cost: u128) -> Decision {
        if cost > self.limit {
            return Decision::refused(vec![self.share(key, now_ns, true)], 0, None);
        }
        let passes = self.fits(key, now_ns, cost);
        if cost > 0 && (passes || self.count_refused) {
            self.charge(key, now_ns, cost);
        }
        let share = self.share(key, now_ns, !passes);
        if passes {
            return Decision::passed(vec![share]);
        }
        let retry_ns = self.first_ns(key, now_ns, self.limit - cost) - now_ns;
        Decision::refused(vec![share], 0, Some(retry_ns))
    }

    /// Whether a request of `cost` would pass; changes nothing.
    #[must_use]
    pub fn fits(&self, key: u64, now_ns: u128, cost: u128) -> bool {
        let (window, elapsed_ns) = self.place(key, now_ns);
        let (previous, current) = (self.previous(key, window), self.counted(key, window));
        let period_ns = self.period_ns;
        let wanted = previous * (period_ns - elapsed_ns) + (current + cost) * period_ns;
        cost == 0 || wanted <= self.limit * period_ns
    }

    /// Counts `cost` without asking whether it fits: for tests that follow another's decisions.
    pub fn charge(&mut self, key: u64, now_ns: u128, cost: u128) {
        let (window, _) = self.place(key, now_ns);
        let count = self.counted.entry(key).or_default().entry(window).or_default();
        *count = (*count + cost).min(self.count_max);
    }

    /// What is used: the current count, and the previous one by its share, rounded up.
    #[must_use]
    pub fn used(&self, key: u64, now_ns: u128) -> u128 {
        let (window, elapsed_ns) = self.place(key, now_ns);
        let weight = self.previous(key, window) * (self.period_ns - elapsed_ns);
        (self.counted(key, window) + weight.div_ceil(self.period_ns)).min(self.count_max)
    }

    /// The previous count, and how much of the current window has passed.
    #[must_use]
    pub fn previous_and_elapsed_ns(&self, key: u64, now_ns: u128) -> (u128, u128) {
        let (window, elapsed_ns) = self.place(key, now_ns);
        (self.previous(key, window), elapsed_ns)
    }

    fn share(&self, key: u64, now_ns: u128, refuses: bool) -> Share {
        let used = self.used(key, now_ns);
        let wait_ns = |target| self.first_ns(key, now_ns, target) - now_ns;
        Share {
            limit: self.limit,
            remaining: self.limit.saturating_sub(used),
            observed: used,
            next_ns: if used == 0 { 0 } else { wait_ns(used - 1) },
            reset_ns: if used == 0 { 0 } else { wait_ns(0) },
            refuses,
        }
    }

    /// The first nanosecond from now on at which no more than `target` is used, by bisection.
    fn first_ns(&self, key: u64, now_ns: u128, target: u128) -> u128 {
        let (window, _) = self.place(key, now_ns);
        // Two windows on, nothing is left.
        let (mut low, mut high) = (now_ns, (window + 2) * self.period_ns - self.shift_ns(key));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.used(key, middle) <= target {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// The number of the current window and how much of it has passed. Before the latest window that it was counted in
    /// (the clock stepped back) a key stays at the start of that.
    fn place(&self, key: u64, now_ns: u128) -> (u128, u128) {
        let position = now_ns + self.shift_ns(key);
        let window = position / self.period_ns;
        let latest = self.counted.get(&key).and_then(|counted| counted.keys().max());
        match latest {
            Some(&latest) if window < latest => (latest, 0),
            _ => (window, position % self.period_ns),
        }
    }

    fn counted(&self, key: u64, window: u128) -> u128 {
        self.counted.get(&key).and_then(|counted| counted.get(&window)).copied().unwrap_or(0)
    }

    fn previous(&self, key: u64, window: u128) -> u128 {
        window.checked_sub(1).map_or(0, |previous| self.counted(key, previous))
    }

    fn shift_ns(&self, key: u64) -> u128 {
        self.shifts_ns.get(&key).copied().unwrap_or(self.shift_ns)
    }
}
