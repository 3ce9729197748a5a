//! What a snapshot is of: how its keys are hashed, the limit, and the size of the table.

use std::io::{self, Read, Write};
use std::time::Duration;

use super::error::RestoreError;
use super::frame::{Sink, Source};
use crate::limit::{Alignment, Limit, Shape};
use crate::settings::Settings;
use crate::table::Hashing;
use crate::time::timebase::saturating_ns;

const MAGIC: [u8; 8] = *b"tidegate";
/// Of what is written here, and of what words mean.
const VERSION: u32 = 1;
/// `max_tiers` stands above `max_keys`, which has 48 bits at most, from this bit on.
const TIERS_SHIFT: u32 = 56;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    seeds: [u64; 4],
    self_test: [u64; 4],
    terms: Terms,
    max_keys: u64,
    /// They take bits from the words.
    max_tiers: u8,
}

impl Header {
    pub(super) fn new(limit: &Limit, max_keys: usize, max_tiers: u8, hashing: &Hashing) -> Self {
        Self {
            seeds: hashing.seeds(),
            self_test: hashing.self_test(),
            terms: Terms::new(limit),
            max_keys: max_keys as u64,
            max_tiers,
        }
    }

    pub(super) fn write<W: Write>(&self, sink: &mut Sink<W>) -> io::Result<()> {
        let Terms { kind, alignment, counts_refused, parts: [first, second] } = self.terms;
        sink.put(&MAGIC)?;
        sink.put(&VERSION.to_le_bytes())?;
        for number in self.seeds.into_iter().chain(self.self_test) {
            sink.put(&number.to_le_bytes())?;
        }
        sink.put(&[kind, alignment, counts_refused])?;
        let room = self.max_keys | u64::from(self.max_tiers) << TIERS_SHIFT;
        for number in [first.count, first.period_ns, second.count, second.period_ns, room] {
            sink.put(&number.to_le_bytes())?;
        }
        sink.seal()
    }

    pub(super) fn read<R: Read>(source: &mut Source<R>) -> Result<Self, RestoreError> {
        if source.take()? != MAGIC {
            return Err(RestoreError::NotASnapshot);
        }
        // Another version may have other bytes here, and another checksum.
        let found = u32::from_le_bytes(source.take()?);
        if found != VERSION {
            return Err(RestoreError::Version { found, known: VERSION });
        }
        let (seeds, self_test) = (source.four()?, source.four()?);
        let (kind, alignment, counts_refused) = (source.byte()?, source.byte()?, source.byte()?);
        let [first, first_ns, second, second_ns] = source.four()?;
        let parts =
            [Part { count: first, period_ns: first_ns }, Part { count: second, period_ns: second_ns }];
        let terms = Terms { kind, alignment, counts_refused, parts };
        let room = source.number()?;
        source.unseal()?;
        let max_tiers = (room >> TIERS_SHIFT) as u8;
        let max_keys = room & ((1 << TIERS_SHIFT) - 1);
        Ok(Self { seeds, self_test, terms, max_keys, max_tiers })
    }

    /// Whether it goes with what the builder was told; the hashing if so.
    pub(super) fn settle<C: crate::time::Clock>(
        &self,
        settings: &Settings<C>,
    ) -> Result<Hashing, RestoreError> {
        let given = Terms::new(&settings.limit);
        if let Some((field, saved, given)) = self.terms.difference(&given) {
            return Err(RestoreError::Limit { field, saved, given });
        }
        if self.max_tiers != settings.max_tiers {
            let (saved, given) = (self.max_tiers.to_string(), settings.max_tiers.to_string());
            return Err(RestoreError::Limit { field: "max_tiers", saved, given });
        }
        if self.max_keys != settings.max_keys as u64 {
            return Err(RestoreError::MaxKeys { saved: self.max_keys, given: settings.max_keys });
        }
        if settings.hashing().is_some_and(|hashing| hashing.seeds() != self.seeds) {
            return Err(RestoreError::Seed);
        }
        let hashing = Hashing::from_seeds(self.seeds);
        if hashing.self_test() == self.self_test { Ok(hashing) } else { Err(RestoreError::Hashes) }
    }
}

/// A limit's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Terms {
    kind: u8,
    alignment: u8,
    counts_refused: u8,
    /// Rate, and burst (without a period), or the windows.
    parts: [Part; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    count: u64,
    period_ns: u64,
}

const NO_PART: Part = Part { count: 0, period_ns: 0 };
const KINDS: [&str; 4] = ["a bucket", "a window", "burst + sustain windows", "a sliding window"];
const ALIGNMENTS: [&str; 3] = ["Clock", "PerKey", "FirstRequest"];
const SWITCH: [&str; 2] = ["false", "true"];
/// Count and period of each part, by kind.
const FIELDS: [[[&str; 2]; 2]; 4] = [
    [["rate", "rate period"], ["burst", ""]],
    [["window limit", "window period"], ["", ""]],
    [["burst limit", "burst period"], ["sustain limit", "sustain period"]],
    [["window limit", "window period"], ["", ""]],
];

impl Terms {
    fn new(limit: &Limit) -> Self {
        // A limit that builds has no period that does not fit.
        let part = |count, period| Part { count, period_ns: saturating_ns(period) };
        let alignment = match limit.alignment() {
            Alignment::Clock => 0,
            Alignment::PerKey => 1,
            Alignment::FirstRequest => 2,
        };
        let (kind, parts) = match limit.shape() {
            Shape::Bucket { rate, burst } => {
                (0, [part(rate.tokens(), rate.period()), part(burst, Duration::ZERO)])
            }
            Shape::Window(window) => (1, [part(window.limit(), window.period()), NO_PART]),
            Shape::Sliding(window) => (3, [part(window.limit(), window.period()), NO_PART]),
            Shape::BurstSustain { burst, sustain } => {
                let parts = [part(burst.limit(), burst.period()), part(sustain.limit(), sustain.period())];
                (2, parts)
            }
        };
        // A bucket ignores both.
        let is_bucket = kind == 0;
        Self {
            kind,
            alignment: if is_bucket { 0 } else { alignment },
            counts_refused: u8::from(!is_bucket && limit.counts_refused()),
            parts,
        }
    }

    /// The first field in which these saved terms differ from what is given, and what it is in each.
    fn difference(&self, given: &Self) -> Option<(&'static str, String, String)> {
        let named = |names: &[&'static str], number: u8| {
            names
                .get(usize::from(number))
                .map_or_else(|| format!("unknown ({number})"), |&name| name.to_owned())
        };
        for (field, names, saved, given) in [
            ("kind", &KINDS[..], self.kind, given.kind),
            ("alignment", &ALIGNMENTS, self.alignment, given.alignment),
            ("count_refused", &SWITCH, self.counts_refused, given.counts_refused),
        ] {
            if saved != given {
                return Some((field, named(names, saved), named(names, given)));
            }
        }
        let fields = FIELDS[usize::from(given.kind)];
        for ((saved, given), [count, period]) in self.parts.iter().zip(&given.parts).zip(fields) {
            if saved.count != given.count {
                return Some((count, saved.count.to_string(), given.count.to_string()));
            }
            if saved.period_ns != given.period_ns {
                let told = |part: &Part| format!("{:?}", Duration::from_nanos(part.period_ns));
                return Some((period, told(saved), told(given)));
            }
        }
        None
    }
}
