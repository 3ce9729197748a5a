//! Medians and quartiles.

/// The three values that cut a sorted list into quarters.
#[derive(Clone, Copy, Debug)]
pub struct Quartiles {
    /// A quarter of the values lie below it.
    pub lower: f64,
    /// Half of them.
    pub median: f64,
    /// Three quarters.
    pub upper: f64,
}

impl Quartiles {
    /// `values` are not empty.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        Self {
            lower: quantile(&values, 0.25),
            median: quantile(&values, 0.5),
            upper: quantile(&values, 0.75),
        }
    }
}

/// The value below which the given share of `sorted` lies, between two neighbours in proportion.
/// `sorted` is not empty.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    #[allow(clippy::cast_possible_truncation)] // within the slice
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::{Quartiles, quantile};

    #[test]
    fn quartiles_lie_between_neighbours_in_proportion() {
        let quartiles = Quartiles::of([4.0, 1.0, 3.0, 2.0].into_iter());
        assert_eq!((quartiles.lower, quartiles.median, quartiles.upper), (1.75, 2.5, 3.25));
        assert_eq!(quantile(&[7.0], 0.75), 7.0);
    }
}
