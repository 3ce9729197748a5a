//! Lines that are written by a thread of its own, so that nobody waits for who reads them.
//!
//! ```text
//! a line -> LINES_MAX places -> the thread writes it
//!        -> no place: it is counted, and the thread says how many were lost when it can write again
//! ```
//!
//! The crate tracing-appender (0.2.5) does nearly this; with it in the place of this file a server whose log nobody read did not
//! end (`cli/tests/serve/stops.rs`, `a_log_that_nobody_reads_keeps_nobody`).

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::log::LogFormat;

/// Lines that wait to be written.
const LINES_MAX: usize = 1024;

/// In the end what waits has so long to be written.
const END_MAX: Duration = Duration::from_secs(1);

/// What the thread is given.
enum Given {
    Line(Vec<u8>),
    /// All lines before it are written when this is dropped.
    End(SyncSender<()>),
}

/// Takes lines, each whole in one write, and keeps nobody waiting.
#[derive(Clone)]
pub(super) struct Lossy {
    given: SyncSender<Given>,
    lost: Arc<AtomicU64>,
}

/// What is written, until this is dropped: then what waits is written, for a second at most.
pub(super) struct Writing(SyncSender<Given>);

/// Writes to this from a thread of its own.
///
/// # Errors
/// There is no such thread.
pub(super) fn to(mut out: impl Write + Send + 'static, format: LogFormat) -> io::Result<(Lossy, Writing)> {
    let (given, taken) = sync_channel(LINES_MAX);
    let lossy = Lossy { given: given.clone(), lost: Arc::new(AtomicU64::new(0)) };
    let lost = Arc::clone(&lossy.lost);
    thread::Builder::new().name("tidegate-log".to_owned()).spawn(move || {
        write(&taken, &lost, &mut out, format);
    })?;
    Ok((lossy, Writing(given)))
}

fn write(taken: &Receiver<Given>, lost: &AtomicU64, out: &mut impl Write, format: LogFormat) {
    while let Ok(given) = taken.recv() {
        let end = match given {
            Given::Line(line) => {
                // Nobody can be told that the log cannot be written.
                _ = out.write_all(&line);
                None
            }
            Given::End(end) => Some(end),
        };
        // ORDERING: Relaxed: it is a count, and orders nothing; each is told once, for the swap takes what it tells.
        let count = lost.swap(0, Ordering::Relaxed);
        if count > 0 {
            _ = out.write_all(told(count, format).as_bytes());
        }
        drop(end);
    }
}

/// A line that says how many were lost.
fn told(count: u64, format: LogFormat) -> String {
    let message = "lines of the log are lost: nobody read them";
    match format {
        LogFormat::Text => format!(" WARN {message} lost={count}\n"),
        LogFormat::Json => format!("{{\"level\":\"WARN\",\"message\":\"{message}\",\"lost\":{count}}}\n"),
    }
}

impl Write for Lossy {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.given.try_send(Given::Line(line.to_vec())).is_err() {
            // ORDERING: Relaxed: as above.
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let until = Instant::now() + END_MAX;
        let (end, ended) = sync_channel(0);
        let mut given = Given::End(end);
        while let Err(TrySendError::Full(back)) = self.0.try_send(given) {
            if Instant::now() >= until {
                return;
            }
            given = back;
            thread::sleep(Duration::from_millis(5));
        }
        // Nothing is ever sent: that the thread has dropped its end, or the time is up, is all there is to know.
        _ = ended.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Writes no line before it is let.
    struct Gate(Receiver<()>, Arc<Mutex<Vec<String>>>);

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            _ = self.0.recv();
            self.1.lock().unwrap().push(String::from_utf8(bytes.to_vec()).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated(format: LogFormat) -> (Lossy, Writing, Sender<()>, Arc<Mutex<Vec<String>>>) {
        let (open, gate) = channel();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (lossy, writing) = to(Gate(gate, Arc::clone(&lines)), format).unwrap();
        (lossy, writing, open, lines)
    }

    #[test]
    fn who_does_not_read_keeps_nobody_and_is_told_what_was_lost() {
        let (mut lossy, writing, open, lines) = gated(LogFormat::Text);
        // One may be with the thread already, so one or none more finds its place.
        for at in 0..LINES_MAX + 10 {
            lossy.write_all(format!("{at}\n").as_bytes()).unwrap();
        }
        drop(open);
        drop(writing);
        let lines = lines.lock().unwrap();
        let lost: Vec<&String> = lines.iter().filter(|line| line.contains("lost=")).collect();
        assert_eq!(lost.len(), 1, "{lost:?}");
        let count: usize = lost[0].trim().rsplit('=').next().unwrap().parse().unwrap();
        assert!(count == 9 || count == 10, "{count}");
        assert_eq!(lines.len() - 1 + count, LINES_MAX + 10);
        assert_eq!(lines[0], "0\n");
    }

    #[test]
    fn the_end_waits_a_second_at_most() {
        let (mut lossy, writing, open, lines) = gated(LogFormat::Json);
        for _ in 0..2 * LINES_MAX {
            lossy.write_all(b"line\n").unwrap();
        }
        let start = Instant::now();
        drop(writing);
        let took = start.elapsed();
        assert!(took >= END_MAX && took < 5 * END_MAX, "{took:?}");
        assert!(lines.lock().unwrap().is_empty());
        drop(open);
        let told = told(7, LogFormat::Json);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&told).unwrap()["lost"], 7);
    }
}
