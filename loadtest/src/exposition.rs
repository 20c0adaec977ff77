//! Parses the Prometheus text format, as far as the figures of one controller need it.

use std::collections::BTreeMap;

/// One line: name, labels, value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The metric name, including `_bucket`, `_sum` or `_count` in a histogram.
    pub(crate) name: String,
    /// The labels, unescaped.
    pub(crate) labels: BTreeMap<String, String>,
    /// The value.
    pub(crate) value: f64,
}

/// All samples of one scrape.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Exposition {
    samples: Vec<Sample>,
}

impl Exposition {
    /// Parses all lines that are samples, and skips the others.
    pub(crate) fn parse(text: &str) -> Exposition {
        Exposition {
            samples: text.lines().filter_map(parse_line).collect(),
        }
    }

    /// The sum over all labels. `None` if the metric is missing.
    pub(crate) fn total(&self, name: &str) -> Option<f64> {
        let mut values = self.named(name).map(|sample| sample.value).peekable();
        values.peek()?;
        Some(values.sum())
    }

    /// The samples of a metric.
    pub(crate) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.samples.iter().filter(move |sample| sample.name == name)
    }

    /// A histogram, summed over all labels. `None` if the metric is missing.
    pub(crate) fn histogram(&self, name: &str) -> Option<Histogram> {
        let mut buckets: Vec<Bucket> = Vec::new();
        for sample in self.named(&format!("{name}_bucket")) {
            let upper = sample.labels.get("le")?.parse().ok()?;
            match buckets.iter_mut().find(|bucket| bucket.upper.total_cmp(&upper).is_eq()) {
                Some(bucket) => bucket.count += sample.value,
                None => buckets.push(Bucket {
                    upper,
                    count: sample.value,
                }),
            }
        }
        buckets.sort_by(|one, other| one.upper.total_cmp(&other.upper));
        if buckets.is_empty() {
            None
        } else {
            Some(Histogram { buckets })
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Bucket {
    upper: f64,
    /// The number of observations up to `upper`.
    count: f64,
}

/// A histogram with cumulative buckets, in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Histogram {
    buckets: Vec<Bucket>,
}

impl Histogram {
    /// Returns the observations since `earlier`.
    #[must_use]
    pub(crate) fn since(&self, earlier: &Histogram) -> Histogram {
        let before = |upper: f64| {
            let same = earlier
                .buckets
                .iter()
                .find(|bucket| bucket.upper.total_cmp(&upper).is_eq());
            same.map_or(0.0, |bucket| bucket.count)
        };
        let rest = |bucket: &Bucket| Bucket {
            upper: bucket.upper,
            count: bucket.count - before(bucket.upper),
        };
        Histogram {
            buckets: self.buckets.iter().map(rest).collect(),
        }
    }

    /// Returns the number of observations.
    pub(crate) fn n_observations(&self) -> f64 {
        self.buckets.last().map_or(0.0, |bucket| bucket.count)
    }

    /// Returns the bounds of the bucket that contains this quantile. `None` without observations. The value within the
    /// bucket is unknown, so the bounds are returned instead of an interpolation.
    pub(crate) fn quantile_bounds(&self, share: f64) -> Option<(f64, f64)> {
        let rank = share * self.n_observations();
        if self.n_observations() <= 0.0 {
            return None;
        }
        let position = self
            .buckets
            .iter()
            .position(|bucket| bucket.count >= rank && bucket.count > 0.0)?;
        let lower = if position == 0 {
            0.0
        } else {
            self.buckets[position - 1].upper
        };
        Some((lower, self.buckets[position].upper))
    }
}

/// Returns `None` for comments, empty lines and malformed samples.
fn parse_line(line: &str) -> Option<Sample> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (name, labels, rest) = if let Some((name, after)) = line.split_once('{') {
        let (labels, rest) = parse_labels(after)?;
        (name, labels, rest)
    } else {
        let (name, rest) = line.split_once(' ')?;
        (name, BTreeMap::new(), rest)
    };
    // A timestamp may follow the value.
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Sample {
        name: name.trim().to_owned(),
        labels,
        value,
    })
}

/// Parses labels up to the closing bracket. Returns them with the rest. Values may contain any character, with escapes.
fn parse_labels(text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = parse_quoted(after)?;
        labels.insert(name.trim().to_owned(), value);
        rest = after;
    }
}

/// Parses text up to the closing quote. Returns it unescaped, with the rest.
fn parse_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut signs = text.char_indices();
    while let Some((index, sign)) = signs.next() {
        match sign {
            '"' => return Some((value, &text[index + 1..])),
            '\\' => match signs.next()?.1 {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            plain => value.push(plain),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
# HELP cronwheel_lateness_seconds From slot to request.
# TYPE cronwheel_lateness_seconds histogram
cronwheel_lateness_seconds_bucket{shard="0",le="0.001"} 10
cronwheel_lateness_seconds_bucket{shard="0",le="0.01"} 90
cronwheel_lateness_seconds_bucket{shard="0",le="+Inf"} 100
cronwheel_lateness_seconds_bucket{shard="1",le="0.001"} 0
cronwheel_lateness_seconds_bucket{shard="1",le="0.01"} 100
cronwheel_lateness_seconds_bucket{shard="1",le="+Inf"} 100
cronwheel_lateness_seconds_sum 1.5
cronwheel_due_instants_total 200
cronwheel_instant_outcomes_total{outcome="created"} 198
cronwheel_instant_outcomes_total{outcome="suspended",} 1 1795257360000
cronwheel_instants_open 1
odd{text="a \"quoted\" }, value\\ \n"} 2.5e1
not a sample
cut{le="1
"#;

    #[test]
    fn totals_add_up_over_labels() {
        let exposition = Exposition::parse(TEXT);
        assert_eq!(exposition.total("cronwheel_instant_outcomes_total"), Some(199.0));
        assert_eq!(exposition.total("cronwheel_due_instants_total"), Some(200.0));
        assert_eq!(exposition.total("unknown"), None);
    }

    #[test]
    fn label_values_may_contain_any_character() {
        let exposition = Exposition::parse(TEXT);
        let odd = exposition.named("odd").next().unwrap();
        assert_eq!(odd.labels["text"], "a \"quoted\" }, value\\ \n");
        assert!((odd.value - 25.0).abs() < f64::EPSILON);
    }

    #[test]
    fn histogram_is_summed_over_labels_and_bounds_quantiles() {
        let histogram = Exposition::parse(TEXT).histogram("cronwheel_lateness_seconds").unwrap();
        assert!((histogram.n_observations() - 200.0).abs() < f64::EPSILON);
        let check =
            |share: f64, bounds: (f64, f64)| assert_eq!(histogram.quantile_bounds(share), Some(bounds), "{share}");
        check(0.01, (0.0, 0.001));
        check(0.5, (0.001, 0.01));
        check(0.99, (0.01, f64::INFINITY));
    }

    #[test]
    fn earlier_observations_are_subtracted() {
        let histogram = Exposition::parse(TEXT).histogram("cronwheel_lateness_seconds").unwrap();
        let nothing = histogram.since(&histogram);
        assert_eq!(nothing.quantile_bounds(0.5), None);
        assert_eq!(Exposition::parse("").histogram("cronwheel_lateness_seconds"), None);
    }
}
