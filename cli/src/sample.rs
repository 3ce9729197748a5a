//! Access logs out of a seed: the bundled sample, and longer ones for measuring.
//!
//! A log is a string of two-hour episodes, and each tells the same story: some hundred readers, most of
//! them polite; a crawler that is never fast and never stops; and, around the middle, one gateway whose
//! devices all retry at once. Addresses and names are those reserved for documentation.
//!
//! The same seed makes the same bytes on every machine and with every later version. The numbers come
//! from PCG-XSH-RR 64/32, whose constants are part of its publication, started from its state and stream
//! and read as plain 32-bit words; no range or shuffle of a random library stands between, as these may
//! change. Nothing is computed in floating point. A test compares the bundled file with what
//! [`write()`] makes.

mod scenes;

use std::io::{self, Write};

use jiff::Timestamp;
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;

/// The bundled sample log, compressed: [`write()`] of [`BUNDLED_SEED`] and one episode.
pub static BUNDLED_GZ: &[u8] = include_bytes!("../assets/sample.log.gz");

/// The seed of the bundled sample log.
pub const BUNDLED_SEED: u64 = 2026;

/// The first second of a log: 2 March 2026, 09:00 UTC.
const START_S: u64 = 1_772_442_000;

/// How long an episode lasts.
const EPISODE_S: u64 = 2 * 3600;

/// Writes a log of `episodes` times two hours, about 5,000 lines each.
///
/// # Errors
///
/// What `out` reports.
pub fn write(out: &mut impl Write, seed: u64, episodes: u32) -> io::Result<()> {
    let mut dice = Dice::new(seed);
    for episode in 0..u64::from(episodes) {
        let mut lines = scenes::episode(&mut dice);
        // A server writes a line when the response ends; the sort is stable.
        lines.sort_by_key(|line| line.ended_s);
        for line in lines {
            line.write(out, START_S + episode * EPISODE_S)?;
        }
    }
    Ok(())
}

/// One line to be: a request, or bytes that no parser should accept.
struct Line {
    /// When the response ended, in seconds of the episode.
    ended_s: u64,
    content: Content,
}

enum Content {
    Request(Request),
    Garbage(&'static [u8]),
}

struct Request {
    began_s: u64,
    client: String,
    path: String,
    status: u16,
    bytes: u64,
    referer: &'static str,
    agent: &'static str,
}

impl Line {
    fn write(&self, out: &mut impl Write, episode_s: u64) -> io::Result<()> {
        let request = match &self.content {
            Content::Request(request) => request,
            Content::Garbage(bytes) => {
                out.write_all(bytes)?;
                return out.write_all(b"\n");
            }
        };
        let Request { began_s, client, path, status, bytes, referer, agent } = request;
        let second = i64::try_from(episode_s + began_s).unwrap_or(i64::MAX);
        let time = Timestamp::from_second(second).map_err(io::Error::other)?;
        let time = time.strftime("%d/%b/%Y:%H:%M:%S +0000");
        writeln!(
            out,
            "{client} - - [{time}] \"GET {path} HTTP/1.1\" {status} {bytes} \"{referer}\" \"{agent}\"",
        )
    }
}

/// Whole numbers out of a seed.
pub(crate) struct Dice(Pcg32);

impl Dice {
    /// Any odd-looking constant would do for the stream: it only has to stay the same.
    const STREAM: u64 = 0x7469_6465_6761_7465;

    pub(crate) fn new(seed: u64) -> Self {
        Dice(Pcg32::new(seed, Self::STREAM))
    }

    /// A number from 0 to `end` - 1. The least likely differs from the likeliest by `end` in 2^32.
    pub(crate) fn below(&mut self, end: u32) -> u64 {
        (u64::from(self.0.next_u32()) * u64::from(end)) >> 32
    }

    /// A number from `low` to `high`, both possible.
    fn between(&mut self, low: u32, high: u32) -> u64 {
        u64::from(low) + self.below(high - low + 1)
    }

    /// True in `percent` of 100 throws.
    fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let end = u32::try_from(from.len()).unwrap_or(u32::MAX);
        let at = usize::try_from(self.below(end)).unwrap_or(0);
        from[at]
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::log::read::read;
    use crate::log::source::decompress;

    fn made(seed: u64, episodes: u32) -> Vec<u8> {
        let mut text = Vec::new();
        write(&mut text, seed, episodes).unwrap();
        text
    }

    #[test]
    fn the_bundled_log_is_what_its_seed_makes() {
        let mut bundled = Vec::new();
        decompress(BUNDLED_GZ).unwrap().read_to_end(&mut bundled).unwrap();
        assert!(
            bundled == made(BUNDLED_SEED, 1),
            "make it again: tidegate sample-log | gzip -9n > cli/assets/sample.log.gz"
        );
    }

    #[test]
    fn the_generator_numbers_are_those_published() {
        // The first three outputs of the reference program, pcg32-demo, seeded with 42 and 54.
        let mut numbers = Pcg32::new(42, 54);
        let first: Vec<_> = (0..3).map(|_| numbers.next_u32()).collect();
        assert_eq!(first, [0xa15c_02b7, 0x7b47_f409, 0xba1d_3330]);
    }

    #[test]
    fn a_seed_decides_all_and_seeds_differ() {
        assert_eq!(made(1, 1), made(1, 1));
        assert_ne!(made(1, 1), made(2, 1));
        assert!(made(1, 2).starts_with(&made(1, 1)));
    }

    #[test]
    fn a_log_has_its_cast() {
        let log = read(made(BUNDLED_SEED, 1).as_slice(), |_| ());
        assert!((3_000..8_000).contains(&log.events.len()), "{} events", log.events.len());
        assert!((200..400).contains(&log.keys.len()), "{} clients", log.keys.len());
        assert_eq!(log.skips.total, scenes::GARBAGE.len() as u64);
        let in_order = log.skips.by_kind.len();
        assert!(in_order >= 5, "{:?}", log.skips.by_kind);
        let span_ns = log.events.last().unwrap().at_unix_ns - log.events[0].at_unix_ns;
        assert!(span_ns / 1_000_000_000 > EPISODE_S * 9 / 10);
    }
}
