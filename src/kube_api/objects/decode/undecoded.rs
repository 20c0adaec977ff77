//! A CronJob that is not decoded yet. Other replicas lead most CronJobs that a replica receives; those cost only the
//! decoding of the uid.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, de::MapAccess};
use serde_json::value::RawValue;

use super::{
    SlimContent, SlimCronJob,
    cron_job::CronJobContent,
    fields::{Field, Name, Value, ignore, object},
    metadata::Head,
};
use crate::shard::Uid;

/// The text of a CronJob and its uid.
#[derive(Clone, Debug)]
pub struct UndecodedCronJobContent {
    uid: Option<Uid>,
    text: Arc<str>,
}

impl UndecodedCronJobContent {
    pub(super) fn uid(&self) -> Option<&Uid> {
        self.uid.as_ref()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Decodes the CronJob; `None` for invalid JSON, which was already refused when the text was received.
    pub(super) fn decode(&self) -> Option<SlimCronJob> {
        serde_json::from_str(&self.text).ok()
    }
}

impl SlimContent for UndecodedCronJobContent {
    const KIND: &'static str = CronJobContent::KIND;
    const PLURAL: &'static str = CronJobContent::PLURAL;

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(UndecodedCronJobContent, Option<String>), D::Error> {
        let text: &'de RawValue = Deserialize::deserialize(deserializer)?;
        let object: Field<Object<'de>> = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        let head = object.if_read().unwrap_or_default().head.if_read().unwrap_or_default();
        let content = UndecodedCronJobContent {
            uid: head.uid().ok(),
            text: text.get().into(),
        };
        Ok((content, head.resource_version_text()))
    }
}

object! {
    struct Object<'a> {
        "metadata" => head: Field<Head<'a>>,
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        kube_api::objects::decode::{Decoder, SlimCronJob, UndecodedCronJob},
        schedule::Zone,
        shard::Uid,
    };

    #[test]
    fn an_undecoded_cron_job_has_its_uid_and_decodes_later() {
        let decoder = Decoder {
            default_zone: Zone::utc(),
            shard_count: None,
            ..Decoder::default()
        };
        for (text, uid) in [
            (
                r#"{"metadata":{"name":"a","namespace":"b","uid":"u-1","resourceVersion":"7","creationTimestamp":
                "2026-01-02T03:04:05Z"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{}}},"other":[1,{}]}"#,
                Some("u-1"),
            ),
            (
                r#"{"spec":{"schedule":3},"metadata":{"uid":"u-2","resourceVersion":"8"}}"#,
                Some("u-2"),
            ),
            (r#"{"metadata":{"uid":7}}"#, None),
            (r#"{"metadata":null}"#, None),
            ("{}", None),
            ("[]", None),
        ] {
            let undecoded: UndecodedCronJob = serde_json::from_str(text).unwrap();
            assert_eq!(undecoded.uid(), uid.map(Uid::new).as_ref(), "{text}");
            let slim: SlimCronJob = serde_json::from_str(text).unwrap();
            let version = |meta: &kube::core::ObjectMeta| meta.resource_version.clone();
            assert_eq!(
                version(kube::Resource::meta(&undecoded)),
                version(kube::Resource::meta(&slim)),
                "{text}"
            );
            let [later, at_once] = [undecoded.decode().unwrap(), slim].map(|slim| decoder.cron_job(&slim));
            assert_eq!(format!("{later:?}"), format!("{at_once:?}"), "{text}");
        }
    }
}
