//! When a suspension or a freeze that held a slot back ended. The latest slot can start then (B-6.6).

use super::{era::Eras, freezes::Frozen, second::Second};
use crate::observe::slot::Ended;

/// The end of what held a slot back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Release {
    /// A controller can start the slot from then on.
    pub(super) at: Second,
    /// It was still held back then.
    pub(super) held: Second,
    pub(super) ended: Ended,
}

/// The release of a slot with this start, until `now`. `None` if nothing held it back, or if something still does.
pub(super) fn release<'a>(
    eras: &Eras,
    frozen_at: impl Fn(Second) -> Option<Frozen<'a>>,
    start: Second,
    now: Second,
) -> Option<Release> {
    let mut release: Option<Release> = None;
    loop {
        let at = release.map_or(start, |release| release.at);
        let end = if eras.is_suspended_at(at) {
            let end = eras.suspended_until(at)?;
            Release {
                at: end,
                held: end.plus(-1),
                ended: Ended::Suspension,
            }
        } else if let Some(Frozen::Yes(span)) = frozen_at(at) {
            Release {
                at: span.end(),
                held: span.held_until(),
                ended: Ended::Freeze,
            }
        } else {
            return release;
        };
        if end.at > now {
            return None;
        }
        release = Some(end);
    }
}
