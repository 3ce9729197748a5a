//! A limiter's state as bytes, so that a restart does not hand everyone a fresh burst.
//!
//! ```text
//! header   magic "tidegate" · version, 4 bytes · 4 seeds · 4 hashes, the self-test
//!          kind, alignment, counts_refused, a byte each · 2 × (count, period in ns) · max_keys · checksum, 4 bytes
//! keys     slot · fingerprint · word          for each key that is not idle, by number of the slot
//!          2^64 − 1                           the end of the keys
//! trailer  now · wall · latest · evicted · checksum, 4 bytes
//! ```
//!
//! Numbers have 8 bytes where nothing else is said, the lowest first. A checksum (CRC-32) covers all bytes in front of it. The
//! version counts up with any change of this, and of what a word means: of timebases, layouts, phases, fingerprints
//! and of where in the table a key stands.
//!
//! The times are nanoseconds: `now` and `evicted` (before it no key begins) are the limiter's own, `wall` is that of
//! the wall clock at `now`, and `latest` the latest time that anything here can have been left at, later than `now` if the
//! clock has stepped back. They stand at the end since keys are read while others are charged.

mod error;
mod frame;
mod header;

use std::io::{self, Read, Write};

pub use error::RestoreError;
use frame::{Sink, Source};
use header::Header;

use crate::settings::{Core, Settings};
use crate::table::{Copied, SlotTable};
use crate::time::Clock;
use crate::time::timebase::{HORIZON_LEAST_NS, saturating_ns};
use crate::word::Rule;

/// Stands where the next key's slot would.
const END_OF_KEYS: u64 = u64::MAX;

/// Writes every key that is not idle; says how many.
pub(crate) fn save<C: Clock>(
    table: &SlotTable,
    core: &Core<C>,
    max_keys: usize,
    writer: impl Write,
) -> io::Result<u64> {
    core.engine.eras.while_unchanged(|| {
        if core.engine.eras.tiers() > 0 {
            let told = "a limiter with tiers or overrides cannot be saved: its keys owe by limits that a snapshot does not hold";
            return Err(io::Error::new(io::ErrorKind::Unsupported, told));
        }
        save_unchanged(table, core, max_keys, writer)
    })
}

fn save_unchanged<C: Clock>(
    table: &SlotTable,
    core: &Core<C>,
    max_keys: usize,
    writer: impl Write,
) -> io::Result<u64> {
    let engine = &core.engine;
    let rule = engine.era().rule;
    let mut sink = Sink::new(writer);
    Header::new(&core.limit(), max_keys, engine.eras.tiers_max(), &core.hashing).write(&mut sink)?;

    let began_ns = engine.precise_ns();
    let (mut keys, mut left_at_max) = (0, 0);
    table.copy(engine, began_ns, |Copied { number, fingerprint, word }| {
        keys += 1;
        let left_at = rule.left_at(word).saturating_sub(rule.phase(fingerprint));
        left_at_max = left_at_max.max(left_at);
        sink.put(&(number as u64).to_le_bytes())?;
        sink.put(&fingerprint.to_le_bytes())?;
        sink.put(&word.to_le_bytes())
    })?;
    sink.put(&END_OF_KEYS.to_le_bytes())?;

    // Who was idle when this began is not here, so nobody may begin before.
    let evicted_ns = table.evicted_ns().max(began_ns);
    let (now_ns, wall_ns) = engine.origin.beside_wall(&engine.clock);
    let left_at_ns = rule.time().first_ns_at(left_at_max).unwrap_or(u64::MAX);
    let times = Times { now_ns, wall_ns, latest_ns: now_ns.max(evicted_ns).max(left_at_ns), evicted_ns };
    times.write(&mut sink)?;
    sink.finish()?;
    Ok(keys)
}

