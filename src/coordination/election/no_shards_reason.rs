//! The reasons for which a replica takes no shards, among them disagreement with other members.

use super::{Election, membership::MembershipState};
use crate::{
    coordination::{MemberLease, MemberSettings},
    shard::BootInstant,
};

/// The reason why this replica takes no shards.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoShardsReason {
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
    /// next leader.
    #[error("its Lease does not announce yet that it takes shards")]
    NotAnnounced,
    /// Its clock is in doubt.
    #[error("it must not lead at present")]
    ClockInDoubt,
    /// It drains.
    #[error("it is draining")]
    Draining,
    /// A member that takes shards has another protocol version.
    #[error(
        "it has protocol version {ours}, and members that take shards have {theirs}: to change it scale to zero, change \
         the image everywhere, scale up"
    )]
    ProtocolDiffers {
        /// Its version.
        ours: u16,
        /// The version of a member that takes shards.
        theirs: u16,
    },
    /// Members with another scope, namespace selector or default time zone take shards. This replica takes over when the
    /// last of them has stopped.
    #[error(
        "it was configured with {ours}, and a member with {theirs} is active: it waits until the last such member stops; \
         give all replicas of an installation the same {}",
        .ours.differing_flags(.theirs)
    )]
    SettingsDiffer {
        /// The settings that it is configured with.
        ours: MemberSettings,
        /// The settings of a member that takes shards.
        theirs: MemberSettings,
    },
}

impl NoShardsReason {
    /// Whether its configuration or version differs from that of other members, which requires an operator.
    pub fn is_disagreement(&self) -> bool {
        matches!(
            self,
            NoShardsReason::ProtocolDiffers { .. } | NoShardsReason::SettingsDiffer { .. }
        )
    }

    /// The name of the reason in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            NoShardsReason::NoMember => "no_member",
            NoShardsReason::Fenced => "fenced",
            NoShardsReason::NotSynced => "not_synced",
            NoShardsReason::NotAnnounced => "not_announced",
            NoShardsReason::ClockInDoubt => "unwilling",
            NoShardsReason::Draining => "draining",
            NoShardsReason::ProtocolDiffers { .. } => "protocol_differs",
            NoShardsReason::SettingsDiffer { .. } => "settings_differ",
        }
    }
}

impl Election {
    /// The reason why this replica takes no shards; `None` if it does.
    pub(super) fn no_shards_reason(&self, now: BootInstant) -> Option<NoShardsReason> {
        if let Some(disagreement) = self.disagreement() {
            return Some(disagreement);
        }
        if self.is_draining() {
            Some(NoShardsReason::Draining)
        } else if !self.is_clock_trusted {
            Some(NoShardsReason::ClockInDoubt)
        } else if !matches!(self.membership, MembershipState::Member(_)) {
            Some(NoShardsReason::NoMember)
        } else if !self.may_act(now) {
            Some(NoShardsReason::Fenced)
        } else if !self.is_synced {
            Some(NoShardsReason::NotSynced)
        } else if let Some(differ) = self.settings_differ() {
            Some(differ)
        } else if !self.is_taking_announced() {
            Some(NoShardsReason::NotAnnounced)
        } else {
            None
        }
    }

    /// Whether this replica's own watch has delivered the announcement that this replica takes shards. Then the
    /// watches of other members have delivered it too, or soon will.
    fn is_taking_announced(&self) -> bool {
        self.own_lease().is_some_and(MemberLease::takes_shards)
    }

    /// The disagreement of this replica with the members that take shards.
    pub(super) fn disagreement(&self) -> Option<NoShardsReason> {
        let ours = self.config.protocol;
        let others = self.takers().filter(|(pod_uid, _)| !self.is_us(pod_uid));
        let theirs = others.map(|(_, lease)| lease.protocol).find(|theirs| *theirs != ours)?;
        // Members that take shards continue, and a new member with another version waits. Of two members that joined
        // at once, the one with the newer version waits.
        (!self.is_taking_announced() || theirs < ours).then_some(NoShardsReason::ProtocolDiffers { ours, theirs })
    }

    /// The settings of other members that take shards and have different settings. A member whose version publishes
    /// none counts as agreeing.
    fn other_settings(&self) -> impl Iterator<Item = &MemberSettings> {
        let ours = &self.config.settings;
        self.other_members().filter_map(move |(_, lease)| {
            let theirs = lease.settings.as_ref()?;
            let is_active = lease.holder.member().is_some() && lease.takes_shards();
            (theirs != ours && is_active).then_some(theirs)
        })
    }

    /// The reason why this replica's settings prevent it from taking shards, if they do. A member that already takes
    /// shards continues, and a new member with other settings waits. Of two members that start at once, the member
    /// whose Lease was written first continues.
    pub(super) fn settings_differ(&self) -> Option<NoShardsReason> {
        if self.is_draining() || self.is_established() {
            return None;
        }
        let theirs = self.other_settings().min_by_key(ToString::to_string)?;
        Some(NoShardsReason::SettingsDiffer {
            ours: self.config.settings.clone(),
            theirs: theirs.clone(),
        })
    }

    /// Whether the view contains an active replica that must not be active together with this replica.
    pub(super) fn sees_another_active(&self) -> bool {
        self.other_settings().next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::Scope;

    #[test]
    fn the_flags_that_differ_are_named() {
        let shop = [Scope::Namespace("shop".into())];
        let all = MemberSettings::of(&[Scope::Cluster], "UTC");
        let selecting = |zone| MemberSettings::selecting("cronwheel.dev/managed=true", zone);
        for (ours, theirs, flags) in [
            (all.clone(), selecting("UTC"), "--namespace-selector"),
            (
                MemberSettings::selecting("team=a", "UTC"),
                selecting("UTC"),
                "--namespace-selector",
            ),
            (MemberSettings::of(&shop, "UTC"), all.clone(), "--namespace"),
            (
                MemberSettings::of(&[Scope::Cluster], "Zulu"),
                all.clone(),
                "--default-time-zone",
            ),
            (
                selecting("Zulu"),
                all.clone(),
                "--namespace-selector and --default-time-zone",
            ),
            (
                MemberSettings::of(&shop, "Zulu"),
                selecting("UTC"),
                "--namespace, --namespace-selector and --default-time-zone",
            ),
            (
                all.clone(),
                MemberSettings::read("of another version"),
                "--namespace, --namespace-selector and --default-time-zone",
            ),
        ] {
            let reason = NoShardsReason::SettingsDiffer { ours, theirs }.to_string();
            let expected = format!("; give all replicas of an installation the same {flags}");
            assert!(reason.ends_with(&expected), "{reason}");
        }
    }
}
