//! The only file that names an atomic type. Built with `--cfg tidegate_loom`, the same code runs on
//! loom's twins, so that the models in `loom-tests/` check what ships.

#[cfg(not(tidegate_loom))]
pub(crate) use std::sync::atomic::fence;
#[cfg(not(tidegate_loom))]
pub use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(tidegate_loom)]
pub(crate) use loom::sync::atomic::fence;
#[cfg(tidegate_loom)]
pub use loom::sync::atomic::{AtomicU64, Ordering};

/// A statistic that no decision hangs on: not loom's twin, so that models do not explore who counts first.
pub(crate) use std::sync::atomic::AtomicU64 as Tally;

/// A static that each thread has one of, made without a check whether it is there already.
macro_rules! each_thread_has {
    ($name:ident: $type:ty = $start:expr) => {
        #[cfg(not(tidegate_loom))]
        std::thread_local! { static $name: $type = const { $start }; }
        #[cfg(tidegate_loom)]
        loom::thread_local! { static $name: $type = $start; }
    };
}
pub(crate) use each_thread_has;

/// A value alone on its pair of cache lines: x86 fetches lines in pairs, so neighbours closer than
/// 128 bytes would still slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

/// `count` zeroed words on memory that the system commits when it is first written; `None` if there is
/// not as much. (Under loom each word is made singly.)
pub(crate) fn zeroed_words(count: usize) -> Option<Box<[AtomicU64]>> {
    #[cfg(not(tidegate_loom))]
    {
        zerocopy::FromZeros::new_box_zeroed_with_elems(count).ok()
    }
    #[cfg(tidegate_loom)]
    {
        Some((0..count).map(|_| AtomicU64::new(0)).collect())
    }
}
