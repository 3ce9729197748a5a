//! Whatever stands in a log: every line is a request or is counted as skipped, and no field that was
//! read is anything but a piece of its line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_cli::log::{line, read};

fuzz_target!(|bytes: &[u8]| {
    match line::parse(bytes) {
        Ok(entry) => {
            assert!(!entry.client.is_empty());
            assert!(bytes.as_ptr_range().contains(&entry.client.as_ptr()));
            assert!(entry.request.len() < bytes.len());
        }
        Err(error) => assert!(!error.kind().is_empty() && !error.to_string().is_empty()),
    }

    let log = read::read(bytes, |_| {});
    assert!(log.broken.is_none(), "a slice cannot fail: {:?}", log.broken);
    assert_eq!(log.events.len() as u64 + log.skips.total, log.lines);
    assert_eq!(log.skips.by_kind.values().sum::<u64>(), log.skips.total);
    assert!(log.events.is_sorted_by_key(|event| event.at_unix_ns));
    assert!(log.events.iter().all(|event| (event.key as usize) < log.keys.len()));
});
