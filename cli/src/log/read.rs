//! A whole log in memory: 16 bytes a request, and every client once.
//!
//! All of it is held because servers write a line when a response ends, so that lines are not in the
//! order in which the requests came.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use super::line::{self, LineError};
use crate::key::{ClientKey, Interner};

/// The longest line that is read, in bytes without its line break. A longer one is skipped, and no more
/// than this much of it is held.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// How many skipped lines are remembered one by one.
pub const SKIPS_KEPT: usize = 5;

/// How many lines go by between two calls of the progress function.
pub const LINES_PER_TICK: u64 = 4096;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds since the Unix epoch.
    pub at_unix_ns: u64,
    /// The client: an index into [`Log::keys`].
    pub key: u32,
}

/// What was read.
#[derive(Debug, Default)]
pub struct Log {
    /// The requests, in the order of their times; those of one time in the order of their lines.
    pub events: Vec<Event>,
    /// The distinct clients, in the order of their first lines.
    pub keys: Vec<ClientKey>,
    /// All lines, skipped ones included.
    pub lines: u64,
    /// The lines that were no requests.
    pub skips: Skips,
    /// Why reading stopped before the end, if it did: the line that it stopped in, and the error.
    pub broken: Option<(u64, io::Error)>,
}

/// Lines that could not be read as requests.
#[derive(Debug, Default)]
pub struct Skips {
    /// How many.
    pub total: u64,
    /// How many for each reason.
    pub by_kind: BTreeMap<&'static str, u64>,
    /// The first few: line number from 1, and what was wrong.
    pub first: Vec<(u64, LineError)>,
}

impl Skips {
    pub(crate) fn add(&mut self, line: u64, error: LineError) {
        self.total += 1;
        *self.by_kind.entry(error.kind()).or_default() += 1;
        if self.first.len() < SKIPS_KEPT {
            self.first.push((line, error));
        }
    }
}

/// Reads to the end, or to the first error of the input; `tick` is told the lines so far.
pub fn read(input: impl BufRead, tick: impl FnMut(u64)) -> Log {
    let mut log = Log::default();
    let mut clients = Interner::default();
    let (mut events, mut skips) = (Vec::new(), Skips::default());
    (log.lines, log.broken) =
        each_line(input, tick, |number, line| match line.and_then(|line| event(line, &mut clients)) {
            Ok(event) => events.push(event),
            Err(error) => skips.add(number, error),
        });
    // Stable, and quick on what is in order but for a few.
    events.sort_by_key(|event| event.at_unix_ns);
    Log { events, keys: clients.into_keys(), skips, ..log }
}

/// Where reading stopped before the end, and why.
pub(super) type Broken = Option<(u64, io::Error)>;

/// Gives `each` every line with its number, from 1. How many there were, and where reading stopped.
pub(super) fn each_line(
    mut input: impl BufRead,
    mut tick: impl FnMut(u64),
    mut each: impl FnMut(u64, Result<&[u8], LineError>),
) -> (u64, Broken) {
    let mut buffer = Vec::new();
    let mut lines = 0;
    loop {
        let line = match next_line(&mut input, &mut buffer) {
            Ok(Next::End) => return (lines, None),
            Ok(Next::Line(line)) => Ok(line),
            Ok(Next::TooLong) => Err(LineError::TooLong),
            // What was read of the unfinished line is no line.
            Err(error) => return (lines, Some((lines + 1, error))),
        };
        lines += 1;
        each(lines, line.map(|line| if lines == 1 { without_mark(line) } else { line }));
        if lines.is_multiple_of(LINES_PER_TICK) {
            tick(lines);
        }
    }
}

fn event(line: &[u8], clients: &mut Interner) -> Result<Event, LineError> {
    let entry = line::parse(line)?;
    let key = clients.id(ClientKey::from_client(entry.client)).ok_or(LineError::TooManyClients)?;
    Ok(Event { at_unix_ns: entry.at_unix_ns, key })
}

/// Some editors put a byte order mark in front of a file.
fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line)
}

enum Next<'a> {
    Line(&'a [u8]),
    TooLong,
    End,
}

fn next_line<'a>(input: &mut impl BufRead, buffer: &'a mut Vec<u8>) -> io::Result<Next<'a>> {
    buffer.clear();
    // Room for a line of the greatest length and its line break, CR and LF.
    let room = (LINE_BYTES_MAX + 2) as u64;
    if input.by_ref().take(room).read_until(b'\n', buffer)? == 0 {
        return Ok(Next::End);
    }
    let ended = buffer.last() == Some(&b'\n');
    let line = buffer.strip_suffix(b"\n").unwrap_or(buffer);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= LINE_BYTES_MAX {
        return Ok(Next::Line(line));
    }
    if !ended {
        input.skip_until(b'\n')?;
    }
    Ok(Next::TooLong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(client: &str, second: u32) -> String {
        format!("{client} - - [10/Oct/2025:13:55:{second:02} +0000] \"GET / HTTP/1.1\" 200 1\n")
    }

    fn read_all(text: impl AsRef<[u8]>) -> Log {
        read(text.as_ref(), |_| ())
    }

    #[test]
    fn events_are_ordered_stably_by_time() {
        let text = [line("a", 5), line("b", 3), line("c", 5), line("d", 3)].concat();
        let log = read_all(text);
        let order: Vec<_> = log.events.iter().map(|event| log.keys[event.key as usize].to_string()).collect();
        assert_eq!(order, ["b", "d", "a", "c"]);
        assert_eq!((log.lines, log.skips.total), (4, 0));
    }

    #[test]
    fn bad_lines_are_skipped_and_the_first_are_named() {
        let mut text = b"\xef\xbb\xbf".to_vec();
        text.extend(line("a", 1).replace('\n', "\r\n").bytes());
        text.extend(b"\nnonsense\n\xff\n");
        text.extend(b"\n".repeat(9));
        text.extend(line("b", 2).trim_end().bytes());
        let log = read_all(text);
        assert_eq!((log.lines, log.events.len(), log.skips.total), (14, 2, 12));
        assert_eq!(log.keys[0].to_string(), "a");
        let numbers: Vec<_> = log.skips.first.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [2, 3, 4, 5, 6]);
        assert_eq!(log.skips.by_kind["empty"], 10);
    }

    #[test]
    fn the_longest_line_passes_and_one_byte_more_does_not() {
        for end in ["\n", "\r\n", ""] {
            let good = line("a", 1);
            let good = good.trim_end();
            for (length, skipped) in [(LINE_BYTES_MAX, 0), (LINE_BYTES_MAX + 1, 1), (1 << 20, 1)] {
                let long = format!("{good} {}", "x".repeat(length - good.len() - 1));
                let log = read_all(format!("{long}{end}"));
                assert_eq!((log.lines, log.skips.total), (1, skipped), "{length} {end:?}");
                if !end.is_empty() {
                    let log = read_all(format!("{long}{end}{good}"));
                    assert_eq!((log.lines, log.skips.total), (2, skipped), "{length} {end:?}");
                }
            }
        }
    }

    #[test]
    fn what_came_before_a_read_error_is_kept() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the disk is gone"))
            }
        }
        let text = format!("{}192.0.2.1 - -", line("a", 1));
        let log = read(io::BufReader::new(text.as_bytes().chain(Broken)), |_| ());
        assert_eq!((log.lines, log.events.len(), log.skips.total), (1, 1, 0));
        let (number, error) = log.broken.unwrap();
        assert_eq!((number, error.to_string().as_str()), (2, "the disk is gone"));
    }

    #[test]
    fn an_event_is_small() {
        assert_eq!(size_of::<Event>(), 16);
    }
}