/// Makes of `settings` what decides, and puts the keys into a table that `make` makes of that.
pub(crate) fn restore<C: Clock>(
    settings: Settings<C>,
    keys_max: usize,
    make: impl FnOnce(&Core<C>) -> Option<SlotTable>,
    reader: impl Read,
) -> Result<(SlotTable, Core<C>), RestoreError> {
    let rule = settings.rule(keys_max)?;
    let max_keys = settings.max_keys;
    let mut source = Source::new(reader);
    let hashing = Header::read(&mut source)?.settle(&settings)?;
    let mut core = settings.core(rule, hashing);
    let no_memory = crate::error::ConfigError::NoMemory { keys: max_keys };
    let mut table = make(&core).ok_or(no_memory)?;

    let odd = read_keys(&mut table, &mut source)?;
    let times = Times::read(&mut source)?;
    source.finish()?;
    // Only what the checksum vouches for is worth a closer word.
    odd.map_or(Ok(()), |number| Err(RestoreError::Slot { number }))?;
    if times.latest_ns < times.now_ns.max(times.evicted_ns) {
        return Err(RestoreError::Times);
    }

    if times.latest_ns > times.now_ns {
        core.engine.note_debts(); // a debt, or a clock that has stepped back
    }
    let longest_ns = Rule::wall_periods_ns(&core.limit).map(|(_, longest_ns)| longest_ns);
    let resumed_ns = |wall_ns| times.resumed_ns(wall_ns, longest_ns);
    let (earlier_ns, units) = room_in_time(&core, resumed_ns(saturating_ns(core.engine.clock.unix())));
    table
        .judge(&core.engine, times.latest_ns, units)
        .map_err(|number| RestoreError::Slot { number: number as u64 })?;
    core.resume(resumed_ns, earlier_ns);
    // Begun anew, nobody knows who left the table for being idle.
    let evicted_ns = times.evicted_ns.saturating_sub(earlier_ns);
    table.set_evicted_ns(if earlier_ns == 0 { evicted_ns } else { evicted_ns.max(core.engine.precise_ns()) });
    Ok((table, core))
}

/// By how much time must be put back so that it lasts seven years at least: in nanoseconds, and in units. Nothing, for
/// decades.
fn room_in_time<C: Clock>(core: &Core<C>, ns: u64) -> (u64, u64) {
    let rule = &core.engine.rule;
    if rule.time().end_ns().saturating_sub(ns) >= HORIZON_LEAST_NS {
        return (0, 0);
    }
    let (start_ns, units) = rule.begin_anew(ns, Rule::longest_period_ns(&core.limit));
    (ns - start_ns, units)
}

/// Puts the keys into their slots. The number of the first that cannot be one, if there is: what comes after it is
/// read all the same, for the checksum at the end.
fn read_keys<R: Read>(table: &mut SlotTable, source: &mut Source<R>) -> Result<Option<u64>, RestoreError> {
    let (mut odd, mut next) = (None, 0);
    for _ in 0..=table.lines().slots() {
        let number = source.number()?;
        if number == END_OF_KEYS {
            return Ok(odd);
        }
        let (fingerprint, word) = (source.number()?, source.number()?);
        let key = usize::try_from(number).map(|number| Copied { number, fingerprint, word });
        let is_good = odd.is_none() && number >= next && key.is_ok_and(|key| table.put(key));
        if !is_good && odd.is_none() {
            odd = Some(number);
        }
        next = number.saturating_add(1);
    }
    // More keys than slots: there is no end to wait for.
    Err(RestoreError::Slot { number: odd.unwrap_or(next) })
}

/// When a snapshot was taken, in nanoseconds; see the head of this file.
#[derive(Clone, Copy, Debug)]
struct Times {
    now_ns: u64,
    wall_ns: u64,
    latest_ns: u64,
    evicted_ns: u64,
}

impl Times {
    fn write<W: Write>(&self, sink: &mut Sink<W>) -> io::Result<()> {
        let Self { now_ns, wall_ns, latest_ns, evicted_ns } = self;
        [now_ns, wall_ns, latest_ns, evicted_ns].into_iter().try_for_each(|ns| sink.put(&ns.to_le_bytes()))
    }

    fn read<R: Read>(source: &mut Source<R>) -> Result<Self, RestoreError> {
        let (now_ns, wall_ns) = (source.number()?, source.number()?);
        Ok(Self { now_ns, wall_ns, latest_ns: source.number()?, evicted_ns: source.number()? })
    }

    fn resumed_ns(&self, wall_ns: u64, longest_ns: Option<u64>) -> u64 {
        crate::time::Origin::resumed_ns(self.now_ns, self.wall_ns, wall_ns, longest_ns)
    }
}
