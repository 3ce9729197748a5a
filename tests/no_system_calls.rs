//! An admitted check makes no system call: a child process forbids its checking thread every one of them.
//!
//! The test runs itself again as a child. There a thread warms a limiter up on the real clock, enters seccomp's
//! strict mode (the kernel then ends the thread at its first call but read and write), runs a million admitted
//! checks, and says so by one `write`. The thread that watches it says so if it vanished instead. A second child
//! makes one system call on purpose, and must be caught.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tidegate::{Alignment, ExactLimiter, Limit, Rate, Window};

/// Says to a child what it is to do; unset in the parent.
const TASK: &str = "TIDEGATE_SYSTEM_CALL_TASK";
const CHECKS: usize = 1_000_000;
const DONE: &str = "child: all checks done";
const ENDED: &str = "child: thread ended by the kernel";
const UNAVAILABLE: &str = "child: no strict mode here";

/// Never reached: ten milliseconds are usual.
const TIME_OUT: Duration = Duration::from_secs(30);

/// Writes a line to standard output without a buffer, a lock or an allocation.
fn say(line: &str) {
    for text in [line, "\n"] {
        // SAFETY: (1) the pointer and the length are those of a live `str`; (2) `write` only reads from it.
        unsafe { libc::write(libc::STDOUT_FILENO, text.as_ptr().cast(), text.len()) };
    }
}

/// Enters strict mode: from here on this thread may only read and write. False where the kernel has none.
fn forbid_system_calls() -> bool {
    let mode = libc::c_ulong::from(libc::SECCOMP_MODE_STRICT);
    // SAFETY: `PR_SET_SECCOMP` with the strict mode takes no pointer; it changes this thread alone.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode) == 0 }
}

/// Stays in strict mode for ever: even the end of a thread needs calls that are forbidden now.
fn stay() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// What the checking thread of a child does.
fn check_in_strict_mode(task: &str) {
    let rate = Rate::per_second(1_000_000_000);
    let window = |limit| Window::new(limit, Duration::from_secs(3_600));
    let limit = match task {
        "window" => Limit::window(window(10_000_000)).align(Alignment::FirstRequest),
        _ => Limit::bucket(rate, 100_000_000),
    };
    let limiter = ExactLimiter::<u64>::builder(limit).build().unwrap();
    let admitted = |checks: usize| (0..checks).filter(|_| limiter.allow(&7)).count();
    assert_eq!(admitted(1_000), 1_000);
    if !forbid_system_calls() {
        say(UNAVAILABLE);
        return;
    }
    if task == "call" {
        // SAFETY: `getppid` takes nothing and touches no memory of ours.
        unsafe { libc::getppid() };
    }
    let count = admitted(CHECKS);
    say(if count == CHECKS {
        DONE
    } else {
        "child: some checks were refused"
    });
    stay();
}

/// The child's whole life; the parent kills it when it has heard enough.
#[test]
fn child() {
    let Ok(task) = std::env::var(TASK) else {
        return;
    };
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        // SAFETY: `gettid` takes nothing and touches no memory of ours.
        sender.send(unsafe { libc::gettid() }).unwrap();
        check_in_strict_mode(&task);
    });
    let thread_id = receiver.recv().unwrap();
    let alive = format!("/proc/self/task/{thread_id}");
    while std::path::Path::new(&alive).exists() {
        thread::sleep(Duration::from_millis(1));
    }
    say(ENDED);
}

/// Ends the child however the test ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _gone_already = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Runs a child on `task` and returns the first line of those above that it says.
fn verdict(task: &str) -> &'static str {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(TASK, task)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut child = Killed(child);
    let mut out = child.0.stdout.take().unwrap();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let (mut heard, mut chunk) = (Vec::new(), [0; 256]);
        loop {
            let length = out.read(&mut chunk).unwrap_or(0);
            heard.extend_from_slice(&chunk[..length]);
            let text = String::from_utf8_lossy(&heard);
            let verdict = [UNAVAILABLE, DONE, ENDED]
                .into_iter()
                .find(|line| text.contains(line));
            if verdict.is_some() || length == 0 {
                let _too_late = sender.send(verdict.ok_or_else(|| text.into_owned()));
                return;
            }
        }
    });
    match receiver.recv_timeout(TIME_OUT) {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(text)) => panic!("the child for {task:?} ended early: {text}"),
        Err(_) => panic!("the child for {task:?} said nothing in {TIME_OUT:?}"),
    }
}

fn assert_verdict(task: &str, expected: &str) {
    match verdict(task) {
        UNAVAILABLE => println!("skipped: this kernel has no seccomp strict mode"),
        found => assert_eq!(found, expected, "task {task:?}"),
    }
}

#[test]
fn a_million_admitted_checks_of_a_bucket_make_no_system_call() {
    assert_verdict("bucket", DONE);
}

#[test]
fn a_million_admitted_checks_of_a_window_make_no_system_call() {
    assert_verdict("window", DONE);
}

#[test]
fn one_system_call_is_caught() {
    assert_verdict("call", ENDED);
}
