//! A thing that one thread at a time has, and nobody waits for.

use crate::sync::{AtomicU64, Ordering};

/// Whether somebody has it.
#[derive(Debug)]
pub struct Hold(AtomicU64);

/// It is had, until this is dropped.
#[derive(Debug)]
pub struct Held<'a>(&'a Hold);

impl Hold {
    /// Nobody has it.
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Has the calling thread have it, if nobody does.
    #[inline(always)]
    pub fn attempt(&self) -> Option<Held<'_>> {
        // ORDERING: Acquire pairs with the Release in `Held`'s drop: who has it sees what the one before left.
        let held = self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        // Not made where it is not had: dropping it lets go.
        held.is_ok().then(|| Held(self))
    }
}

impl Default for Hold {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // ORDERING: Release pairs with the Acquire in `Hold::attempt`.
        self.0.0.store(0, Ordering::Release);
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_get_it_does_not_let_go_of_it() {
        let hold = Hold::new();
        let held = hold.attempt().unwrap();
        assert!(hold.attempt().is_none() && hold.attempt().is_none());
        drop(held);
        assert!(hold.attempt().is_some());
        let panics = std::panic::AssertUnwindSafe(|| {
            let _held = hold.attempt().unwrap();
            panic!("while it is had");
        });
        assert!(std::panic::catch_unwind(panics).is_err() && hold.attempt().is_some());
    }
}
