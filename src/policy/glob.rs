//! Globs: `*` stands for any number of characters, none included, `?` for one; everything else for itself.

/// Whether `glob` stands for all of `text`. Takes at most as many steps as one's length times the other's: only the last
/// star is ever tried again, for what stood between two stars may stand as far to the left as it can.
pub(super) fn is_met(glob: &str, text: &str) -> bool {
    let (mut pattern, mut rest) = (glob.chars(), text.chars());
    // After the last star: the pattern, and the text that it has left for that.
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let met = match pattern.next() {
            Some('*') => {
                retry = Some((pattern.clone(), rest.clone()));
                true
            }
            Some('?') => rest.next().is_some(),
            Some(character) => rest.next() == Some(character),
            None if rest.as_str().is_empty() => return true,
            None => false,
        };
        if met {
            continue;
        }
        let Some((after, left)) = &mut retry else { return false };
        // The star takes one more.
        if left.next().is_none() {
            return false;
        }
        (pattern, rest) = (after.clone(), left.clone());
    }
}

/// A glob made ready to ask.
pub(super) enum Glob {
    /// `beginning*end`, which most are.
    Around {
        beginning: String,
        end: String,
    },
    Any(String),
}

impl Glob {
    pub(super) fn new(glob: &str) -> Self {
        match glob.split_once('*') {
            Some((beginning, end)) if !(beginning.contains('?') || end.contains(['*', '?'])) => {
                Self::Around { beginning: beginning.to_owned(), end: end.to_owned() }
            }
            _ => Self::Any(glob.to_owned()),
        }
    }

    #[inline]
    pub(super) fn is_met(&self, text: &str) -> bool {
        match self {
            Self::Around { beginning, end } => {
                text.strip_prefix(&**beginning).is_some_and(|rest| rest.ends_with(&**end))
            }
            Self::Any(glob) => is_met(glob, text),
        }
    }
}

/// What a text that the glob stands for begins with at least.
pub(super) fn literal_prefix(glob: &str) -> &str {
    glob.find(['*', '?']).map_or(glob, |end| &glob[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_and_marks() {
        for (glob, yes, no) in [
            ("", &[""][..], &["a"][..]),
            ("*", &["", "a", "äö"], &[]),
            ("a*c", &["ac", "abc", "abcabc"], &["a", "ab", "bc", "acd"]),
            ("?", &["a", "ä"], &["", "ab"]),
            ("a?c*", &["abc", "aéc", "abcd"], &["ac", "abd"]),
            ("*/write", &["stats/write", "/write"], &["stats/writer", "write"]),
            ("a**b", &["ab", "axb"], &["a", "b"]),
            ("*a*b*", &["ab", "xaxbx"], &["ba", "a"]),
        ] {
            assert!(yes.iter().all(|text| is_met(glob, text)), "{glob}");
            assert!(!no.iter().any(|text| is_met(glob, text)), "{glob}");
        }
    }

    /// Where a matcher tries every star anew, this takes longer than the universe has had.
    #[test]
    fn many_stars_take_no_time() {
        let glob = "a*".repeat(50) + "b";
        assert!(!is_met(&glob, &"a".repeat(10_000)));
    }

    #[test]
    fn the_literal_prefix_ends_at_the_first_sign() {
        assert_eq!(["abc", "ab*c", "a?*", "*"].map(literal_prefix), ["abc", "ab", "a", ""]);
    }

    /// By the meaning of the signs, one character of the pattern at a time.
    fn naive(glob: &[char], text: &[char]) -> bool {
        match glob.split_first() {
            None => text.is_empty(),
            Some(('*', after)) => (0..=text.len()).any(|taken| naive(after, &text[taken..])),
            Some((sign, after)) => text
                .split_first()
                .is_some_and(|(first, rest)| (*sign == '?' || sign == first) && naive(after, rest)),
        }
    }

    proptest! {
        #[test]
        fn every_glob_is_the_naive_one(glob in "[abä*?]{0,8}", text in "[abä]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(is_met(&glob, &text), naive(&chars(&glob), &chars(&text)));
            prop_assert_eq!(Glob::new(&glob).is_met(&text), is_met(&glob, &text));
            prop_assert!(!is_met(&glob, &text) || text.starts_with(literal_prefix(&glob)));
        }
    }
}
