//! How a limiter is told to stagger.

use std::time::Duration;

use super::Builder;
use crate::time::Clock;

impl<C: Clock> Builder<C> {
    /// Whether the refused are told to come back one after the other ([`Denied::retry_after_staggered`](crate::Denied::retry_after_staggered)); not unless told. For
    /// keys that many callers share: one caller has nobody to step aside for.
    ///
    /// Each refusal then takes a place; an admitted check pays nothing. Places are kept in up to 256 rows of 128 bytes, by
    /// the key's hash: keys that fall on one row stand in one row, and wait for each other's places.
    /// [`allow`](crate::Limiter::allow) tells nobody when to come back, and takes none.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{Limit, Limiter, Manual, Rate};
    ///
    /// let limiter = Limiter::builder(Limit::bucket(Rate::per_second(100), 1))
    ///     .stagger(true)
    ///     .clock(Manual::new())
    ///     .build()?;
    /// assert!(limiter.allow("a title"));
    /// let waits: Vec<_> = (0..3).filter_map(|_| limiter.check("a title").err()?.retry_after_staggered()).collect();
    /// assert_eq!(waits, [10, 20, 30].map(Duration::from_millis));
    /// # Ok::<(), tidegate::ConfigError>(())
    /// ```
    pub fn stagger(mut self, stagger: bool) -> Self {
        self.settings.stagger = stagger;
        self
    }

    /// The longest staggered wait, unless the [shortest](crate::Denied::retry_after) that is enough is longer; an hour unless told.
    pub fn stagger_wait_max(mut self, wait_max: Duration) -> Self {
        self.settings.stagger_wait_max = wait_max;
        self
    }
}
