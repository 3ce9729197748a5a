//! A key's text, where nothing may be allocated.

use std::fmt::{self, Write};

/// The most that is kept of a key's text.
const BYTES: usize = 96;
/// What stands at the end of one that was cut short.
const CUT: &str = "…";

/// A text of 96 bytes at most.
#[derive(Clone, Copy)]
pub(crate) struct Label {
    bytes: [u8; BYTES],
    len: u8,
}

impl Label {
    pub(crate) fn of(text: &impl fmt::Display) -> Self {
        let mut label = Self { bytes: [0; BYTES], len: 0 };
        if write!(label, "{text}").is_err() {
            label.cut();
        }
        label
    }

    pub(super) fn as_str(&self) -> &str {
        // Only whole characters were ever written.
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }

    /// Ends it in the sign that something is missing.
    fn cut(&mut self) {
        let mut len = usize::from(self.len).min(BYTES - CUT.len());
        while !self.as_str().is_char_boundary(len) {
            len -= 1;
        }
        self.bytes[len..len + CUT.len()].copy_from_slice(CUT.as_bytes());
        self.set_len(len + CUT.len());
    }

    fn set_len(&mut self, len: usize) {
        self.len = u8::try_from(len).unwrap_or(0);
    }
}

/// Takes what fits, whole characters; the error is that something did not.
impl Write for Label {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let from = usize::from(self.len);
        let mut fits = text.len().min(BYTES - from);
        while !text.is_char_boundary(fits) {
            fits -= 1;
        }
        self.bytes[from..from + fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.set_len(from + fits);
        if fits == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_says_so() {
        assert_eq!(Label::of(&"").as_str(), "");
        assert_eq!(Label::of(&"ada/chess").as_str(), "ada/chess");
        let full = "x".repeat(96);
        assert_eq!(Label::of(&full).as_str(), full);
        assert_eq!(Label::of(&format!("{full}y")).as_str(), format!("{}…", "x".repeat(93)));
        // 31 characters of three bytes, and one that the sign takes the place of.
        assert_eq!(Label::of(&"€".repeat(33)).as_str(), format!("{}…", "€".repeat(31)));
        assert_eq!(Label::of(&format!("x{}", "€".repeat(33))).as_str(), format!("x{}…", "€".repeat(30)));
        assert_eq!(Label::of(&format_args!("{}/{}", "a".repeat(95), "€")).as_str().len(), 96);
    }
}
