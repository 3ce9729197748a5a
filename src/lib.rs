#![doc = include_str!("../README.md")]

mod account;
#[cfg(feature = "tokio")]
mod acquire;
mod all;
mod answer;
mod decision;
mod error;
mod exact;
#[cfg(any(feature = "policy", tidegate_loom))]
mod hold;
#[cfg(feature = "http")]
pub mod http;
mod limit;
mod limiter;
#[cfg(any(feature = "metrics", feature = "tracing", feature = "webhook"))]
pub mod notify;
#[cfg(feature = "policy")]
pub mod policy;
#[cfg(feature = "tokio")]
mod queue;
mod receipt;
mod settings;
mod single;
#[cfg(feature = "snapshot")]
mod snapshot;
mod stagger;
mod sync;
mod table;
mod tier;
mod time;
mod word;

pub use all::{Against, AllDenied, AllPass, Counted, all};
pub use answer::{Denied, Pass, Standing};
pub use decision::{Reason, WindowName, WindowState, Windows};
pub use error::ConfigError;
pub use exact::{ExactBuilder, ExactIter, ExactLimiter};
pub use limit::{Alignment, Limit, Rate, Window};
pub use limiter::{Builder, Limiter};
pub use receipt::{Receipt, Reservation};
pub use single::{SingleBuilder, SingleLimiter};
#[cfg(feature = "snapshot")]
pub use snapshot::RestoreError;
pub use table::{OnFull, Stats};
pub use tier::Tier;
pub use time::{Clock, Manual, Precise, Ticking};
pub use word::CarryOver;

#[doc = include_str!("../docs/contract.md")]
pub mod contract {}

/// The parts that benches, models and fuzz targets drive directly. Not covered by any promise of
/// stability.
#[doc(hidden)]
pub mod internals {
    #[cfg(any(feature = "policy", tidegate_loom))]
    pub use crate::hold::{Held, Hold};
    pub use crate::stagger::{Refused, Stagger};
    pub use crate::sync::{AtomicU64, Ordering, Padded};
    #[cfg(feature = "snapshot")]
    pub use crate::table::Copied;
    pub use crate::table::{
        Answer, Ask, Change, Charged, Engine, Entry, Era, Eras, ExactTable, Full, Hashing, Hot, InTier,
        Lease, Lines, Map, Missed, OWN, Ordered, Overrides, PapayaMap, Places, Resets, SEALED, Seen, Single,
        SlotTable, Stored, TierNumber, Turn,
    };
    pub use crate::time::{Origin, Refresher, STALL_NS, SharedTime, TICK_NS, Trust, timebase};
    pub use crate::word::{
        Bucket, Counts, Decided, Done, Layout, Needs, Order, Outcome, Paid, Rule, Sliding, SlidingCounts,
        SlidingLayout, TABLE_BIT, WHOLE_DEBT, Windowed,
    };
}
