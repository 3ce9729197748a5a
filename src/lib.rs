#![doc = include_str!("../README.md")]

mod account;
mod all;
mod answer;
mod decision;
mod error;
mod exact;
mod limit;
mod limiter;
mod receipt;
mod settings;
mod single;
mod sync;
mod table;
mod time;
mod word;

pub use all::{Against, AllDenied, AllPass, Counted, all};
pub use answer::{Denied, Pass, Standing};
pub use decision::{Reason, WindowName, WindowState, Windows};
pub use error::ConfigError;
pub use exact::{ExactBuilder, ExactLimiter};
pub use limit::{Alignment, Limit, Rate, Window};
pub use limiter::{Builder, Limiter};
pub use receipt::{Receipt, Reservation};
pub use single::{SingleBuilder, SingleLimiter};
pub use table::{OnFull, Stats};
pub use time::{Clock, Manual, Precise, Ticking};
pub use word::CarryOver;

#[doc = include_str!("../docs/contract.md")]
pub mod contract {}

/// The parts that benches, models and fuzz targets drive directly. Not covered by any promise of
/// stability.
#[doc(hidden)]
pub mod internals {
    pub use crate::sync::{AtomicU64, Ordering, Padded};
    pub use crate::table::{
        Answer, Ask, Charged, Engine, Entry, Era, Eras, ExactTable, Full, Hashing, Hot, Lease, Lines, Map,
        Missed, Ordered, PapayaMap, Places, Resets, SEALED, Single, SlotTable, Stored,
    };
    pub use crate::time::{Origin, Refresher, STALL_NS, SharedTime, TICK_NS, Trust, timebase};
    pub use crate::word::{
        Bucket, Counts, Decided, Done, Layout, Needs, Order, Outcome, Paid, Rule, TABLE_BIT, WHOLE_DEBT,
        Windowed,
    };
}
