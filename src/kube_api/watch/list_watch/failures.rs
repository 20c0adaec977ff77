//! Failures of lists and watches: their reports, and the step that follows after a pause.

use super::{ListWatch, WatchStep};
use crate::{
    kube_api::{
        objects::classify::error_text,
        retry::INTERRUPTED_DELAY_MAX,
        watch::{WatchItem, kinds::Kind},
    },
    shard::input::WatchStage,
};

impl<K: Kind> ListWatch<K> {
    /// Reports the failure of a request with this verb. The next step follows after a pause.
    ///
    /// A watch at a version that is too old (410) does not indicate an unhealthy server: a list follows soon. A list
    /// whose continue token is too old (410) begins again and can expire again, so it backs off.
    pub(super) fn fail(&mut self, verb: &'static str, error: &kube::Error, next: WatchStep<K::Content>) {
        let code = if let kube::Error::Api(status) = error {
            Some(status.code)
        } else {
            None
        };
        let is_too_old = code == Some(410);
        let is_of_list = matches!(next, WatchStep::Begin);
        match code {
            Some(410) if !is_of_list => self.retry.reset(),
            Some(410) => {}
            Some(403) => self.announce(WatchStage::NotPermitted),
            // A load balancer may answer in place of an API server that is away.
            _ => {
                self.is_interrupted = true;
                self.announce(WatchStage::Interrupted);
            }
        }
        // A list is expensive for a server that answers.
        let is_soon = self.is_interrupted && !is_of_list;
        if is_soon || code.is_none() {
            self.retry.fail_within(INTERRUPTED_DELAY_MAX);
        } else {
            self.retry.fail();
        }
        let message = error_text(error);
        self.ready.push_back(WatchItem::Error { verb, message, code });
        self.next_step = if is_too_old { WatchStep::Begin } else { next };
    }
}
