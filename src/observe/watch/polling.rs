//! One namespace, which is read again and again: a Role can permit `get` on it, but neither `list` nor `watch`.

use std::time::Duration;

use futures::{
    StreamExt, stream,
    stream::{BoxStream, unfold},
};
use kube::{Api, Client};

use super::{
    Object, Seen,
    namespace::NamespaceContent,
    signals::{Failure, Pauses, REFUSAL_PAUSE, Signal},
    slim::Slim,
};
use crate::kube_api::{latest_value::LatestReceiver, objects::classify::error_text};

/// The time between two reads. The object has the time of its last change, so a freeze is dated more exactly.
const INTERVAL: Duration = Duration::from_secs(15);

/// Reads a namespace as if it was listed. `relists` lets it read at once.
pub(super) fn namespace(client: Client, name: &str, relists: LatestReceiver<u64>) -> BoxStream<'static, Signal> {
    let api: Api<Slim<NamespaceContent>> = Api::all(client);
    let poll = (api, name.to_owned(), relists, Pauses::new(), Duration::ZERO);
    let signals = unfold(poll, |(api, name, mut relists, mut pauses, pause)| async move {
        tokio::select! {
            biased;
            () = relists.changed() => {
                relists.see();
            }
            () = tokio::time::sleep(pause) => {}
        }
        let (signals, pause) = match api.get_opt(&name).await {
            Ok(found) => (read(found), INTERVAL),
            Err(error) => {
                let failure = failure(&error);
                let pause = if failure.is_forbidden {
                    Some(REFUSAL_PAUSE)
                } else {
                    pauses.next()
                };
                (vec![Signal::Failed(failure)], pause.unwrap_or(INTERVAL))
            }
        };
        Some((stream::iter(signals), (api, name, relists, pauses, pause)))
    });
    signals.flatten().boxed()
}

fn read(found: Option<Slim<NamespaceContent>>) -> Vec<Signal> {
    let object = |NamespaceContent(facts)| Object::Namespace(Box::new(facts));
    let listed = found.map(|slim| Signal::Listed(Seen::of(slim, object)));
    let signals = [Signal::ListBegun].into_iter().chain(listed);
    signals.chain([Signal::ListDone]).collect()
}

fn failure(error: &kube::Error) -> Failure {
    let is_forbidden = matches!(error, kube::Error::Api(status) if status.code == 403);
    Failure {
        text: error_text(error),
        is_forbidden,
    }
}
