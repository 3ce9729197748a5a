//! Texts that are looked up, each with a value: made once, then only read.

use std::collections::HashMap;

use crate::table::Hashing;

pub(super) type Names<V> = HashMap<String, V, Hashing>;

/// Texts with all that they were given, in the order given; hashed by seeds that nobody knows.
pub(super) fn names<V: Default, T>(
    texts: impl IntoIterator<Item = (String, T)>,
    add: impl Fn(&mut V, T),
) -> Names<V> {
    let mut names = Names::with_hasher(Hashing::random());
    for (text, value) in texts {
        add(names.entry(text).or_default(), value);
    }
    names
}
