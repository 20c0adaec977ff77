//! The time by the clock of the API server, which has set all times that the page compares with now.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, Request, Response, header};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use kube::{Client, client::Body};
use tower::service_fn;

use crate::{controller::clock::Clock, observe::words::duration_short, schedule::after};

/// A smaller difference of the two clocks is ignored: an answer tells whole seconds, and late is more than five of them.
const DIFFERENCE_MAX: SignedDuration = SignedDuration::from_secs(2);

/// The longest wait for the time of the API server.
const ASK_MAX: Duration = Duration::from_secs(5);

/// An answer tells the second that had begun.
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// The clock of this machine, corrected by that of the API server. Clones share it.
#[derive(Clone)]
pub(in crate::cli) struct ServerClock {
    clock: Clock,
    /// How far the API server's clock is ahead; zero if they hardly differ.
    lead: Arc<Mutex<SignedDuration>>,
}

impl ServerClock {
    /// The clock of this machine, until an answer of the API server tells of another.
    pub(in crate::cli) fn new(clock: Clock) -> ServerClock {
        ServerClock {
            clock,
            lead: Arc::default(),
        }
    }

    /// The present time.
    pub(in crate::cli) fn now(&self) -> Timestamp {
        after(self.clock.wall(), *self.lead())
    }

    /// What the reader must know of the clocks. `judge` is what judges by that of the API server.
    pub(in crate::cli) fn banner(&self, judge: &str) -> Option<String> {
        banner(*self.lead(), judge)
    }

    /// Asks the API server for its time. Without an answer, the clock of this machine counts until a list has one.
    pub(in crate::cli) async fn ask(&self, client: &Client) {
        // Everyone may ask for this, and an answer that refuses has the time too.
        let asked = client.list_api_group_resources("batch/v1");
        let _ = tokio::time::timeout(ASK_MAX, asked).await;
    }

    /// A client whose answers tell the time of the API server.
    pub(in crate::cli) fn listening(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let this = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let (client, this) = (client.clone(), this.clone());
            async move {
                let sent = this.clock.wall();
                let response: Response<Body> = client.send(request).await?;
                this.note(response.headers(), sent);
                Ok::<_, kube::Error>(response)
            }
        });
        Client::new(service, namespace)
    }

    fn note(&self, headers: &HeaderMap, sent: Timestamp) {
        let date = headers.get(header::DATE).and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| rfc2822::parse(date).ok());
        if let Some(date) = date {
            let received = self.clock.wall();
            let mut lead = self.lead();
            *lead = lead_after(*lead, date.timestamp(), (sent, received));
        }
    }

    fn lead(&self) -> MutexGuard<'_, SignedDuration> {
        self.lead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lead of the API server's clock after an answer of the second `date`, whose request was sent and whose answer was
/// received at these times of this machine. What was known stays if the answer does not contradict it.
fn lead_after(known: SignedDuration, date: Timestamp, (sent, received): (Timestamp, Timestamp)) -> SignedDuration {
    let least = date.duration_since(received);
    let most = date.duration_since(sent).saturating_add(SECOND);
    if least > most || (least..=most).contains(&known) {
        return known;
    }
    let hardly_differs = least <= DIFFERENCE_MAX && most >= -DIFFERENCE_MAX;
    if hardly_differs {
        return SignedDuration::ZERO;
    }
    least.saturating_add(most) / 2
}

fn banner(lead: SignedDuration, judge: &str) -> Option<String> {
    if lead.is_zero() {
        return None;
    }
    let direction = if lead.is_positive() { "behind" } else { "ahead of" };
    Some(format!(
        "The clock of this machine is {} {direction} that of the API server, by which {judge} judges.",
        duration_short(lead.abs())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `known`, and the lead after an answer of the second 100, in milliseconds.
    #[track_caller]
    fn check(known: i64, (sent, received): (i64, i64), expected: i64) {
        let at = |milliseconds| Timestamp::from_millisecond(milliseconds).unwrap();
        let known = SignedDuration::from_millis(known);
        let lead = lead_after(known, at(100_000), (at(sent), at(received)));
        assert_eq!(lead, SignedDuration::from_millis(expected));
    }

    #[test]
    fn an_answer_that_contradicts_changes_the_lead() {
        check(0, (100_200, 100_300), 0);
        // Two seconds may be the length of the second and of the request.
        check(0, (98_000, 98_100), 0);
        check(0, (60_000, 60_100), 40_450);
        check(40_450, (60_300, 60_400), 40_450);
        check(0, (160_000, 160_100), -59_550);
        // A slow answer tells little.
        check(0, (60_000, 101_000), 0);
        check(40_450, (100_200, 100_300), 0);
        // The clock was set back during the request.
        check(7, (160_000, 60_000), 7);
    }

    #[test]
    fn the_page_says_by_which_clock_it_judges() {
        assert_eq!(banner(SignedDuration::ZERO, "this page"), None);
        let sentence = |seconds| banner(SignedDuration::from_secs(seconds), "this page").unwrap();
        assert_eq!(
            sentence(40),
            "The clock of this machine is 40 s behind that of the API server, by which this page judges."
        );
        assert!(
            sentence(-90).contains(" ahead of that of the API server"),
            "{}",
            sentence(-90)
        );
    }
}
