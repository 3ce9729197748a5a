//! Promises that were once broken: each test states one, and the way in which it failed.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tidegate::internals::{Refresher, SharedTime, TICK_NS};
use tidegate::{Alignment, Clock, Denied, ExactLimiter, Limit, Manual, Rate, Reason, Window, WindowName};

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}
struct Counting;
// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// README: "lag: how far the shared clock ever fell behind". A refresher that is put aside between its
/// reading and its exchange leaves a lag on record that is smaller than what checks had.
#[test]
fn the_recorded_lag_is_no_less_than_what_a_check_had() {
    let time = SharedTime::new();
    let now = Cell::new(0_u64);
    let mut refresher = Refresher::default();
    time.visit(&mut refresher, || now.get());
    let lag_seen = Cell::new(0);
    now.set(40 * TICK_NS); // starved for 40 ms before the visit ...
    time.visit(&mut refresher, || {
        let read = now.get();
        now.set(now.get() + 40 * TICK_NS); // ... and for 40 ms after its reading
        lag_seen.set(now.get() - time.coarse(|| unreachable!()));
        read
    });
    now.set(now.get() + TICK_NS);
    time.visit(&mut refresher, || now.get());
    assert!(time.lag_max_ns() >= lag_seen.get(), "{} on record, {} seen", time.lag_max_ns(), lag_seen.get());
}

/// A counter that runs 25 ppm fast, and a limiter nobody asks for a while: at the next window's end it should be
/// brought back to the wall.
#[test]
fn windows_are_back_on_the_wall_after_a_quiet_night() {
    let clock = Manual::at_unix(secs(1_800_000_000));
    let limit = Limit::window(Window::new(1, secs(15))).align(Alignment::Clock);
    let limiter = ExactLimiter::<u32>::builder(limit).clock(clock.clone()).build().unwrap();
    let start = 1_800_000_000_000_000_000_u64;
    let mut counter = 0_u64;
    let mut step = |ns: u64| {
        counter += ns;
        clock.set(Duration::from_nanos(counter));
        clock.set_unix(Duration::from_nanos(start + counter - counter / 40_000));
    };
    assert!(limiter.allow(&7));
    step(5 * 3_600 * 1_000_000_000); // five quiet hours
    // Then busy for a whole day.
    let mut reset = Duration::ZERO;
    for _ in 0..86_400 {
        step(1_000_000_000);
        if let Ok(pass) = limiter.check(&7) {
            reset = pass.reset_after();
            let wall_ns = clock.unix().as_nanos() as u64;
            let _ = wall_ns;
        }
    }
    let wall_left = 15_000_000_000 - (clock.unix().as_nanos() as u64) % 15_000_000_000;
    let denied = limiter.check(&7).err().map(|denied| denied.retry_after().unwrap()).unwrap_or(reset);
    let off = (denied.as_nanos() as i64 - wall_left as i64).rem_euclid(15_000_000_000);
    let off = off.min(15_000_000_000 - off);
    assert!(off < 300_000_000, "a window ends {off} ns from the wall's");
}

/// A machine without a battery for its clock starts in 1970 and is set right by the network.
#[test]
fn a_wall_clock_that_is_set_right_does_not_end_the_limiter() {
    let clock = Manual::at_unix(secs(30));
    let limit = Limit::window(Window::new(1, secs(15))).align(Alignment::Clock);
    let limiter = ExactLimiter::<u32>::builder(limit).clock(clock.clone()).build().unwrap();
    assert!(limiter.allow(&7));
    clock.set_unix(secs(1_800_000_000));
    let mut passed = 0;
    for _ in 0..40 {
        clock.advance(secs(15));
        passed += u32::from(limiter.allow(&7));
    }
    assert!(passed >= 39, "{passed} passed in 40 windows");
}

/// `Clock`: "nanoseconds since one origin of the clock's own". The Unix epoch is such an origin.
#[test]
fn a_clock_whose_origin_is_the_unix_epoch_works() {
    let clock = Manual::new();
    clock.set(secs(1_800_000_000));
    let limit = Limit::bucket(Rate::per_second(1), 1);
    let limiter = ExactLimiter::<u32>::builder(limit).clock(clock.clone()).build().unwrap();
    assert!(limiter.allow(&7));
    clock.advance(secs(3_600));
    assert!(limiter.allow(&7), "an hour later");
}

#[test]
fn building_late_on_a_manual_clock_does_not_panic() {
    let clock = Manual::new();
    clock.set(Duration::MAX);
    let limit = Limit::window(Window::new(1, secs(15))).align(Alignment::Clock);
    let built = catch_unwind(AssertUnwindSafe(|| {
        ExactLimiter::<u32>::builder(limit).clock(clock.clone()).build().map(|limiter| limiter.allow(&1))
    }));
    assert!(built.is_ok());
}

