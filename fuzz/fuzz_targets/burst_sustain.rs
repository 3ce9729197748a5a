//! Any burst + sustain windows, any requests, any clock, against the twin.
#![no_main]

use tidegate_fuzz::windows;

libfuzzer_sys::fuzz_target!(|input: windows::Input| windows::run(&input, windows::Kind::BurstSustain));
