//! The keys that the threads of a round check, made beforehand, in the two forms that limiters take.

use rand::distr::{Distribution, Uniform};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_distr::Zipf;

use crate::workload::{BATCH, Order};

/// Keys in one thread's stream. 16 MiB of numbers, 64 MiB of text: longer than any cache keeps, so that a
/// round never finds its own keys still warm from the round before, yet read in order, so that the next
/// key is always there.
pub(crate) const STREAM_LEN: usize = 1 << 22;

/// Bytes of a key as text.
const TEXT_LEN: usize = 16;

/// What one thread checks: the same keys, once as numbers and once as text.
pub(crate) struct Stream {
    ids: Vec<u32>,
    text: String,
}

/// A stretch of a stream.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    ids: &'a [u32],
    text: &'a str,
}

impl Stream {
    /// [`STREAM_LEN`] keys of so many, in this order; another thread, other keys. The same in every run and
    /// for every contestant.
    pub(crate) fn new(order: Order, keys: u32, thread: u64) -> Result<Self, Box<dyn std::error::Error>> {
        Self::with_len(STREAM_LEN, order, keys, thread)
    }

    /// The first `len` keys of that stream.
    pub(crate) fn with_len(
        len: usize,
        order: Order,
        keys: u32,
        thread: u64,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let rng = StdRng::seed_from_u64(0x7469_6465 + thread);
        Ok(Self::of(match order {
            Order::Uniform | Order::Batches => drawn(len, Uniform::new(0, keys)?, rng, |key| key),
            // Ranks count from 1. The cast is exact: ranks are whole and fit in 32 bits.
            #[allow(clippy::cast_possible_truncation)]
            Order::Zipf => drawn(len, Zipf::new(f64::from(keys), 1.0)?, rng, |rank| rank as u32 - 1),
            Order::OneShot => (keys..).take(len).collect(),
        }))
    }

    pub(crate) fn of(ids: Vec<u32>) -> Self {
        let mut text = String::with_capacity(ids.len() * TEXT_LEN);
        for &id in &ids {
            push_text(&mut text, id);
        }
        Self { ids, text }
    }

    /// `len` keys from place `from` on.
    pub(crate) fn part(&self, from: usize, len: usize) -> Part<'_> {
        Part { ids: &self.ids[from..from + len], text: &self.text[from * TEXT_LEN..(from + len) * TEXT_LEN] }
    }

    pub(crate) fn whole(&self) -> Part<'_> {
        self.part(0, self.ids.len())
    }
}

impl Part<'_> {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }
}

fn drawn<T>(
    len: usize,
    distribution: impl Distribution<T>,
    mut rng: impl Rng,
    id: impl Fn(T) -> u32,
) -> Vec<u32> {
    (0..len).map(|_| id(distribution.sample(&mut rng))).collect()
}

/// Appends the 16 bytes that stand for `id`. By hand: streams have millions of them.
fn push_text(text: &mut String, id: u32) {
    let mut bytes = *b"client0000000000";
    let mut rest = id;
    for byte in bytes.iter_mut().rev().take(10) {
        #[allow(clippy::cast_possible_truncation)] // below 10
        let digit = (rest % 10) as u8;
        *byte += digit;
        rest /= 10;
    }
    text.push_str(std::str::from_utf8(&bytes).unwrap_or_default()); // ASCII, so it is never the default
}

/// One of the two forms of a key: `u64` or `str`.
pub(crate) trait Key {
    /// Hands the key of each place to `check`, in order; how often that was true.
    fn count(part: Part<'_>, check: impl FnMut(&Self) -> bool) -> u64;

    /// Hands the keys to `check` in batches of [`BATCH`], in order, for it to tell how often the answer was true.
    fn count_batches(part: Part<'_>, check: impl FnMut(&[&Self]) -> u64) -> u64;

    /// Hands the keys 0 to `keys` to `check`, in order; how often that was true.
    fn count_all(keys: u32, check: impl FnMut(&Self) -> bool) -> u64;
}

impl Key for u64 {
    #[inline]
    fn count(part: Part<'_>, mut check: impl FnMut(&Self) -> bool) -> u64 {
        part.ids.iter().map(|&id| u64::from(check(&id.into()))).sum()
    }

    #[inline]
    fn count_batches(part: Part<'_>, mut check: impl FnMut(&[&Self]) -> u64) -> u64 {
        let batches = part.ids.as_chunks::<BATCH>().0.iter();
        batches.map(|ids| check(&ids.map(u64::from).each_ref())).sum()
    }

    fn count_all(keys: u32, mut check: impl FnMut(&Self) -> bool) -> u64 {
        (0..keys).map(|id| u64::from(check(&id.into()))).sum()
    }
}

impl Key for str {
    #[inline]
    fn count(part: Part<'_>, mut check: impl FnMut(&Self) -> bool) -> u64 {
        let mut text = part.text;
        let mut count = 0;
        while let Some((key, rest)) = text.split_at_checked(TEXT_LEN) {
            count += u64::from(check(key));
            text = rest;
        }
        count
    }

    #[inline]
    fn count_batches(part: Part<'_>, mut check: impl FnMut(&[&Self]) -> u64) -> u64 {
        let batches = part.text.as_bytes().chunks_exact(BATCH * TEXT_LEN);
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default(); // ASCII, so it is never the default
        batches.map(|batch| check(&batch.chunks_exact(TEXT_LEN).map(text).collect::<Vec<_>>())).sum()
    }

    fn count_all(keys: u32, mut check: impl FnMut(&Self) -> bool) -> u64 {
        let mut text = String::with_capacity(TEXT_LEN);
        let mut count = 0;
        for id in 0..keys {
            text.clear();
            push_text(&mut text, id);
            count += u64::from(check(&text));
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Stream};

    #[test]
    fn both_forms_name_the_same_keys() {
        let stream = Stream::of(vec![7, u32::MAX, 0]);
        let (mut ids, mut texts) = (Vec::new(), Vec::new());
        let passed = u64::count(stream.part(0, 2), |&id| {
            ids.push(id);
            id == 7
        });
        str::count(stream.whole(), |text| {
            texts.push(text.to_owned());
            true
        });
        assert_eq!((passed, ids), (1, vec![7, u32::MAX.into()]));
        assert_eq!(texts, ["client0000000007", "client4294967295", "client0000000000"]);

        let mut all = Vec::new();
        str::count_all(8, |text| {
            all.push(text.to_owned());
            true
        });
        assert_eq!(all[7], texts[0]);
    }
}
