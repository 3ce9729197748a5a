//! The public surface, as a caller holds it: what is `Copy`, what is an error, what is borrowed, what is told.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use common::{manual, secs};
use tidegate::{
    Alignment, Clock, ConfigError, Denied, ExactIter, ExactLimiter, Limit, Manual, Pass, Precise, Rate,
    Reason, Ticking, Window, WindowName, WindowState,
};

fn is_copy<T: Copy>() {}
fn is_error<T: Error + Send + Sync + 'static>() {}
fn is_shared<T: Send + Sync>() {}

#[test]
fn answers_are_copied_and_limiters_are_shared() {
    is_copy::<Limit>();
    is_copy::<Rate>();
    is_copy::<Window>();
    is_copy::<Pass>();
    is_copy::<Denied>();
    is_copy::<WindowState>();
    is_error::<Denied>();
    is_error::<ConfigError>();
    #[cfg(feature = "snapshot")]
    is_error::<tidegate::RestoreError>();
    #[cfg(feature = "policy")]
    is_error::<tidegate::policy::ReloadError>();
    #[cfg(feature = "watch")]
    is_error::<tidegate::policy::WatchError>();
    #[cfg(feature = "watch")]
    is_shared::<tidegate::policy::Watch>();
    #[cfg(feature = "metrics")]
    is_shared::<tidegate::notify::Metrics>();
    #[cfg(feature = "tracing")]
    is_shared::<tidegate::notify::Log>();
    #[cfg(feature = "webhook")]
    is_error::<tidegate::notify::WebhookError>();
    #[cfg(feature = "webhook")]
    is_shared::<tidegate::notify::Webhooks>();
    is_shared::<ExactLimiter<String, Ticking>>();
    is_shared::<ExactLimiter<u64, Precise>>();
    is_shared::<ExactLimiter<u64, Manual>>();
    is_shared::<ExactIter<'_, String, Ticking>>();
}

/// Limits are constants where a caller wants them to be.
const RATES: [Rate; 5] = [
    Rate::per_second(1),
    Rate::per_minute(60),
    Rate::per_hour(3_600),
    Rate::per_day(86_400),
    Rate::new(5, Duration::from_secs(5)),
];

#[test]
fn one_a_second_by_any_name_is_one_a_second() {
    for rate in RATES {
        let (limiter, clock) = manual::<u64>(Limit::bucket(rate, 3));
        assert!(limiter.check_n(&1, 3).is_ok());
        clock.advance(secs(1) - Duration::from_nanos(1));
        assert!(!limiter.allow(&1), "{rate:?}");
        clock.advance(Duration::from_nanos(1));
        assert!(limiter.allow(&1), "{rate:?}");
    }
}

#[test]
fn a_limiter_gives_back_what_it_was_built_of() {
    let limit = Limit::window(Window::new(5, secs(60))).align(Alignment::FirstRequest);
    let clock = Manual::at_unix(secs(100));
    let builder = ExactLimiter::<u64>::builder(limit).max_keys(17).clock(clock.clone());
    let limiter = builder.build().unwrap();
    assert_eq!(limiter.limit(), limit);
    assert_ne!(limiter.limit(), limit.count_refused(false));
    assert_eq!(limiter.max_keys(), 17);
    assert!(limiter.is_empty());
    let _ = limiter.allow(&1);
    assert_eq!((limiter.len(), limiter.is_empty()), (1, false));
    // A clone of a clock moved by hand is the same clock.
    clock.advance(secs(7));
    assert_eq!(limiter.clock().elapsed(), secs(7));
    assert_eq!(limiter.clock().unix(), secs(107));
    assert_eq!(limiter.clock().lag_max(), Duration::ZERO);
    let unsaid = ExactLimiter::<u64>::builder(limit).clock(Manual::new()).build().unwrap();
    assert_eq!(unsaid.max_keys(), 100_000);
}

#[test]
fn keys_are_borrowed() {
    let (limiter, _clock) = manual::<String>(Limit::bucket(Rate::per_hour(1), 2));
    let limiter = Arc::new(limiter);
    assert!(limiter.allow("client"));
    assert!(limiter.allow(&String::from("client")));
    assert!(!limiter.allow("client"));
    assert_eq!(limiter.len(), 1);
    let (bytes, _clock) = manual::<Vec<u8>>(Limit::bucket(Rate::per_hour(1), 1));
    assert!(bytes.allow(&[1, 2, 3][..]));
    assert!(!bytes.allow(&[1, 2, 3][..]));
}

#[test]
fn a_refusal_reads_as_a_sentence_and_travels_as_an_error() {
    fn serve(limiter: &ExactLimiter<u64, Manual>) -> Result<u64, Box<dyn Error>> {
        Ok(limiter.check(&1)?.remaining())
    }
    let (limiter, _clock) = manual::<u64>(Limit::window(Window::new(1, secs(60))));
    assert_eq!(serve(&limiter).unwrap(), 0);
    let error = serve(&limiter).unwrap_err();
    assert!(error.to_string().len() > 10, "{error}");
    let denied = error.downcast_ref::<Denied>().unwrap();
    assert_eq!((denied.reason(), denied.limit()), (Reason::Exhausted, 1));
}

#[test]
fn windows_are_named() {
    let names = |limit: Limit| -> Vec<(WindowName, String, u64)> {
        let (limiter, _clock) = manual::<u64>(limit);
        let pass = limiter.check(&1).unwrap();
        pass.windows().iter().map(|window| (window.name, window.name.to_string(), window.limit)).collect()
    };
    let (burst, sustain) = (Window::new(3, secs(1)), Window::new(9, secs(10)));
    let bucket = names(Limit::bucket(Rate::per_second(1), 5));
    assert_eq!(bucket, [(WindowName::Bucket, "bucket".to_owned(), 5)]);
    assert_eq!(names(Limit::window(burst)), [(WindowName::Window, "window".to_owned(), 3)]);
    assert_eq!(names(Limit::sliding_window(burst)), [(WindowName::Sliding, "sliding".to_owned(), 3)]);
    let both = [(WindowName::Burst, "burst".to_owned(), 3), (WindowName::Sustain, "sustain".to_owned(), 9)];
    assert_eq!(names(Limit::burst_sustain(burst, sustain)), both);
}

#[test]
fn a_full_table_says_so_and_still_lets_look() {
    let clock = Manual::new();
    let builder = ExactLimiter::<u64>::builder(Limit::bucket(Rate::per_second(1), 5)).max_keys(1);
    let limiter = builder.clock(clock.clone()).build().unwrap();
    assert!(limiter.check_n(&1, 5).is_ok());
    let denied = limiter.check(&2).unwrap_err();
    assert_eq!(denied.reason(), Reason::Full);
    assert!(denied.retry_after().is_some() && denied.retry_after_secs() >= 1);
    assert_eq!(limiter.check_n(&2, 0).unwrap().remaining(), 5);
    assert_eq!(limiter.check_n(&2, 6).unwrap_err().reason(), Reason::TooLarge);
    // When the told time is over, the place is free: nobody else came.
    clock.advance(denied.retry_after().unwrap());
    assert!(limiter.allow(&2));
}

#[test]
fn the_default_clock_works_unasked() {
    let limiter = ExactLimiter::<&str>::builder(Limit::bucket(Rate::per_hour(1), 1)).build().unwrap();
    assert!(limiter.allow(&"key"));
    let denied = limiter.check(&"key").unwrap_err();
    assert!(denied.retry_after_secs() > 3_500 && denied.retry_after_secs() <= 3_600);
}
