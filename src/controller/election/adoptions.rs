//! The loading and logging of a shard, depending on how this replica became its leader.

use crate::{coordination::Adoption, shard::Entry};

/// Returns the data that this replica must observe before it leads the shard.
pub(super) fn entry(adoption: &Adoption) -> Entry {
    match adoption {
        Adoption::HandedOver {
            written_through: Some(written_through),
            ..
        } => Entry::Watch(*written_through),
        Adoption::First
        | Adoption::HandedOver { .. }
        | Adoption::Released { .. }
        | Adoption::Crashed { .. }
        | Adoption::Recreated => Entry::List,
    }
}

/// Returns the name of the adoption, for the log.
pub(super) fn name(adoption: &Adoption) -> &'static str {
    match adoption {
        Adoption::First => "first",
        Adoption::HandedOver { .. } => "handed over",
        Adoption::Released { .. } => "released",
        Adoption::Crashed { .. } => "crashed",
        Adoption::Recreated => "recreated",
    }
}
