//! Every reason for which a replica takes no shards.

use crate::coordination::{Installation, MemberSettings, ProtocolRange};

/// Why this replica takes no shards.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotOwning {
    /// It has no Lease of its own yet, or not any more.
    #[error("it is no member yet")]
    NoMember,
    /// Its renewals do not get through.
    #[error("its Lease could not be renewed, or its watch on Leases shows nothing new: fenced")]
    Fenced,
    /// It cannot decide anything yet.
    #[error("its CronJobs and Jobs are not listed yet")]
    NotSynced,
    /// It takes shards, and others may not have seen it say so: those who leave now would give theirs to somebody else.
    #[error("its Lease does not show yet that it takes shards")]
    NotAnnounced,
    /// It has reasons of its own.
    #[error("it may not lead for now")]
    Unwilling,
    /// It goes.
    #[error("it drains")]
    Draining,
    /// The installation's constants have not been read.
    #[error("what the installation was made with is not known yet")]
    InstallationUnknown,
    /// The installation was made with other constants.
    #[error(
        "it was configured with {ours} (shard count/hash scheme), and the installation was made with {theirs}: configure \
         {theirs}; to change it scale to zero, change it everywhere, scale up"
    )]
    InstallationDiffers {
        /// What it was configured with.
        ours: Installation,
        /// What the installation says.
        theirs: Installation,
    },
    /// No version of the protocol is common to all.
    #[error(
        "it can follow protocol versions {ours}, and members follow {theirs}: roll out a version between them first"
    )]
    ProtocolDiffers {
        /// What it can follow.
        ours: ProtocolRange,
        /// What a member that takes shards can follow.
        theirs: ProtocolRange,
    },
    /// Members with another scope or default time zone take shards, or a replica runs alone. It takes over when the last of
    /// them has stopped.
    #[error(
        "it was configured with {ours}, and a member with {theirs} is active: it waits until the last such member stops; \
         give all replicas of an installation the same --namespace and --default-time-zone, and --alone to at most one"
    )]
    SettingsDiffer {
        /// What it was configured with.
        ours: MemberSettings,
        /// The settings of a member that takes shards.
        theirs: MemberSettings,
    },
}

impl NotOwning {
    /// Whether its configuration or version differs from that of others, which an operator must know.
    pub fn is_disagreement(&self) -> bool {
        matches!(
            self,
            NotOwning::InstallationDiffers { .. }
                | NotOwning::ProtocolDiffers { .. }
                | NotOwning::SettingsDiffer { .. }
        )
    }

    /// Its name, for metrics.
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
