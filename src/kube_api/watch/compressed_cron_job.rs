//! CronJobs as compressed text.
//!
//! The CronJobs of a cluster resemble each other, so the text of the first ones is the dictionary of all others.

use std::{fmt, sync::Arc};

use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};

use crate::{
    kube_api::objects::decode::{Decoder, ReceivedCronJob, UndecodableCronJob},
    shard::{CronJobRecord, ResourceVersion},
};

/// Size of the dictionary in bytes: a few CronJobs. A longer one takes longer to read for each CronJob.
const DICTIONARY_BYTES_MAX: usize = 8 << 10;

/// The text that CronJobs are expected to have in common. Each cached CronJob has a reference, so a reference is small.
#[derive(Clone, Default)]
pub(super) struct Dictionary(Arc<Vec<u8>>);

impl Dictionary {
    /// Returns the dictionary for CronJobs after this one, or `None` if the dictionary is complete.
    pub(super) fn extended(&self, object: &ReceivedCronJob) -> Option<Dictionary> {
        let room = DICTIONARY_BYTES_MAX - self.0.len();
        let text = object.text().as_bytes();
        let added = text.get(..room).unwrap_or(text);
        (!added.is_empty()).then(|| Dictionary(Arc::new([&self.0, added].concat())))
    }
}

/// Without the text, which can contain values of tenants.
impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dictionary").field(&self.0.len()).finish()
    }
}

/// A CronJob as compressed text.
#[derive(Clone, Debug)]
pub struct CompressedCronJob {
    version: ResourceVersion,
    compressed: Arc<[u8]>,
    dictionary: Dictionary,
}

impl CompressedCronJob {
    pub(super) fn new(object: &ReceivedCronJob, dictionary: &Dictionary) -> CompressedCronJob {
        CompressedCronJob {
            version: version(object),
            compressed: compress_prepend_size_with_dict(object.text().as_bytes(), &dictionary.0).into(),
            dictionary: dictionary.clone(),
        }
    }

    pub(super) fn version(&self) -> ResourceVersion {
        self.version
    }

    /// Returns the size of the compressed text in bytes.
    pub(super) fn compressed_len(&self) -> usize {
        self.compressed.len()
    }

    /// Decodes the CronJob. `None` is not reached: every text was compressed with this dictionary.
    pub fn decode(&self, decoder: &Decoder) -> Option<Result<CronJobRecord, UndecodableCronJob>> {
        Some(decoder.cron_job(&self.text()?))
    }

    fn text(&self) -> Option<String> {
        let text = decompress_size_prepended_with_dict(&self.compressed, &self.dictionary.0).ok()?;
        String::from_utf8(text).ok()
    }
}

/// Returns the version of a received CronJob; zero if it has none.
pub(super) fn version(object: &ReceivedCronJob) -> ResourceVersion {
    object.resource_version().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cron_job(number: usize) -> ReceivedCronJob {
        let uid = format!("uid-{number}");
        let labels = json!({ "app": format!("app-{number}"), "team": "reports" });
        let metadata =
            json!({ "name": uid, "namespace": "default", "uid": uid, "resourceVersion": "7", "labels": labels });
        let container = json!({ "name": "work", "image": "busybox", "args": ["sh", "-c", format!("report {number}")] });
        let template =
            json!({ "spec": { "template": { "spec": { "containers": [container], "restartPolicy": "Never" } } } });
        let spec = json!({ "schedule": "* * * * *", "jobTemplate": template });
        serde_json::from_str(&json!({ "metadata": metadata, "spec": spec }).to_string()).unwrap()
    }

    #[test]
    fn a_compressed_cron_job_round_trips_with_any_dictionary() {
        let mut dictionary = Dictionary::default();
        for number in 0..100 {
            let object = cron_job(number);
            let compressed = CompressedCronJob::new(&object, &dictionary);
            assert_eq!(compressed.text().as_deref(), Some(object.text()));
            if let Some(extended) = dictionary.extended(&object) {
                dictionary = extended;
            }
        }
        assert_eq!(dictionary.0.len(), DICTIONARY_BYTES_MAX);
    }

    #[test]
    fn similar_cron_jobs_compress_to_less_than_a_quarter() {
        let dictionary = Dictionary::default().extended(&cron_job(1)).unwrap();
        let object = cron_job(2_000);
        let compressed = CompressedCronJob::new(&object, &dictionary);
        let (before, after) = (object.text().len(), compressed.compressed_len());
        assert!(after * 4 < before, "{after} of {before}");
    }
}