/// "Periods tile the Unix epoch", also for a clock that has run for longer than the wall says.
#[test]
fn windows_tile_the_epoch_when_the_clock_reads_more_than_the_wall() {
    let clock = Manual::new();
    clock.set(secs(107));
    clock.set_unix(secs(30)); // a window of 15 s begins
    let limit = Limit::window(Window::new(1, secs(15))).align(Alignment::Clock);
    let limiter = ExactLimiter::<u32>::builder(limit).clock(clock.clone()).build().unwrap();
    assert!(limiter.allow(&7));
    assert_eq!(limiter.check(&7).unwrap_err().retry_after(), Some(secs(15)));
}

/// A cost above the burst limit is refused by the burst limit, whatever else is used up.
#[test]
fn too_large_names_the_limit_that_it_can_never_fit() {
    let limit = Limit::burst_sustain(Window::new(10, secs(15)), Window::new(30, secs(300)));
    let limiter = ExactLimiter::<u32>::builder(limit).clock(Manual::new()).build().unwrap();
    for _ in 0..25 {
        let _ = limiter.check(&7);
    }
    let denied = limiter.check_n(&7, 11).unwrap_err();
    assert_eq!(denied.reason(), Reason::TooLarge);
    assert_eq!((denied.binding(), denied.limit()), (WindowName::Burst, 10), "{denied}");
}

thread_local! {
    static ON_CLONE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}
#[derive(Debug, PartialEq, Eq)]
struct Noisy(u32);
impl Hash for Noisy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl Clone for Noisy {
    fn clone(&self) -> Self {
        let action = ON_CLONE.with(|action| action.borrow_mut().take());
        if let Some(action) = action {
            action();
        }
        Self(self.0)
    }
}

/// While the only place is another thread's, about to be used, a newcomer is told to come back in 584 years.
#[test]
fn full_for_an_instant_does_not_say_centuries() {
    let limit = Limit::bucket(Rate::per_second(1), 1);
    let limiter: ExactLimiter<Noisy, Manual> =
        ExactLimiter::builder(limit).max_keys(1).clock(Manual::new()).build().unwrap();
    let limiter = Arc::new(limiter);
    let denied: Arc<std::sync::Mutex<Option<Denied>>> = Arc::default();
    let (inner, seen) = (Arc::clone(&limiter), Arc::clone(&denied));
    let other = move || {
        // Another thread's check, while this one has a place and has not inserted yet.
        thread::spawn(move || *seen.lock().unwrap() = inner.check(&Noisy(2)).err()).join().unwrap();
    };
    ON_CLONE.with(|action| *action.borrow_mut() = Some(Box::new(other)));
    assert!(limiter.allow(&Noisy(1)));
    let denied = denied.lock().unwrap().unwrap();
    assert_eq!(denied.reason(), Reason::Full);
    assert!(denied.retry_after_secs() <= 60, "Retry-After: {}", denied.retry_after_secs());
}

/// A key whose clone panics (caught, as servers do) must not cost a place for ever.
#[test]
fn a_clone_that_panics_does_not_lose_a_place() {
    let limit = Limit::bucket(Rate::per_second(1), 1);
    let limiter: ExactLimiter<Noisy, Manual> =
        ExactLimiter::builder(limit).max_keys(2).clock(Manual::new()).build().unwrap();
    for _ in 0..2 {
        ON_CLONE.with(|action| *action.borrow_mut() = Some(Box::new(|| panic!("clone"))));
        assert!(catch_unwind(AssertUnwindSafe(|| limiter.allow(&Noisy(1)))).is_err());
    }
    assert_eq!(limiter.len(), 0);
    assert!(limiter.allow(&Noisy(3)), "the table is empty, and full");
}

/// README: "an admitted check of a known key takes no lock, allocates nothing".
#[test]
fn the_first_check_of_a_thread_allocates_nothing_either() {
    let limit = Limit::bucket(Rate::per_second(1), 100);
    let limiter = ExactLimiter::<u32, _>::builder(limit).clock(Manual::new()).build().unwrap();
    assert!(limiter.allow(&7));
    let counts: Vec<u64> = (0..3)
        .map(|_| {
            thread::scope(|scope| {
                scope
                    .spawn(|| {
                        let before = ALLOCATIONS.get();
                        assert!(limiter.allow(&7));
                        ALLOCATIONS.get() - before
                    })
                    .join()
                    .unwrap()
            })
        })
        .collect();
    assert_eq!(counts, [0, 0, 0]);
}
thread_local! {
    static LARGE: Cell<(u64, usize)> = const { Cell::new((0, 0)) };
}

/// A manual clock whose coarse reading can be left behind, and whose wall reading can be held up once.
#[derive(Clone)]
struct Uneven {
    inner: Manual,
    lag_ns: Arc<std::sync::atomic::AtomicU64>,
    hold_up_ms: Arc<std::sync::atomic::AtomicU64>,
}
impl Uneven {
    fn new(unix: Duration) -> Self {
        Self { inner: Manual::at_unix(unix), lag_ns: Arc::default(), hold_up_ms: Arc::default() }
    }
}
impl Clock for Uneven {
    fn coarse(&self) -> u64 {
        self.inner.coarse() - self.lag_ns.load(std::sync::atomic::Ordering::SeqCst)
    }
    fn precise(&self) -> u64 {
        self.inner.precise()
    }
    fn unix(&self) -> Duration {
        // As when the thread is put aside between the two readings.
        self.inner
            .advance(Duration::from_millis(self.hold_up_ms.swap(0, std::sync::atomic::Ordering::SeqCst)));
        self.inner.unix()
    }
}

