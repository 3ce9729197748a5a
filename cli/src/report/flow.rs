//! Words laid out in lines.

use std::fmt::Write;

/// Adds `phrases`, a blank between them, and a line break. The line has `column` columns already; what
/// does not fit goes on in lines that begin `hang` columns in. A phrase is broken only if it is wider than
/// a line, and a word never: where it ends is of more use than where the page does. Styles take no room.
pub(super) fn flow(
    out: &mut String,
    phrases: &[&str],
    mut column: usize,
    hang: usize,
    width: usize,
) -> std::fmt::Result {
    let mut fresh = true;
    for phrase in phrases {
        for (at, word) in phrase.split(' ').enumerate() {
            // The first word is put where the whole phrase has room.
            let room = columns(if at == 0 { phrase } else { word });
            if fresh {
                fresh = false;
            } else if column + 1 + room > width && column > hang {
                write!(out, "\n{:hang$}", "")?;
                column = hang;
            } else {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += columns(word);
        }
    }
    writeln!(out)
}

fn columns(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flowed(phrases: &[&str], column: usize, hang: usize, width: usize) -> String {
        let mut out = String::new();
        flow(&mut out, phrases, column, hang, width).unwrap();
        out
    }

    #[test]
    fn lines_go_on_below_themselves() {
        assert_eq!(flowed(&["one two three four"], 8, 8, 16), "one two\n        three\n        four\n");
        assert_eq!(flowed(&["one two three four"], 0, 2, 9), "one two\n  three\n  four\n");
    }

    #[test]
    fn phrases_stay_whole_if_they_can() {
        let phrases = ["one two", "three four"];
        assert_eq!(flowed(&phrases, 0, 0, 18), "one two three four\n");
        assert_eq!(flowed(&phrases, 0, 0, 17), "one two\nthree four\n");
        assert_eq!(flowed(&phrases, 0, 0, 9), "one two\nthree\nfour\n");
    }

    #[test]
    fn words_are_never_broken_and_styles_take_no_room() {
        assert_eq!(flowed(&["a/very/long/path", "b"], 0, 2, 9), "a/very/long/path\n  b\n");
        assert_eq!(flowed(&["\u{1b}[1mone\u{1b}[0m", "two"], 0, 0, 7), "\u{1b}[1mone\u{1b}[0m two\n");
    }
}
