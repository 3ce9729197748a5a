//! A policy that follows its file. The only file that names notify.
//!
//! ```text
//! the directory changes  -> notify's thread rings
//! rung                   -> the watch's own thread waits until it is quiet, reads the file, and if that is not what it read
//!                           last, puts it in force and tells
//! ```
//!
//! The directory is watched and not the file: an editor that writes a new file and renames it over the old one leaves a
//! watch of the old one behind. So whatever happens in the directory rings, and the bytes alone say whether it matters.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::changes::Changes;
use super::config::read_bytes;
use super::engine::Policy;
use super::file::ReloadError;
use crate::time::Clock;

/// Nothing has happened for so long: whoever wrote the file is done.
const QUIET: Duration = Duration::from_millis(50);
/// It is read after so long even if something happens all the time: to other files perhaps.
const UNREST_MAX: Duration = Duration::from_secs(1);

/// A [`watch`] that goes on until this is dropped.
///
/// When the drop returns, the last call of `on_event` has ended and no other follows, unless it is `on_event` itself that
/// drops it: then that call is the last.
#[must_use = "the watch ends when this is dropped"]
pub struct Watch {
    /// Whose end ends the thread; `None` once it has been told.
    life: Option<Arc<()>>,
    bell: SyncSender<()>,
    thread: Option<JoinHandle<()>>,
    /// Rings until it is dropped.
    _watcher: RecommendedWatcher,
}

/// Why a file cannot be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchError {
    path: PathBuf,
    why: String,
}

impl WatchError {
    fn new(path: &Path, why: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), why: why.to_string() }
    }
}

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be watched: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for WatchError {}

/// Keeps a policy as its file says, from now on until the [`Watch`] is dropped.
///
/// The file is read once at the beginning, and again when something has happened in its directory and nothing more for 50 ms,
/// or for a second at most. If its bytes are not those of the last time, they are put in force as by
/// [`Policy::reload`], and `on_event` is told what came of it; so it is of the first time. A file that is wrong, or gone, leaves the rules in
/// force and is told once. That a file is written in place or another is renamed over it makes no difference, but a file that
/// is written in place more slowly than that may be read half written: rename where you can.
///
/// `on_event` is called on a thread of the watch's own, one call at a time; the file is not looked at before it returns. If
/// it panics the watch is over.
///
/// # Limits
/// Only the directory that `path` names is watched. What happens elsewhere is not noticed: where the file is a
/// symbolic link, an edit of the file that it leads to in another directory, or on a network drive, one by another machine.
/// A directory that is itself removed is not watched again. Rules that somebody else puts in force stay until the file
/// changes.
///
/// # Errors
/// A [`WatchError`] if the directory is not there or the system does not let it be watched (on Linux,
/// `fs.inotify.max_user_watches`, for one). A file that is not there, or is wrong, is none: `on_event` is told.
///
/// ```no_run
/// use std::sync::Arc;
/// use tidegate::policy::{Policy, Rules, watch};
///
/// let policy = Arc::new(Policy::new(Rules::read("limits.toml")?)?);
/// let watch = watch(Arc::clone(&policy), "limits.toml", |event| match event {
///     Ok(changes) => println!("in force; anew: {:?}", changes.anew),
///     Err(error) => eprintln!("the old policy stays in force:\n{error}"),
/// })?;
/// // The policy follows the file until here.
/// drop(watch);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn watch<C: Clock + Clone + 'static>(
    policy: Arc<Policy<C>>,
    path: impl AsRef<Path>,
    on_event: impl FnMut(Result<Changes, ReloadError>) + Send + 'static,
) -> Result<Watch, WatchError> {
    let name = path.as_ref();
    let error = |why: &dyn fmt::Display| WatchError::new(name, why);
    // Where it is now, wherever the process goes.
    let path = std::path::absolute(name).map_err(|why| error(&why))?;
    let directory = path.parent().ok_or_else(|| error(&"it is no file's name"))?;
    // One place: who rings while the bell has not been heard need not ring again.
    let (bell, rung) = sync_channel(1);
    let ring = bell.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // Of an error it is not known what it missed.
        if event.as_ref().map_or(true, matters) {
            // Full: it has been rung. Closed: nobody listens any more.
            _ = ring.try_send(());
        }
    })
    .map_err(|why| error(&why))?;
    watcher.watch(directory, RecursiveMode::NonRecursive).map_err(|why| error(&why))?;

    let life = Arc::new(());
    let listener = Listener {
        life: Arc::downgrade(&life),
        rung,
        file: File { name: name.to_owned(), path: path.clone(), last: None },
        policy,
        on_event,
    };
    let thread = thread::Builder::new().name("tidegate-watch".to_owned()).spawn(move || listener.run());
    let thread = thread.map_err(|why| error(&why))?;
    Ok(Watch { life: Some(life), bell, thread: Some(thread), _watcher: watcher })
}

/// Whether the file may have changed. That somebody opened or read something says nothing; the watch does so itself.
fn matters(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

/// The file, and what was last found in it.
struct File {
    /// As it was given, for messages.
    name: PathBuf,
    path: PathBuf,
    last: Option<Result<Vec<u8>, String>>,
}

impl File {
    /// What is there, or why nothing can be told; `None` if that is what was found last.
    fn news(&mut self) -> Option<Result<Vec<u8>, String>> {
        let found = read_bytes(&self.path);
        if self.last.as_ref() == Some(&found) {
            return None;
        }
        self.last = Some(found.clone());
        Some(found)
    }
}

/// What the watch's thread has.
struct Listener<C, F> {
    life: Weak<()>,
    rung: Receiver<()>,
    file: File,
    policy: Arc<Policy<C>>,
    on_event: F,
}

impl<C: Clock + Clone + 'static, F: FnMut(Result<Changes, ReloadError>)> Listener<C, F> {
    fn run(mut self) {
        loop {
            let event = {
                let _turn = self.policy.turn();
                self.file.news().map(|found| self.policy.put_in_force(&self.file.name, found))
            };
            if let Some(event) = event {
                (self.on_event)(event);
            }
            if self.rung.recv().is_err() || !self.is_quiet_again() {
                return;
            }
        }
    }

    /// Waits until nothing has happened for a while. False if the watch is over.
    fn is_quiet_again(&self) -> bool {
        let until = Instant::now() + UNREST_MAX;
        loop {
            if self.life.strong_count() == 0 {
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.rung.recv_timeout(QUIET.min(left)).is_err() {
                return self.life.strong_count() > 0;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.life = None;
        // Full: it is rung, and the thread looks whether it is over after every ring.
        _ = self.bell.try_send(());
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // A panic of `on_event` has been told by its own thread.
            _ = thread.join();
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