/// README: windows "each admits at most its limit, in the limiter's own time". The table: "no new key begins
/// before the last eviction". A thread that is put aside between its decision and its insertion does.
#[test]
fn a_late_insertion_does_not_begin_an_evicted_window_anew() {
    let clock = Uneven::new(secs(1_000));
    clock.inner.advance(Duration::from_millis(10_500));
    let limit = Limit::window(Window::new(10, secs(1))).align(Alignment::Clock);
    let limiter: ExactLimiter<Noisy, Uneven> =
        ExactLimiter::builder(limit).max_keys(2).clock(clock.clone()).build().unwrap();
    let limiter = Arc::new(limiter);
    let passed = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let (inner, count, moved) = (Arc::clone(&limiter), Arc::clone(&passed), clock.clone());
    let others = move || {
        thread::spawn(move || {
            for _ in 0..20 {
                let passes = u64::from(inner.allow(&Noisy(1)));
                count.fetch_add(passes, std::sync::atomic::Ordering::SeqCst);
            }
            // The next window by the precise clock; the coarse one has not heard of it.
            moved.inner.advance(secs(1));
            moved.lag_ns.store(1_000_000_000, std::sync::atomic::Ordering::SeqCst);
            assert!(inner.allow(&Noisy(2)), "takes the place of the first");
        })
        .join()
        .unwrap();
    };
    ON_CLONE.with(|action| *action.borrow_mut() = Some(Box::new(others)));
    // All that there is until a precise reading refuses: the first window's, and the next one's.
    let late = (0..100).filter(|_| limiter.allow(&Noisy(1))).count() as u64;
    let admitted = late + passed.load(std::sync::atomic::Ordering::SeqCst);
    assert!(admitted <= 20, "{admitted} admitted in two windows of 10, in the limiter's own time");
}

/// A thread that is put aside for 20 ms between its readings of counter and wall moves every later window.
#[test]
fn windows_are_on_the_wall_again_after_one_held_up_reading() {
    let clock = Uneven::new(secs(1_800_000_000));
    let limit = Limit::window(Window::new(1, secs(1))).align(Alignment::Clock);
    let limiter = ExactLimiter::<u32, _>::builder(limit).clock(clock.clone()).build().unwrap();
    assert!(limiter.allow(&7));
    clock.hold_up_ms.store(20, std::sync::atomic::Ordering::SeqCst);
    for _ in 0..10_000 {
        clock.inner.advance(Duration::from_millis(500));
        let _ = limiter.allow(&7);
    }
    let wait = limiter.check(&7).unwrap_err().retry_after().unwrap().as_nanos();
    let wall = 1_000_000_000 - clock.inner.unix().as_nanos() % 1_000_000_000;
    assert_eq!(wait, wall, "after 5000 windows");
}

/// The same while the limiter is built.
#[test]
fn windows_are_on_the_wall_again_after_a_held_up_build() {
    let clock = Uneven::new(secs(1_800_000_000));
    clock.hold_up_ms.store(20, std::sync::atomic::Ordering::SeqCst);
    let limit = Limit::window(Window::new(1, secs(1))).align(Alignment::Clock);
    let limiter = ExactLimiter::<u32, _>::builder(limit).clock(clock.clone()).build().unwrap();
    for _ in 0..10_000 {
        clock.inner.advance(Duration::from_millis(500));
        let _ = limiter.allow(&7);
    }
    let wait = limiter.check(&7).unwrap_err().retry_after().unwrap().as_nanos();
    let wall = 1_000_000_000 - clock.inner.unix().as_nanos() % 1_000_000_000;
    assert_eq!(wait, wall, "after 5000 windows");
}

/// `tests/wall_clock.rs` drops the errors of a wall that runs slower; here they are, with a request now and then.
#[test]
fn edges_follow_a_slower_wall_with_one_request_an_hour() {
    let clock = Manual::at_unix(secs(1_800_000_000));
    let limit = Limit::window(Window::new(2, secs(1))).align(Alignment::Clock);
    let limiter = ExactLimiter::<u32>::builder(limit).clock(clock.clone()).build().unwrap();
    let start = 1_800_000_000_000_000_000_u64;
    let mut worst = 0;
    for hour in 1..=72_u64 {
        let counter = hour * 3_600_000_000_000 + hour * 123_456_789;
        let wall = start + counter - counter / 1_000_000 * 28;
        clock.set(Duration::from_nanos(counter));
        clock.set_unix(Duration::from_nanos(wall));
        let left = limiter.check(&7).unwrap().next_after().as_nanos() as u64;
        let past = (wall + left) % 1_000_000_000;
        worst = worst.max(past.min(1_000_000_000 - past));
    }
    assert!(worst < 20_000_000, "{worst} ns off");
}
