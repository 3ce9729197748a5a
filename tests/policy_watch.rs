//! A policy and its file: loaded again when asked, and followed.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tidegate::Manual;
use tidegate::policy::{Changes, Policy, ReloadError, Request, Rules, Watch, watch};

type Event = Result<Changes, ReloadError>;

/// Far longer than an event takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A folder of its own, gone in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tidegate-watch-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("limits.toml")
    }

    /// Written in place.
    fn write(&self, text: &str) {
        fs::write(self.file(), text).unwrap();
    }

    /// Written beside it, and renamed over it.
    fn rename_over(&self, text: &str) {
        let new = self.0.join(".limits.toml.new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.file()).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// One rule with a bucket of so many for each user.
fn burst(burst: u64) -> String {
    format!("[[rule]]\nname = \"all\"\nkey = \"user\"\nlimit = {{ rate = \"1/d\", burst = {burst} }}\n")
}

fn in_force(text: &str) -> Arc<Policy<Manual>> {
    let rules = Rules::from_toml(text, "test.toml").unwrap();
    Arc::new(Policy::builder(rules).seed(common::SEED).clock(Manual::new()).build().unwrap())
}

/// How many more of Ada's requests are allowed; they count.
fn allowed(policy: &Policy<Manual>) -> usize {
    (0..100).filter(|_| policy.check(&Request::new("x").user("ada")).is_allowed()).count()
}

fn follow(policy: &Arc<Policy<Manual>>, folder: &Folder) -> (Watch, Receiver<Event>) {
    let (tell, told) = channel();
    let watch = watch(Arc::clone(policy), folder.file(), move |event| _ = tell.send(event)).unwrap();
    (watch, told)
}

fn next(told: &Receiver<Event>) -> Event {
    told.recv_timeout(LONG).expect("an event")
}

fn changed(event: Event) -> Vec<String> {
    event.unwrap().changed
}

/// Until the wanted burst is in force, however many states of the file were seen on the way.
fn until(told: &Receiver<Event>, policy: &Policy<Manual>, burst: u64) {
    let is_there = || {
        let verdict = policy.peek(&Request::new("x").user("nobody"));
        verdict.nearest().is_some_and(|limit| limit.remaining() == burst)
    };
    while !is_there() {
        _ = next(told);
    }
}

#[test]
fn a_reload_takes_what_the_file_says_and_a_bad_one_nothing() {
    let folder = Folder::new();
    let policy = in_force(&burst(5));
    assert_eq!(allowed(&policy), 5);
    folder.write(&burst(8));
    assert_eq!(policy.reload(folder.file()).unwrap().changed, ["all"]);
    assert_eq!(allowed(&policy), 3, "of eight five were used");

    // Every mistake, each with its place.
    folder.write(&burst(50).replace("burst", "brust").replace("key", "kye"));
    let error = policy.reload(folder.file()).unwrap_err();
    let ReloadError::File(problems) = &error else { panic!("{error:?}") };
    let lines: Vec<Option<usize>> = problems.iter().map(|problem| problem.line()).collect();
    assert!(lines.contains(&Some(3)) && lines.contains(&Some(4)), "{error}");
    let shown = error.to_string();
    assert!(shown.contains("did you mean \"key\"") && shown.contains("did you mean \"burst\""), "{shown}");
    assert_eq!(allowed(&policy), 0, "the old policy is in force");

    fs::remove_file(folder.file()).unwrap();
    let error = policy.reload(folder.file()).unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
    assert_eq!(allowed(&policy), 0);
}

/// The limiter that would go on with it has no bits for it: a new one is made, and that is told.
#[test]
fn what_cannot_follow_what_is_in_force_is_made_anew() {
    let sliding = |limit: u64| {
        format!("[[rule]]\nname = \"wide\"\nkey = \"user\"\nlimit = {{ sliding = \"{limit}/1s\" }}\n")
    };
    let folder = Folder::new();
    let policy = in_force(&sliding(10));
    assert_eq!(allowed(&policy), 10);
    folder.write(&sliding(131_000));
    assert_eq!(policy.reload(folder.file()).unwrap().anew, ["wide"]);
    assert!(allowed(&policy) > 10);
}

#[test]
fn a_file_that_is_edited_renamed_broken_mended_removed_and_put_back_is_followed() {
    let folder = Folder::new();
    folder.write(&burst(5));
    let policy = in_force(&burst(5));
    let (_watch, told) = follow(&policy, &folder);
    assert_eq!(next(&told).unwrap().kept, ["all"], "it is read once at the beginning");
    assert_eq!(allowed(&policy), 5);

    folder.rename_over(&burst(7));
    assert_eq!(changed(next(&told)), ["all"]);
    assert_eq!(allowed(&policy), 2);
    // Once more: a watch of the file itself would have stayed with the first.
    folder.rename_over(&burst(9));
    assert_eq!(changed(next(&told)), ["all"]);
    assert_eq!(allowed(&policy), 2);

    // In place, which a slow machine may see half done.
    folder.write(&burst(12));
    until(&told, &policy, 12);
    assert_eq!(allowed(&policy), 3);

    folder.rename_over(&burst(50).replace("burst", "brust"));
    let error = next(&told).unwrap_err();
    assert!(error.to_string().contains("did you mean \"burst\""), "{error}");
    assert_eq!(allowed(&policy), 0, "the old policy is in force");

    folder.rename_over(&burst(13));
    assert_eq!(changed(next(&told)), ["all"]);
    assert_eq!(allowed(&policy), 1);

    fs::remove_file(folder.file()).unwrap();
    let error = next(&told).unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
    assert_eq!(allowed(&policy), 0, "the old policy is in force");

    folder.rename_over(&burst(14));
    assert_eq!(changed(next(&told)), ["all"]);
    assert_eq!(allowed(&policy), 1);
}

/// An editor that moves the old file away before it writes the new one.
#[test]
fn an_editor_s_backup_is_followed_too() {
    let folder = Folder::new();
    folder.write(&burst(5));
    let policy = in_force(&burst(1));
    let (_watch, told) = follow(&policy, &folder);
    assert_eq!(changed(next(&told)), ["all"], "what was written before the watch began is not missed");
    for round in 6..9 {
        fs::rename(folder.file(), folder.0.join("limits.toml~")).unwrap();
        folder.write(&burst(round));
        fs::remove_file(folder.0.join("limits.toml~")).unwrap();
        until(&told, &policy, round);
    }
    assert_eq!(allowed(&policy), 8);
}

/// The same bytes, other files, and a look at the file tell nobody anything: the next event is the next change's.
#[test]
fn what_does_not_change_the_bytes_is_no_event() {
    let folder = Folder::new();
    folder.write(&burst(5));
    let policy = in_force(&burst(5));
    let (_watch, told) = follow(&policy, &folder);
    assert_eq!(next(&told).unwrap().kept, ["all"]);
    for round in 0..5 {
        folder.rename_over(&burst(5));
        fs::write(folder.0.join("another.toml"), round.to_string()).unwrap();
        fs::read(folder.file()).unwrap();
        fs::set_permissions(folder.file(), fs::metadata(folder.file()).unwrap().permissions()).unwrap();
        // Longer than the watch waits for quiet, so that it looks. That it did not would only make this test easier.
        assert_eq!(told.recv_timeout(Duration::from_millis(120)), Err(RecvTimeoutError::Timeout));
    }
    folder.rename_over(&burst(6));
    assert_eq!(changed(next(&told)), ["all"]);
}

#[test]
fn many_writes_at_once_are_few_events_and_the_last_is_in_force() {
    let folder = Folder::new();
    folder.write(&burst(1));
    let policy = in_force(&burst(1));
    let (watch, told) = follow(&policy, &folder);
    assert_eq!(next(&told).unwrap().kept, ["all"]);
    for round in 2..=200 {
        folder.rename_over(&burst(round));
    }
    until(&told, &policy, 200);
    drop(watch);
    let more = told.iter().count();
    assert!(more < 100, "{more}");
}

#[test]
fn a_watch_that_is_dropped_tells_nothing_more() {
    let folder = Folder::new();
    folder.write(&burst(5));
    let policy = in_force(&burst(5));
    let (watch, told) = follow(&policy, &folder);
    assert_eq!(next(&told).unwrap().kept, ["all"]);
    // Something has rung, most likely, when it ends.
    folder.rename_over(&burst(6));
    drop(watch);
    let before = told.try_iter().count();
    assert!(before <= 1);
    // The thread has ended, and what it had has gone with it.
    assert_eq!(told.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
    assert_eq!(Arc::strong_count(&policy), 1);
    folder.rename_over(&burst(7));
    assert_eq!(policy.peek(&Request::new("x").user("bob")).nearest().unwrap().remaining(), 5 + before as u64);
}

/// Who drops it while an event is told waits for the end of that.
#[test]
fn when_the_drop_returns_the_last_event_has_been_told() {
    let folder = Folder::new();
    folder.write(&burst(5));
    let (begin, begun) = channel();
    let is_over = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&is_over);
    let on_event = move |_| {
        _ = begin.send(());
        thread::sleep(Duration::from_millis(200));
        tell.store(true, Ordering::SeqCst);
    };
    let watch = watch(in_force(&burst(5)), folder.file(), on_event).unwrap();
    begun.recv_timeout(LONG).unwrap();
    drop(watch);
    assert!(is_over.load(Ordering::SeqCst));
}

/// Who is told may be the one that ends it: no thread waits for itself.
#[test]
fn an_event_may_drop_its_own_watch() {
    let folder = Folder::new();
    folder.write(&burst(5));
    let policy = in_force(&burst(5));
    let own: Arc<Mutex<Option<Watch>>> = Arc::default();
    let (tell, told) = channel();
    let (slot, tell) = (Arc::clone(&own), Mutex::new(tell));
    let on_event = move |event| {
        // It is put there before this is told a second time.
        let is_dropped = slot.lock().unwrap().take().is_some();
        _ = tell.lock().unwrap().send((event, is_dropped));
    };
    let mut held = own.lock().unwrap();
    *held = Some(watch(Arc::clone(&policy), folder.file(), on_event).unwrap());
    drop(held);
    let (event, is_dropped): (Event, bool) = told.recv_timeout(LONG).unwrap();
    assert!(event.is_ok() && is_dropped);
    assert_eq!(told.recv_timeout(LONG).unwrap_err(), RecvTimeoutError::Disconnected);
    drop(own);
    assert_eq!(Arc::strong_count(&policy), 1);
}

#[test]
fn a_folder_that_is_not_there_cannot_be_watched_and_a_file_that_is_not_can() {
    let folder = Folder::new();
    let policy = in_force(&burst(5));
    let missing = folder.0.join("missing").join("limits.toml");
    let error = watch(Arc::clone(&policy), &missing, |_| {}).unwrap_err();
    assert!(error.to_string().starts_with(&format!("{} cannot be watched: ", missing.display())), "{error}");

    let (_watch, told) = follow(&policy, &folder);
    assert!(next(&told).unwrap_err().to_string().contains("cannot be read"));
    folder.rename_over(&burst(6));
    assert_eq!(changed(next(&told)), ["all"]);
}
