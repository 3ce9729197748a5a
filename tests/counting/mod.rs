//! The system's allocator, counting: how often each thread asks, and how much all of them hold.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test that includes this file uses a part of it, and none exports it"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    /// How often this thread asked the allocator for memory. Other threads (the clock's) have counts of their own.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Bytes that were asked for and not given back, by all threads. What the allocator adds to each block is not in it,
/// and memory that is never touched is.
static HELD: AtomicUsize = AtomicUsize::new(0);

struct Counting;

fn count(bytes: usize) {
    HELD.fetch_add(bytes, Ordering::Relaxed);
    // A thread that is being taken down may have no count left; nothing is measured there.
    let _gone = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged, which fulfils the contract; the counts touch an atomic
// and a thread-local cell without a destructor, neither of which needs an allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises about `memory`, `layout` and `new_size` are passed on.
        unsafe { System.realloc(memory, layout, new_size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises about `memory` and `layout` are passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many allocations `work` makes on this thread.
pub fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Bytes that all threads hold now.
pub fn held_bytes() -> usize {
    HELD.load(Ordering::Relaxed)
}
