//! Any small policies, one after the other, and any requests, beside the naive policy.
#![no_main]

use tidegate_fuzz::policies;

libfuzzer_sys::fuzz_target!(|input: policies::Input| policies::run(&input));
