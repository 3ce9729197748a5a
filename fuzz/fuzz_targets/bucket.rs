//! Any bucket, any requests, any clock, against the twin.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: tidegate_fuzz::bucket::Input| tidegate_fuzz::bucket::run(&input));
