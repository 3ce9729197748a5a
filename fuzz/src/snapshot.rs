//! Snapshots: of a limiter beside a twin that goes on, damaged, and made up.

use std::fmt::Debug;
use std::time::Duration;

use arbitrary::Arbitrary;
use tidegate::{Alignment, Builder, Limit, Limiter, Manual, Rate, Window};

use crate::input::{Number, Span};

/// More than this many checks find nothing that fewer do not.
const CHECKS_MAX: usize = 64;
/// Fewer than there are slots in the smallest table: nobody is forced out.
const KEYS: u8 = 16;
/// What each history and the downtime may take: well inside every limiter's own time.
const TIME_MAX: Duration = Duration::from_secs(2 * 365 * 24 * 60 * 60);
/// Bytes of a snapshot's header with its checksum, and of a checksum.
const HEADER: usize = 123;
const SUM: usize = 4;

#[derive(Arbitrary, Debug)]
pub enum Input {
    /// Bytes that nobody has written.
    Raw { terms: Terms, bytes: Vec<u8>, with_header: bool },
    /// A snapshot, and what became of it.
    Saved {
        terms: Terms,
        history: Vec<Check>,
        edits: Vec<Edit>,
        /// Whether the checksums are made right again.
        sealed: bool,
        down: Span,
        future: Vec<Check>,
    },
}

/// A limit of the everyday kind, and when its clock starts.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Terms {
    kind: u8,
    alignment: u8,
    count_refused: bool,
    limit: u8,
    sustain: u8,
    unix_ns: u64,
}

impl Terms {
    fn limit(self) -> Limit {
        let (limit, sustain, second) =
            (u64::from(self.limit) + 1, u64::from(self.sustain), Duration::from_secs(1));
        let made = match self.kind % 3 {
            0 => Limit::bucket(Rate::per_second(sustain + 1), limit),
            1 => Limit::window(Window::new(limit, second)),
            _ => Limit::burst_sustain(Window::new(limit, second), Window::new(limit + sustain, second * 4)),
        };
        let alignment =
            [Alignment::Clock, Alignment::PerKey, Alignment::FirstRequest][usize::from(self.alignment % 3)];
        made.align(alignment).count_refused(self.count_refused)
    }

    fn builder(self) -> Builder {
        Limiter::builder(self.limit()).max_keys(4).seed(1)
    }

    /// A clock that starts when the limiter is built, or so much later.
    fn clock(self, later: Duration) -> Manual {
        Manual::at_unix(Duration::from_nanos(self.unix_ns >> 2) + later)
    }
}

/// Time goes on, then a key asks.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Check {
    after: Span,
    key: u8,
    cost: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Edit {
    Byte {
        at: u16,
        byte: u8,
    },
    Bit {
        at: u16,
    },
    /// One of the numbers after the header.
    Number {
        at: u8,
        number: Number,
    },
    Cut {
        length: u16,
    },
    Repeat {
        at: u16,
        count: u8,
    },
}

impl Edit {
    fn apply(self, bytes: &mut Vec<u8>) {
        let place = |at: u16| usize::from(at) % bytes.len().max(1);
        match self {
            Self::Byte { at, byte } => {
                let at = place(at);
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            Self::Bit { at } => {
                let at = usize::from(at) % (8 * bytes.len().max(1));
                if let Some(byte) = bytes.get_mut(at / 8) {
                    *byte ^= 1 << (at % 8);
                }
            }
            Self::Number { at, number } => {
                let at = HEADER + 8 * usize::from(at);
                if let Some(eight) = bytes.get_mut(at..at + 8) {
                    eight.copy_from_slice(&number.get().to_le_bytes());
                }
            }
            Self::Cut { length } => bytes.truncate(place(length)),
            Self::Repeat { at, count } => {
                let from = place(at);
                let again = bytes[from..].iter().copied().take(count.into()).collect::<Vec<_>>();
                bytes.splice(from..from, again);
            }
        }
    }
}

/// Plays it.
pub fn run(input: &Input) {
    match input {
        Input::Raw { terms, bytes, with_header } => {
            let mut all = if *with_header { saved(&build(*terms)) } else { Vec::new() };
            all.truncate(HEADER);
            all.extend(bytes);
            let restored = terms.builder().clock(terms.clock(Duration::ZERO)).restore(&all[..]);
            assert!(restored.is_err_and(|error| !error.to_string().is_empty()));
        }
        Input::Saved { terms, history, edits, sealed, down, future } => {
            let twin = build(*terms);
            play(&twin, history);
            let whole = saved(&twin);
            let mut bytes = whole.clone();
            edits.iter().take(16).for_each(|edit| edit.apply(&mut bytes));
            if *sealed {
                seal(&mut bytes);
            }
            twin.clock().advance(down.get(1_000_000_000).min(TIME_MAX));
            let clock = terms.clock(twin.clock().elapsed());
            match terms.builder().clock(clock).restore(&bytes[..]) {
                Ok(restored) if bytes == whole => assert_eq!(play(&restored, future), play(&twin, future)),
                Ok(restored) => {
                    assert!(*sealed, "damage has gone unnoticed");
                    made_up(*terms, &restored, future);
                }
                Err(error) => {
                    assert!(bytes != whole, "{error}");
                    assert!(!error.to_string().is_empty());
                }
            }
        }
    }
}

fn build(terms: Terms) -> Limiter<Manual> {
    terms.builder().clock(terms.clock(Duration::ZERO)).build().expect("an everyday limit builds")
}

fn saved(limiter: &Limiter<Manual>) -> Vec<u8> {
    let mut bytes = Vec::new();
    limiter.save(&mut bytes).expect("memory takes it");
    bytes
}

/// The answers as they print.
fn play(limiter: &Limiter<Manual>, checks: &[Check]) -> Vec<impl PartialEq + Debug + use<>> {
    let until = limiter.clock().elapsed() + TIME_MAX;
    let answer = |check: &Check| {
        let after = check.after.get(1_000_000_000).min(until.saturating_sub(limiter.clock().elapsed()));
        limiter.clock().advance(after);
        format!("{:?}", limiter.check_n(&(check.key % KEYS), check.cost.into()))
    };
    checks.iter().take(CHECKS_MAX).map(answer).collect()
}

/// Who makes a snapshot up may say what he likes, but what it makes works, and is saved and restored again.
fn made_up(terms: Terms, restored: &Limiter<Manual>, future: &[Check]) {
    play(restored, future);
    assert!(restored.horizon() >= Duration::from_secs(7 * 366 * 24 * 60 * 60));
    let again = terms.builder().clock(terms.clock(Duration::ZERO)).restore(&saved(restored)[..]);
    assert!(again.is_ok(), "{again:?}");
}

/// Makes both checksums right.
fn seal(bytes: &mut [u8]) {
    for end in [HEADER, bytes.len()] {
        if let Some(at) = end.checked_sub(SUM).filter(|_| end <= bytes.len()) {
            let sum = crc32fast::hash(&bytes[..at]);
            bytes[at..end].copy_from_slice(&sum.to_le_bytes());
        }
    }
}
