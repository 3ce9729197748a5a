//! A process that was forked has no refresher: threads do not survive a fork. Limiters that the child inherits must
//! notice and go on by the counter, whoever asks.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::thread;
use std::time::{Duration, Instant};

use tidegate::{ExactLimiter, Limit, Limiter, Rate};

/// Two tokens a second, one at a time.
fn limit() -> Limit {
    Limit::bucket(Rate::per_second(2), 1)
}

/// Forks while the shared time is being refreshed and the bucket is dry; in the child, after the token must be back,
/// counts how often `asks` passes. A child can only report by its exit status.
fn passes_in_child(allow: impl Fn() -> bool, asks: impl FnOnce() -> usize) -> i32 {
    let start = Instant::now();
    // Long enough that the refresher does not take the process for an idle one.
    while start.elapsed() < Duration::from_millis(1_300) {
        thread::sleep(Duration::from_millis(1));
        let _ = allow();
    }
    while !allow() {}
    // SAFETY: (1) the child only sleeps, checks and leaves by `_exit`: it allocates nothing that another thread of
    // the parent might have locked, but for threads it makes itself through glibc, which resets its allocator after
    // a fork. (2) The parent waits for the child it made.
    unsafe {
        match libc::fork() {
            0 => {
                thread::sleep(Duration::from_millis(1_500));
                let passed = i32::try_from(asks()).unwrap_or(i32::MAX);
                libc::_exit(passed.min(100))
            }
            child => {
                assert!(child > 0, "fork: {}", std::io::Error::last_os_error());
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                assert!(libc::WIFEXITED(status), "the child did not come to its end: {status}");
                libc::WEXITSTATUS(status)
            }
        }
    }
}

#[test]
fn a_limiter_goes_on_in_a_forked_child() {
    let limiter = Limiter::builder(limit()).build().unwrap();
    let asks = || (0..10_000).filter(|_| limiter.allow("a")).count();
    assert_eq!(passes_in_child(|| limiter.allow("a"), asks), 1, "the bucket holds one");
}

#[test]
fn an_exact_limiter_goes_on_in_a_forked_child() {
    let limiter = ExactLimiter::<u32>::builder(limit()).build().unwrap();
    let asks = || (0..10_000).filter(|_| limiter.allow(&1)).count();
    assert_eq!(passes_in_child(|| limiter.allow(&1), asks), 1, "the bucket holds one");
}

/// Each thread asks once: none of them comes to its 64th refusal.
#[test]
fn a_limiter_goes_on_in_a_forked_child_whose_threads_are_short_lived() {
    let limiter = Limiter::builder(limit()).build().unwrap();
    let alone = || thread::scope(|scope| scope.spawn(|| limiter.allow("a")).join().unwrap());
    let asks = || (0..100).filter(|_| alone()).count();
    assert!(passes_in_child(|| limiter.allow("a"), asks) >= 1);
}
