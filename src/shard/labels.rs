//! The shard labels of a Job, by which watches select it.

use super::{ShardCount, ShardId};

/// Prefix of the key of the label that holds the number of a Job's shard. The number of shards follows.
pub const SHARD_LABEL_PREFIX: &str = "cronwheel.dev/shard-";

/// The number of possible shard counts.
const N_COUNTS: usize = (ShardCount::MAX.level() - ShardCount::MIN.level() + 1) as usize;

/// The shards named by a Job's labels, one per shard count: the installation may have had another count before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardLabels([Option<ShardId>; N_COUNTS]);

impl ShardLabels {
    /// The label of a single shard.
    pub fn of(count: ShardCount, shard: ShardId) -> ShardLabels {
        let mut labels = ShardLabels::default();
        labels.put(count, shard);
        labels
    }

    /// Records a label. Other keys, and values that name no shard, are ignored.
    pub fn note(&mut self, key: &str, value: &str) {
        let count = key.strip_prefix(SHARD_LABEL_PREFIX).and_then(number);
        let count = count.and_then(|count| ShardCount::new(count.into()).ok());
        if let (Some(count), Some(shard)) = (count, number(value).map(ShardId)) {
            self.put(count, shard);
        }
    }

    /// Whether a watch that selects the shard by its label delivers the Job.
    pub fn names(&self, count: ShardCount, shard: ShardId) -> bool {
        place(count).and_then(|place| *self.0.get(place)?) == Some(shard)
    }

    fn put(&mut self, count: ShardCount, shard: ShardId) {
        if let Some(named) = place(count).and_then(|place| self.0.get_mut(place)) {
            *named = Some(shard);
        }
    }
}

fn place(count: ShardCount) -> Option<usize> {
    let above = count.level().checked_sub(ShardCount::MIN.level())?;
    usize::try_from(above).ok()
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
