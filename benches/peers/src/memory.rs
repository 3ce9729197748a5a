//! How much a contestant allocates: the allocator of this program, counting while it is told to.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// The system's allocator. It counts only inside [`held_bytes`]; else it costs the allocation one load.
pub(crate) struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static HELD_BYTES: AtomicI64 = AtomicI64::new(0);

/// What `make` made, and the bytes that were asked for and not given back meanwhile, by any thread. What
/// the allocator itself adds to each block is not in it; memory that was asked for and never touched is.
pub(crate) fn held_bytes<T>(make: impl FnOnce() -> T) -> (T, i64) {
    // ORDERING: Relaxed throughout. The count publishes nothing; a thread that allocates for `make` was
    // started by it or is handed work by it, and sees the switch by that.
    HELD_BYTES.store(0, Ordering::Relaxed);
    COUNTS.store(true, Ordering::Relaxed);
    let made = make();
    COUNTS.store(false, Ordering::Relaxed);
    (made, HELD_BYTES.load(Ordering::Relaxed))
}

#[inline]
fn count(taken: usize, given_back: usize) {
    if COUNTS.load(Ordering::Relaxed) {
        // Blocks are below 2^63 bytes.
        HELD_BYTES.fetch_add(taken as i64 - given_back as i64, Ordering::Relaxed);
    }
}

// SAFETY: every method hands its arguments on to `System` unchanged and returns what `System` returned;
// counting touches two atomics and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as above. Passed on as such, or large zeroed tables would be written page by page.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as above; `block` came from `System`, since every block does.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}
