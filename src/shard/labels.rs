//! The shard labels of a Job, by which watches select it.

use super::{ShardCount, ShardId};

/// Prefix of the key of the label that holds the number of a Job's shard. The number of shards follows.
pub const SHARD_LABEL_PREFIX: &str = "cronwheel.dev/shard-";

/// The shards named by a Job's labels, with their shard counts: the installation may have had another count before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardLabels(Vec<(ShardCount, ShardId)>);

impl ShardLabels {
    /// The label of a single shard.
    pub fn of(count: ShardCount, shard: ShardId) -> ShardLabels {
        ShardLabels(vec![(count, shard)])
    }

    /// Records a label. Other keys, and values that name no shard, are ignored.
    pub fn note(&mut self, key: &str, value: &str) {
        let count = key.strip_prefix(SHARD_LABEL_PREFIX).and_then(number);
        let count = count.and_then(|count| ShardCount::new(count.into()).ok());
        if let (Some(count), Some(shard)) = (count, number(value).map(ShardId)) {
            self.0.push((count, shard));
        }
    }

    /// The shard that the label for a number of shards names.
    pub fn shard(&self, count: ShardCount) -> Option<ShardId> {
        let of_count = self.0.iter().find(|(other, _)| *other == count);
        of_count.map(|(_, shard)| *shard)
    }

    /// Whether a watch that selects the shard by its label delivers the Job.
    pub fn names(&self, count: ShardCount, shard: ShardId) -> bool {
        self.0.contains(&(count, shard))
    }
}

/// Parses a number in the exact form that cronwheel writes, because selectors compare text.
fn number(text: &str) -> Option<u16> {
    let is_written_so = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|_| is_written_so)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(labels: &[(&str, &str)]) -> ShardLabels {
        let mut read = ShardLabels::default();
        for (key, value) in labels {
            read.note(key, value);
        }
        read
    }

    #[test]
    fn shard_label_names_its_own_shard_only() {
        for level in 4..=10 {
            let count = ShardCount::new(1 << level).unwrap();
            for shard in count.shards() {
                let labels = read(&[(&count.label_key(), &count.label_value(shard))]);
                assert_eq!(labels, ShardLabels::of(count, shard));
                let named: Vec<ShardId> = count.shards().filter(|other| labels.names(count, *other)).collect();
                assert_eq!(named, [shard], "{count:?}");
            }
        }
    }

    #[test]
    fn foreign_and_malformed_shard_labels_are_ignored() {
        let (count, shard) = (ShardCount::default(), ShardId(7));
        for labels in [
            &[][..],
            &[("cronwheel.dev/shard-64", "7")],
            &[("cronwheel.dev/shard-256", "8")],
            &[("cronwheel.dev/shard-256", "07")],
            &[("cronwheel.dev/shard-256", "+7")],
            &[("cronwheel.dev/shard-256", "seven")],
            &[("cronwheel.dev/shard-0256", "7")],
            &[("cronwheel.dev/shard-255", "7")],
            &[("cronwheel.dev/shard-", "7")],
            &[("example.com/shard-256", "7")],
        ] {
            assert!(!read(labels).names(count, shard), "{labels:?}");
        }
        let of_both = read(&[("cronwheel.dev/shard-64", "1"), ("cronwheel.dev/shard-256", "7")]);
        assert!(of_both.names(count, shard));
    }
}
