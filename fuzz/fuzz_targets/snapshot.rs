//! A snapshot: restored beside a twin that went on, damaged, made up, or no snapshot at all.
#![no_main]

use tidegate_fuzz::snapshot;

libfuzzer_sys::fuzz_target!(|input: snapshot::Input| snapshot::run(&input));
