//! A progress bar on standard error, for what takes a while.

use std::io::Read;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Nobody needs a bar that is gone before it is read.
const QUIET: Duration = Duration::from_millis(400);

/// The bar. It stays away when standard error is no terminal, and until the work has taken a moment.
pub(crate) struct Progress {
    bar: ProgressBar,
    began: Instant,
    shown: bool,
}

impl Progress {
    /// For reading `bytes` bytes, or nobody knows how many.
    pub(crate) fn reading(bytes: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(bytes, ProgressDrawTarget::hidden());
        bar.set_style(match bytes {
            Some(_) => style("reading   {bar:30.cyan} {percent:>3} %  {msg}, {eta} left"),
            None => style("reading   {spinner} {bytes}  {msg}"),
        });
        Progress { bar, began: Instant::now(), shown: false }
    }

    /// For measuring that takes so long.
    pub(crate) fn measuring(budget: Duration) -> Self {
        let bar = ProgressBar::with_draw_target(Some(millis(budget)), ProgressDrawTarget::hidden());
        bar.set_style(style("measuring {bar:30.cyan} {percent:>3} %  {msg}"));
        Progress { bar, began: Instant::now(), shown: false }
    }

    /// So much of the time has gone by, and this comes next.
    pub(crate) fn measured(&mut self, elapsed: Duration, next: &str) {
        self.bar.set_position(millis(elapsed));
        self.bar.set_message(next.to_owned());
        self.show_if_long();
    }

    /// `raw`, with the bar following what is read of it.
    pub(crate) fn follow<R: Read>(&self, raw: R) -> impl Read + use<R> {
        self.bar.wrap_read(raw)
    }

    /// So many lines were read.
    pub(crate) fn lines(&mut self, lines: u64) {
        self.bar.set_message(format!("{} lines", HumanCount(lines)));
        self.show_if_long();
    }

    /// From reading to replaying `events` requests.
    pub(crate) fn replaying(&mut self, events: usize) {
        self.bar.reset();
        self.bar.set_length(events as u64);
        self.bar.set_style(style("replaying {bar:30.cyan} {percent:>3} %  {human_len} requests"));
    }

    /// So many requests were replayed.
    pub(crate) fn replayed(&mut self, events: usize) {
        self.bar.set_position(events as u64);
        self.show_if_long();
    }

    /// Away with it.
    pub(crate) fn done(&self) {
        self.bar.finish_and_clear();
    }

    fn show_if_long(&mut self) {
        if !self.shown && self.began.elapsed() >= QUIET {
            self.shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn style(template: &str) -> ProgressStyle {
    // The templates stand above and are right; a wrong one would show in the plain default.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("█▉▊▋▌▍▎▏ ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_stays_away_from_short_work() {
        let mut progress = Progress::reading(Some(10));
        progress.lines(1);
        assert!(!progress.shown);
        progress.done();
    }
}
