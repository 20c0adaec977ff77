//! A server's side of a write, for stores that tests simulate.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::LeaseWrite;
use crate::{coordination::LeaseRecord, shard::ResourceVersion};

impl LeaseWrite {
    /// The Lease that results when a server applies this write to `former`, or creates it.
    pub fn applied_to(&self, former: Option<&LeaseRecord>, version: ResourceVersion, wall: Timestamp) -> LeaseRecord {
        let mut record = former.cloned().unwrap_or_else(|| LeaseRecord {
            key: self.key.clone(),
            resource_version: version,
            holder: "".into(),
            duration_secs: 0,
            transitions: 0,
            renewed_at: None,
            acquired_at: None,
            annotations: BTreeMap::new(),
        });
        record.resource_version = version;
        if let Some(holder) = &self.holder {
            record.holder.clone_from(holder);
        }
        record.duration_secs = self.duration_secs.unwrap_or(record.duration_secs);
        record.transitions = self.term.map_or(record.transitions, |term| term.0);
        if self.is_renewal {
            record.renewed_at = Some(wall);
        }
        if self.is_acquisition {
            record.acquired_at = Some(wall);
        }
        for (name, text) in &self.annotations {
            match text {
                Some(text) => record.annotations.insert((*name).into(), text.clone()),
                None => record.annotations.remove(*name),
            };
        }
        record
    }
}
