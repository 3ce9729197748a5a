//! How large the types are that every check makes or reads. A change that grows one of them is to be seen.

use std::mem::size_of;

use tidegate::internals::{
    Bucket, Charged, Decided, Rule, SharedTime, Sliding, Windowed, timebase::Timebase,
};
use tidegate::{Denied, Limit, Pass, SingleLimiter, Ticking};

#[test]
#[cfg(target_pointer_width = "64")]
fn what_a_check_makes_is_small() {
    let sizes = [
        ("Timebase", size_of::<Timebase>(), 24),
        ("Bucket", size_of::<Bucket>(), 32),
        ("Windowed", size_of::<Windowed>(), 40),
        ("Sliding", size_of::<Sliding>(), 32),
        ("Rule", size_of::<Rule>(), 64),
        ("Decided", size_of::<Decided>(), 16),
        ("Option<Charged>", size_of::<Option<Charged>>(), 24),
        ("Pass", size_of::<Pass>(), 96),
        ("Denied", size_of::<Denied>(), 120),
        ("Ticking", size_of::<Ticking>(), 8),
        ("Limit", size_of::<Limit>(), 72),
    ];
    for (name, size, pinned) in sizes {
        assert_eq!(size, pinned, "{name}");
    }
    assert_eq!(size_of::<SharedTime>() % 128, 0, "alone on its pair of lines");
    let limiter = size_of::<SingleLimiter>();
    assert!((1_024..2_048).contains(&limiter), "one limit for everybody takes {limiter} bytes");
}
