//! The exact table with little room: any limit, many keys, any clock, against a log of what was given.
#![no_main]

use tidegate_fuzz::tables;

libfuzzer_sys::fuzz_target!(|input: tables::Input| tables::run_exact(&input));
