//! Whatever is typed as a limit: read without a panic, refused with a place, or understood so that it
//! prints back to the same limit and builds or fails to build in good order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate::{ExactLimiter, Manual};
use tidegate_cli::limit_spec::LimitSpec;

fuzz_target!(|text: &str| {
    match text.parse::<LimitSpec>() {
        Ok(spec) => {
            let printed = spec.to_string();
            assert_eq!(printed.parse(), Ok(spec), "{text:?} prints as {printed:?}");
            let built = ExactLimiter::<u64>::builder(spec.to_limit()).clock(Manual::new()).build();
            match built {
                Ok(limiter) => assert!(limiter.allow(&7), "{text:?} refuses the first request"),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        Err(error) => {
            assert!(text.is_char_boundary(error.offset()), "{text:?}: {error:?}");
            assert!(error.to_string().contains('^'));
        }
    }
});
