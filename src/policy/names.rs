//! Texts that are looked up, each with a value: made once, then only read.

use crate::table::Hashing;

/// A map by text: open addressing over at least twice as many places as there are texts.
pub(super) struct Names<V> {
    /// For each place the text that stands there: the upper half of its hash, and its number from 1. 0: nobody.
    places: Box<[(u32, u32)]>,
    entries: Box<[(Box<str>, V)]>,
}

impl<V: Default> Names<V> {
    /// Texts with what they were given, in the order given.
    pub(super) fn collect<T>(
        hashing: &Hashing,
        texts: impl IntoIterator<Item = (String, T)>,
        add: impl Fn(&mut V, T),
    ) -> Self {
        let mut values = std::collections::BTreeMap::<String, V>::new();
        for (text, value) in texts {
            add(values.entry(text).or_default(), value);
        }
        let entries: Box<[(Box<str>, V)]> =
            values.into_iter().map(|(text, value)| (text.into_boxed_str(), value)).collect();
        let mut places = vec![(0, 0); (2 * entries.len()).next_power_of_two()].into_boxed_slice();
        for (number, (text, _)) in (1..).zip(&entries) {
            let hash = hashing.of(&**text);
            let mut at = place(hash, places.len());
            while places[at].1 != 0 {
                at = (at + 1) % places.len();
            }
            places[at] = (tag(hash), number);
        }
        Self { places, entries }
    }
}

impl<V> Names<V> {
    #[inline]
    pub(super) fn get(&self, hashing: &Hashing, text: &str) -> Option<&V> {
        if self.entries.is_empty() {
            return None;
        }
        let hash = hashing.of(text);
        let mut at = place(hash, self.places.len());
        loop {
            // Half of the places at least are nobody's, so it ends.
            let (known, number) = self.places[at];
            if number == 0 {
                return None;
            }
            if known == tag(hash) {
                let (name, value) = &self.entries[number as usize - 1];
                if **name == *text {
                    return Some(value);
                }
            }
            at = (at + 1) & (self.places.len() - 1);
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the lower bits are what is asked for")]
fn place(hash: u64, places: usize) -> usize {
    hash as usize & (places - 1)
}

#[allow(clippy::cast_possible_truncation, reason = "32 bits are left")]
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_there_is_found_and_nobody_else() {
        let hashing = Hashing::seeded(1);
        for count in [0, 1, 2, 3, 1_000] {
            let texts = (0..count).map(|number| (format!("name-{number}"), number));
            let names = Names::<u32>::collect(&hashing, texts, |sum, number| *sum += number);
            for number in 0..count {
                assert_eq!(names.get(&hashing, &format!("name-{number}")), Some(&number));
            }
            assert_eq!(names.get(&hashing, "name-"), None);
            assert_eq!(names.get(&hashing, &format!("name-{count}")), None);
        }
    }

    #[test]
    fn a_text_that_comes_twice_has_both_values() {
        let hashing = Hashing::seeded(1);
        let texts = [("a", 1), ("b", 2), ("a", 3)].map(|(text, value)| (text.to_owned(), value));
        let names = Names::<Vec<u32>>::collect(&hashing, texts, Vec::push);
        assert_eq!(names.get(&hashing, "a"), Some(&vec![1, 3]));
    }
}
