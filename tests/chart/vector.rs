//! Values of series at an instant, and the few operations on them that the dashboards need. They are implemented
//! without Prometheus, to verify its results.

use std::collections::BTreeMap;

/// The labels of a series. `__name__` is the metric.
pub(super) type Labels = BTreeMap<String, String>;

/// The values of series at an instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Vector(BTreeMap<Labels, f64>);

impl Vector {
    /// The sum of each group with equal values of these labels.
    pub(super) fn sum(&self, by: &[&str]) -> Vector {
        self.group(by, |values| values.iter().sum())
    }

    /// The maximum of each group.
    pub(super) fn max(&self, by: &[&str]) -> Vector {
        self.group(by, |values| values.iter().copied().fold(f64::MIN, f64::max))
    }

    /// The minimum of each group.
    pub(super) fn min(&self, by: &[&str]) -> Vector {
        self.group(by, |values| values.iter().copied().fold(f64::MAX, f64::min))
    }

    /// The size of each group.
    pub(super) fn count(&self, by: &[&str]) -> Vector {
        self.group(by, |values| f64::from(u32::try_from(values.len()).unwrap()))
    }

    fn group(&self, by: &[&str], of: impl Fn(&[f64]) -> f64) -> Vector {
        let mut groups: BTreeMap<Labels, Vec<f64>> = BTreeMap::new();
        for (labels, value) in &self.0 {
            let kept = labels.iter().filter(|(label, _)| by.contains(&label.as_str()));
            let kept = kept.map(|(label, value)| (label.clone(), value.clone())).collect();
            groups.entry(kept).or_default().push(*value);
        }
        groups
            .into_iter()
            .map(|(labels, values)| (labels, of(&values)))
            .collect()
    }

    /// The quotients of series with equal labels.
    pub(super) fn divided_by(&self, other: &Vector) -> Vector {
        self.with(other, |dividend, divisor| dividend / divisor)
    }

    /// The sums of series with equal labels.
    pub(super) fn plus(&self, other: &Vector) -> Vector {
        self.with(other, |one, other| one + other)
    }

    /// The differences of series with equal labels.
    pub(super) fn minus(&self, other: &Vector) -> Vector {
        self.with(other, |one, other| one - other)
    }

    fn with(&self, other: &Vector, of: impl Fn(f64, f64) -> f64) -> Vector {
        let both = self.0.iter().filter_map(|(labels, value)| {
            let other = other.0.get(labels)?;
            Some((labels.clone(), of(*value, *other)))
        });
        both.collect()
    }

    /// The series of both vectors.
    pub(super) fn and_also(mut self, other: Vector) -> Vector {
        self.0.extend(other.0);
        self
    }

    pub(super) fn map(self, change: impl Fn(f64) -> f64) -> Vector {
        self.0
            .into_iter()
            .map(|(labels, value)| (labels, change(value)))
            .collect()
    }

    /// The series without the name of their metric, as results of functions are.
    pub(super) fn without_name(self) -> Vector {
        let without = |mut labels: Labels| {
            labels.remove("__name__");
            labels
        };
        self.0
            .into_iter()
            .map(|(labels, value)| (without(labels), value))
            .collect()
    }

    /// The quantile of each histogram with these buckets. Values are interpolated linearly in a bucket.
    pub(super) fn quantile(&self, quantile: f64) -> Vector {
        let mut histograms: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
        for (labels, count) in &self.0 {
            let mut labels = labels.clone();
            let bound = labels.remove("le").unwrap();
            let buckets = histograms.entry(labels).or_default();
            buckets.push((bound.parse().unwrap(), *count));
        }
        let quantile_of = |mut buckets: Vec<(f64, f64)>| {
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
            let rank = quantile * buckets.last().unwrap().1;
            let at = buckets.iter().position(|(_, count)| *count >= rank).unwrap();
            let (lower, below) = if at == 0 { (0.0, 0.0) } else { buckets[at - 1] };
            let (upper, up_to) = buckets[at];
            assert!(upper.is_finite(), "the quantile is in the last bucket");
            lower + (upper - lower) * (rank - below) / (up_to - below)
        };
        histograms
            .into_iter()
            .map(|(labels, buckets)| (labels, quantile_of(buckets)))
            .collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether both have the same series with the same values, except for rounding.
    pub(super) fn is_about(&self, other: &Vector) -> bool {
        let is_near = |one: f64, other: f64| {
            one.to_bits() == other.to_bits()
                || (one - other).is_finite() && (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
        };
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|((labels, value), (other_labels, other))| labels == other_labels && is_near(*value, *other))
    }
}

impl FromIterator<(Labels, f64)> for Vector {
    fn from_iter<T: IntoIterator<Item = (Labels, f64)>>(series: T) -> Vector {
        Vector(series.into_iter().collect())
    }
}

impl<const N: usize> From<[(Labels, f64); N]> for Vector {
    fn from(series: [(Labels, f64); N]) -> Vector {
        series.into_iter().collect()
    }
}
