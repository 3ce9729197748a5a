//! Charges, refunds, resets and places in line: any limit, any numbers, the three limiters side by side or one with
//! little room, against a ledger of what each key was given and gave back.
#![no_main]

use tidegate_fuzz::orders;

libfuzzer_sys::fuzz_target!(|input: orders::Input| orders::run(&input));
