//! All replicas are killed and restarted after several slots have passed. Only the latest of these is started.

use jiff::SignedDuration;

use super::group::Group;
use crate::kubernetes::Namespace;

pub(super) async fn only_the_latest_slot_starts_after_minutes_without_replicas(namespace: Namespace) {
    let mut group = Group::start(namespace, 3, 1).await;
    // The statuses of the first slot are written by this time.
    group.sleep_until(0, 8).await;
    for number in 0..3 {
        group.kill(number);
    }
    // Sets the clocks forward, as if five minutes had passed.
    group.advance_to(6, SignedDuration::from_secs(15));
    let begun = group.now();
    for number in 0..3 {
        group.restart(number);
    }
    group.assert_all_led_within(begun, 12).await;
    group.finish_with(&[0, 5, 6]).await;
}
