//! Tiers, overrides and changes of their limits, against a naive limiter.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: tidegate_fuzz::tiers::Input| tidegate_fuzz::tiers::run(&input));
