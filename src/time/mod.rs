//! Time: the clocks a limiter may run on, and the timebase that turns their nanoseconds into the
//! limiter's own units.

mod clock;
mod origin;
mod shared;
pub mod timebase;

pub use clock::{Clock, Manual, Precise, Ticking, Trust};
pub use origin::Origin;
pub use shared::{Refresher, STALL_NS, SharedTime, TICK_NS};
