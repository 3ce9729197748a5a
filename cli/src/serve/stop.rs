//! Signals: the first SIGTERM or SIGINT stops the server, a second one ends the process at once, SIGHUP reads the policy again.

use std::io;
use std::time::Duration;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals to stop that come within this time are one: a shell and the `timeout` that it runs send one each.
pub(super) const SAME: Duration = Duration::from_millis(200);

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// To stop; the status of a process that is ended by it.
    Stop(i32),
    /// To read the policy again.
    Reload,
}

/// The signals that are heard.
#[cfg(unix)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

#[cfg(unix)]
impl Signals {
    /// Hears them from now on.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Asked {
        let status = |kind: SignalKind| Asked::Stop(128 + kind.as_raw_value());
        tokio::select! {
            _ = self.terminate.recv() => status(SignalKind::terminate()),
            _ = self.interrupt.recv() => status(SignalKind::interrupt()),
            _ = self.hang_up.recv() => Asked::Reload,
        }
    }
}

/// Elsewhere there is Ctrl-C alone.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// Hears them from now on.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Asked {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Asked::Stop(130),
            // Nobody can say anything any more.
            Err(_) => std::future::pending().await,
        }
    }
}
