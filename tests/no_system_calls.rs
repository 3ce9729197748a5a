//! An admitted check makes no system call: a child process forbids itself every one of them.
//!
//! The test runs itself again as a child. The child warms a limiter up on the real clock, installs a seccomp
//! filter under which the kernel ends the process at any call of this thread but `exit_group`, runs a million
//! admitted checks, and leaves with a status that says so. A child that makes one system call on purpose must be
//! caught. (Seccomp's strict mode would do without a filter, but it takes the time stamp counter away as well,
//! and a check may read that now and then.)

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use tidegate::{Alignment, ExactLimiter, Limit, Limiter, Rate, Window};

/// Says to a child what it is to do; unset in the parent.
const TASK: &str = "TIDEGATE_SYSTEM_CALL_TASK";
const CHECKS: usize = 1_000_000;

/// How a child leaves.
const DONE: i32 = 40;
const REFUSED: i32 = 41;
const UNAVAILABLE: i32 = 42;

/// The alarm that ends a child which hangs. Ten milliseconds are usual.
const TIME_OUT_S: u32 = 30;

/// Leaves at once, by the one system call that the filter lets through.
fn leave(status: i32) -> ! {
    // SAFETY: `_exit` takes a number and does not return.
    unsafe { libc::_exit(status) }
}

/// From here on every system call of this thread but `exit_group` ends the process by `SIGSYS`.
///
/// Returns whether the kernel agreed.
fn forbid_system_calls() -> bool {
    let statement = |code: u32, k: u32, skip_if_unequal: u8| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: 0,
        jf: skip_if_unequal,
        k,
    };
    let exit_group = u32::try_from(libc::SYS_exit_group).unwrap();
    let mut filter = [
        // The number of the call is the first word of what the filter sees.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, exit_group, 1),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_KILL_PROCESS, 0),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: (1) `program` and the four statements it points to live until both calls have returned; (2) the
    // kernel copies them; (3) the filter is this thread's alone.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    }
}

/// The child's whole life; a test of its own only so that it can be run by name.
#[test]
fn child() {
    let Ok(task) = std::env::var(TASK) else { return };
    let limit = match task.as_str() {
        "window" => {
            let window = Window::new(10_000_000, Duration::from_secs(3_600));
            Limit::window(window).align(Alignment::FirstRequest)
        }
        _ => Limit::bucket(Rate::per_second(1_000_000_000), 100_000_000),
    };
    let exact = ExactLimiter::<u64>::builder(limit).build().unwrap();
    let slots = Limiter::builder(limit).build().unwrap();
    let admitted = |checks: usize| (0..checks).filter(|_| exact.allow(&7) & slots.allow(&7)).count();
    assert_eq!(admitted(1_000), 1_000);
    // SAFETY: `alarm` takes a number; nobody handles its signal, which ends the process.
    unsafe { libc::alarm(TIME_OUT_S) };
    if !forbid_system_calls() {
        leave(UNAVAILABLE);
    }
    if task == "call" {
        // SAFETY: `getppid` takes nothing and touches no memory of ours.
        unsafe { libc::getppid() };
    }
    leave(if admitted(CHECKS) == CHECKS { DONE } else { REFUSED });
}

/// How a child with this task ended: the status it left with, or the signal that ended it.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Left(i32),
    Killed(i32),
}

fn assert_end(task: &str, expected: &End) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let arguments = ["--exact", "child", "--nocapture", "--test-threads=1"];
    let output = command.args(arguments).env(TASK, task).output().unwrap();
    let end = match (output.status.code(), output.status.signal()) {
        (Some(status), _) => End::Left(status),
        (None, signal) => End::Killed(signal.unwrap()),
    };
    if end == End::Left(UNAVAILABLE) {
        println!("skipped: this kernel takes no seccomp filter");
        return;
    }
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(&end, expected, "task {task:?}, which said {said:?}");
}

#[test]
fn a_million_admitted_checks_of_a_bucket_make_no_system_call() {
    assert_end("bucket", &End::Left(DONE));
}

#[test]
fn a_million_admitted_checks_of_a_window_make_no_system_call() {
    assert_end("window", &End::Left(DONE));
}

#[test]
fn one_system_call_is_caught() {
    assert_end("call", &End::Killed(libc::SIGSYS));
}
