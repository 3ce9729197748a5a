//! Bars out of block characters, an eighth of a cell fine.

const EIGHTHS: u64 = 8;
const LYING: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
const STANDING: [char; 8] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇'];
const FULL: char = '█';

/// The length of a bar in eighths of a cell: `value` of `max`, where `max` fills `cells`. What is not 0
/// shows.
fn eighths(value: u64, max: u64, cells: usize) -> u64 {
    if value == 0 || max == 0 || cells == 0 {
        return 0;
    }
    let whole = cells as u64 * EIGHTHS;
    let exact = (u128::from(value) * u128::from(whole) + u128::from(max) / 2) / u128::from(max);
    u64::try_from(exact).unwrap_or(whole).clamp(1, whole)
}

fn cell(length: u64, cell: usize, partial: [char; 8]) -> char {
    match length.saturating_sub(cell as u64 * EIGHTHS) {
        rest if rest >= EIGHTHS => FULL,
        rest => partial[usize::try_from(rest).unwrap_or(0)],
    }
}

/// A bar from left to right; it ends where it ends, without blanks behind it.
pub(super) fn lying(value: u64, max: u64, cells: usize) -> String {
    let length = eighths(value, max, cells);
    let bar: String = (0..cells).map(|at| cell(length, at, LYING)).collect();
    bar.trim_end().to_owned()
}

/// Bars that stand side by side, as lines from top to bottom.
pub(super) fn standing(values: &[u64], rows: usize) -> Vec<String> {
    let max = values.iter().copied().max().unwrap_or(0);
    let lengths: Vec<u64> = values.iter().map(|value| eighths(*value, max, rows)).collect();
    let row = |at: usize| lengths.iter().map(|length| cell(*length, at, STANDING)).collect();
    (0..rows).rev().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lying_bars_have_their_length() {
        assert_eq!(lying(0, 10, 4), "");
        assert_eq!(lying(10, 10, 4), "████");
        assert_eq!(lying(5, 10, 4), "██");
        assert_eq!(lying(1, 8, 1), "▏");
        assert_eq!(lying(1, 1_000_000, 4), "▏");
        assert_eq!(lying(u64::MAX, u64::MAX, 4), "████");
        assert_eq!(lying(3, 0, 4), "");
        assert_eq!(lying(3, 3, 0), "");
    }

    #[test]
    fn standing_bars_share_their_rows() {
        assert_eq!(standing(&[0, 1, 8, 12, 16], 2), ["   ▄█", " ▁███"]);
        assert_eq!(standing(&[], 2), ["", ""]);
        assert_eq!(standing(&[0, 0], 1), ["  "]);
    }
}
