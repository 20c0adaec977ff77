//! Failures of lists and watches: their reports, and the step that follows after a pause.

use super::{ListWatch, WatchStep};
use crate::{
    kube_api::{
        objects::classify::error_text,
        retry::UNREACHABLE_DELAY_MAX,
        watch::{WatchItem, kinds::Kind},
    },
    shard::{ShardSet, input::WatchStage},
};

impl<K: Kind> ListWatch<K> {
    /// Reports a failure. The next step follows after a pause.
    ///
    /// A watch at a version that is too old (410) does not indicate an unhealthy server: a list follows soon. A list
    /// whose continue token is too old (410) is begun again, and may meet that every time.
    pub(super) fn fail(&mut self, error: &kube::Error, next: WatchStep<K::Content>) {
        let code = if let kube::Error::Api(status) = error {
            Some(status.code)
        } else {
            None
        };
        if code == Some(403) {
            self.announce(WatchStage::NotPermitted, ShardSet::EMPTY);
        }
        let is_too_old = code == Some(410);
        if is_too_old && !matches!(next, WatchStep::Begin) {
            self.retry.reset();
        }
        if code.is_none() {
            self.retry.fail_within(UNREACHABLE_DELAY_MAX);
            self.announce(WatchStage::Interrupted, ShardSet::EMPTY);
        } else {
            self.retry.fail();
        }
        let message = error_text(error);
        self.ready.push_back(WatchItem::Error { message, code });
        self.next_step = if is_too_old { WatchStep::Begin } else { next };
    }
}
