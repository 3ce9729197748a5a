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

/// A value alone on its pair of cache lines: x86 fetches lines in pairs, so neighbours closer than
/// 128 bytes would still slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);
