//! The reasons for which a replica takes no shards.

use crate::coordination::{Installation, MemberSettings, ProtocolRange};

/// The reason why this replica takes no shards.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotOwning {
    /// It has no member Lease yet, or has lost it.
    #[error("it is not a member yet")]
    NoMember,
    /// Its renewals fail, or its watch does not deliver them.
    #[error("it is fenced: its Lease was not renewed, or its watch of Leases delivers nothing")]
    Fenced,
    /// Its CronJobs and Jobs are not listed yet.
    #[error("its CronJobs and Jobs have not been listed yet")]
    NotSynced,
    /// It takes shards, but other members may not have observed that. A member that leaves now would choose another
    /// target.
    #[error("its Lease does not announce yet that it takes shards")]
    NotAnnounced,
    /// It is not willing to lead, for example because its clock is in doubt.
    #[error("it must not lead at present")]
    Unwilling,
    /// It drains.
    #[error("it is draining")]
    Draining,
    /// The installation's constants have not been read yet.
    #[error("the installation's ConfigMap cannot be read yet")]
    InstallationUnknown,
    /// The installation has other constants.
    #[error(
        "it was configured with {ours} (shard count/hash scheme), and the installation was made with {theirs}: configure \
         {theirs}; to change it scale to zero, change it everywhere, scale up"
    )]
    InstallationDiffers {
        /// The constants that it is configured with.
        ours: Installation,
        /// The constants of the installation.
        theirs: Installation,
    },
    /// It shares no protocol version with a member that takes shards.
    #[error(
        "it can follow protocol versions {ours}, and members follow {theirs}: roll out a version between them first"
    )]
    ProtocolDiffers {
        /// The versions that it supports.
        ours: ProtocolRange,
        /// The versions that a member that takes shards supports.
        theirs: ProtocolRange,
    },
    /// Members with another scope or default time zone take shards, or a replica runs alone. This replica takes over
    /// when the last of them has stopped.
    #[error(
        "it was configured with {ours}, and a member with {theirs} is active: it waits until the last such member stops; \
         give all replicas of an installation the same --namespace and --default-time-zone, and --alone to at most one"
    )]
    SettingsDiffer {
        /// The settings that it is configured with.
        ours: MemberSettings,
        /// The settings of a member that takes shards.
        theirs: MemberSettings,
    },
}

impl NotOwning {
    /// Whether its configuration or version differs from that of other members, which requires an operator.
    pub fn is_disagreement(&self) -> bool {
        matches!(
            self,
            NotOwning::InstallationDiffers { .. }
                | NotOwning::ProtocolDiffers { .. }
                | NotOwning::SettingsDiffer { .. }
        )
    }

    /// The name of the reason in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            NotOwning::NoMember => "no_member",
            NotOwning::Fenced => "fenced",
            NotOwning::NotSynced => "not_synced",
            NotOwning::NotAnnounced => "not_announced",
            NotOwning::Unwilling => "unwilling",
            NotOwning::Draining => "draining",
            NotOwning::InstallationUnknown => "installation_unknown",
            NotOwning::InstallationDiffers { .. } => "installation_differs",
            NotOwning::ProtocolDiffers { .. } => "protocol_differs",
            NotOwning::SettingsDiffer { .. } => "settings_differ",
        }
    }
}
