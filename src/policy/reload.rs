//! One value that is read by many and replaced by few. The only file that names crossbeam-epoch, and the only one of the
//! policy with unsafe code.
//!
//! A reader pins, reads the pointer, and holds a reference for as long as its guard lives. A writer swaps the pointer and has
//! the old value dropped when every thread that was pinned then has left. Nobody waits: a reader that stays keeps
//! memory, and nothing else.
//!
//! Who drops an old value is whichever thread next passes when it is free to go, a reader too: it then pays for that.

use crossbeam_epoch::{Atomic, Guard, Owned};

use crate::sync::Ordering;

/// Epochs that pass until what was thrown away can go, and one to see it.
const EPOCHS: usize = 4;

/// Holds what was read: while it lives nothing that it may have read is dropped.
#[inline]
pub(super) fn pin() -> Guard {
    crossbeam_epoch::pin()
}

/// A value that can be replaced while it is read. Never empty.
pub(super) struct Current<T> {
    pointer: Atomic<T>,
}

impl<T: Send + Sync + 'static> Current<T> {
    pub(super) fn new(value: T) -> Self {
        Self { pointer: Atomic::new(value) }
    }

    /// The value that is there now.
    #[inline]
    pub(super) fn get<'g>(&'g self, guard: &'g Guard) -> &'g T {
        // ORDERING: Acquire: pairs with the Release of the swap in `replace`; what the pointer leads to is whole.
        let shared = self.pointer.load(Ordering::Acquire, guard);
        // SAFETY:
        // 1. Not null: `new` and `replace` store a value, and nothing else is stored before `drop`, which has `&mut self`.
        // 2. Whole: the load acquires what the store of the pointer released.
        // 3. Not dropped by `replace` while the reference lives: that borrows `guard`, which pins this thread, and a value that
        //    is replaced is dropped only when every thread has left that was pinned then.
        // 4. Nor by `drop`: the reference borrows `self` too.
        // 5. Never changed: nobody has a mutable reference to a value that was published.
        unsafe { shared.deref() }
    }

    /// Puts another value in its place; the old one is dropped when the last who reads it has left.
    pub(super) fn replace(&self, value: T) {
        let guard = pin();
        // ORDERING: AcqRel: Release publishes the new value to the Acquire in `get`; Acquire makes the old one whole for
        // whoever drops it.
        let old = self.pointer.swap(Owned::new(value), Ordering::AcqRel, &guard);
        // SAFETY:
        // 1. Unlinked: the swap took it out, so no thread that pins from here on finds it.
        // 2. Once: each value is swapped out by one caller only.
        // 3. Not null, and made by `Owned::new` or `Atomic::new` of this very type.
        // 4. Any thread may drop it: `T` is `Send`, and `'static`, so it outlives no borrow.
        unsafe { guard.defer_destroy(old) };
        // Not kept back in this thread's bag until that is full.
        guard.flush();
        drop(guard);
        // Nobody else may come by for a long time: where nobody is pinned, the old value goes now.
        for _ in 0..EPOCHS {
            pin().flush();
        }
    }
}

impl<T> Drop for Current<T> {
    fn drop(&mut self) {
        let pointer = std::mem::replace(&mut self.pointer, Atomic::null());
        // SAFETY:
        // 1. Nobody reads it: every reference that `get` gave borrows `self`, which is borrowed mutably here.
        // 2. Nobody else drops it: a value that `replace` took out is no longer in `pointer`.
        // 3. Made by `Owned::new` or `Atomic::new` of this very type.
        drop(unsafe { pointer.try_into_owned() });
    }
}
