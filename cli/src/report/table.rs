//! A table of names and counts, as wide as the page and no wider.

use std::fmt::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::text::{DIM, INDENT, indented};

/// How much of a name is shown at least, even if counts have to go for it: a whole IPv6 prefix, for a
/// part of an address tells nothing.
const NAME_CHARS: usize = 24;

/// How much of a name is shown at most.
const NAME_CHARS_MAX: usize = 60;

/// What the table puts between two columns.
const BETWEEN: &str = "  ";

/// One line: names at its left, counts at its right.
pub(super) struct Row {
    names: Vec<String>,
    counts: Vec<String>,
}

impl Row {
    pub(super) fn new(names: Vec<String>, counts: Vec<String>) -> Self {
        Self { names, counts }
    }
}

/// Adds the table. A narrow page has no room for all: columns of counts go, from the right, until the names fit; `fewer`
/// tells how many stay of so many (more than 1), and is always less. Names that still do not fit are cut, the last ones first.
pub(super) fn table(
    out: &mut String,
    names: &[&str],
    counts: &[&str],
    rows: &[Row],
    width: usize,
    fewer: impl Fn(usize) -> usize,
) -> std::fmt::Result {
    let widest = |title: &str, cell: &dyn Fn(&Row) -> usize| {
        rows.iter().map(cell).fold(title.chars().count(), usize::max)
    };
    let name_chars: Vec<usize> = names
        .iter()
        .enumerate()
        .map(|(at, name)| widest(name, &|row| row.names[at].chars().count()))
        .collect();
    let needed: usize = name_chars.iter().map(|chars| (*chars).min(NAME_CHARS)).sum();
    let room = |columns: usize| {
        let wide = |at: usize| widest(counts[at], &|row| row.counts[at].chars().count());
        let taken: usize = (0..columns).map(|at| BETWEEN.len() + wide(at)).sum();
        width.saturating_sub(INDENT.len() + taken + BETWEEN.len() * (names.len() - 1))
    };
    let mut columns = counts.len();
    while columns > 1 && room(columns) < needed {
        columns = fewer(columns);
    }
    let name_chars_max = shares(&name_chars, room(columns));

    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(names.iter().chain(&counts[..columns]));
    for row in rows {
        let shown = row.names.iter().zip(&name_chars_max).map(|(name, chars_max)| cut(name, *chars_max));
        table.add_row(shown.chain(row.counts[..columns].iter().cloned()));
    }
    for column in table.column_iter_mut().skip(names.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for (at, line) in table.lines().enumerate() {
        let line = line.trim_end();
        match at {
            0 => writeln!(out, " {DIM}{line}{DIM:#}")?,
            _ => writeln!(out, " {line}")?,
        }
    }
    if columns < counts.len() {
        let left_out = format!("{}{DIM:#}", counts[columns..].join(", "));
        indented(out, &[&format!("{DIM}left out at this width:"), &left_out], width)?;
    }
    Ok(())
}

/// How many characters each column of names gets of so many: what it needs, and if that is too much, the widest give
/// first.
fn shares(needed: &[usize], room: usize) -> Vec<usize> {
    let mut given: Vec<usize> = needed.iter().map(|chars| (*chars).clamp(1, NAME_CHARS_MAX)).collect();
    while given.iter().sum::<usize>() > room.max(given.len()) {
        if let Some(widest) = given.iter_mut().max() {
            *widest -= 1;
        }
    }
    given
}

/// `text`, or its beginning if it has more characters than that.
fn cut(text: &str, chars_max: usize) -> String {
    let mut shown: String = text.chars().take(chars_max).collect();
    if shown.len() < text.len() {
        shown.pop();
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_names_give_first() {
        assert_eq!(shares(&[3, 5], 10), [3, 5]);
        assert_eq!(shares(&[10, 30], 30), [10, 20]);
        assert_eq!(shares(&[30, 30], 31).iter().sum::<usize>(), 31);
        assert_eq!(shares(&[9, 9], 0), [1, 1]);
        assert_eq!(shares(&[100], 100), [60]);
    }

    #[test]
    fn names_are_cut_with_an_ellipsis() {
        assert_eq!((cut("abc", 3), cut("äbcd", 3)), ("abc".to_owned(), "äb…".to_owned()));
    }
}
