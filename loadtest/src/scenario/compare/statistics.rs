//! Medians, ranges and quantiles of a few figures.

/// A summary of the figures of several turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
    pub(crate) n_turns: usize,
}

impl Summary {
    /// Returns `None` without figures.
    pub(crate) fn of(figures: &[f64]) -> Option<Summary> {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (lowest, highest) = (*sorted.first()?, *sorted.last()?);
        let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Summary {
            median,
            lowest,
            highest,
            n_turns: sorted.len(),
        })
    }

    /// Whether the ranges overlap. If they do, a difference of the medians may be chance.
    pub(crate) fn overlaps(&self, other: &Summary) -> bool {
        self.lowest <= other.highest && other.lowest <= self.highest
    }
}

/// The quantile of ascending figures, by nearest rank. `None` without figures.
pub(crate) fn quantile(ascending: &[f64], share: f64) -> Option<f64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a rank is between 0 and the number of figures"
    )]
    let rank = (share * ascending.len() as f64).ceil() as usize;
    ascending.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(figures: &[f64]) -> Summary {
        Summary::of(figures).unwrap()
    }

    #[test]
    fn a_summary_is_median_and_range() {
        let check = |figures: &[f64], expected: (f64, f64, f64)| {
            let summary = summary(figures);
            assert_eq!(
                (summary.median, summary.lowest, summary.highest),
                expected,
                "{figures:?}"
            );
            assert_eq!(summary.n_turns, figures.len());
        };
        check(&[4.0], (4.0, 4.0, 4.0));
        check(&[9.0, 1.0, 2.0], (2.0, 1.0, 9.0));
        check(&[9.0, 1.0, 2.0, 4.0], (3.0, 1.0, 9.0));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn ranges_with_a_common_figure_overlap() {
        let check = |one: &[f64], other: &[f64], expected: bool| {
            let (one, other) = (summary(one), summary(other));
            assert_eq!((one.overlaps(&other), other.overlaps(&one)), (expected, expected));
        };
        check(&[1.0, 3.0], &[2.0, 4.0], true);
        check(&[1.0, 3.0], &[3.0, 4.0], true);
        check(&[1.0, 9.0], &[3.0, 4.0], true);
        check(&[1.0, 3.0], &[3.1, 4.0], false);
    }

    #[test]
    fn quantiles_use_the_nearest_rank() {
        let ascending: Vec<f64> = (1..=1_000).map(f64::from).collect();
        let check = |share: f64, expected: f64| assert_eq!(quantile(&ascending, share), Some(expected), "{share}");
        check(0.0, 1.0);
        check(0.5, 500.0);
        check(0.999, 999.0);
        check(1.0, 1_000.0);
        assert_eq!(quantile(&[7.0], 0.5), Some(7.0));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
