//! Watches: send the changes of a kind that are visible at the front end, as lines of JSON.
//!
//! A watch holds a version and reads the log from there, so a slow client needs no memory. A watch that falls behind
//! the log is ended, and its client gets 410 when it resumes. Invariant: no change is skipped and none is sent twice.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::{
    ApiBody, ApiService, ConnectionLost, ParsedRequest,
    form::{self, Form},
    reply::Reply,
};
use crate::{
    Resource,
    api::Api,
    clock::instant,
    failure::Failure,
    faults::RequestAttributes,
    json::to_json,
    objects::table::IncludeObject,
    store::{Change, ChangeKind, Selector, Stored, Table},
    verb::Verb,
};

/// The maximum number of changes read from the log at a time.
const BATCH_MAX: usize = 256;

/// The time from the last bookmark of a watch to its end.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// The minimum timeout of a watch that sets none. The maximum is twice that.
const LIFE_MIN: Duration = Duration::from_mins(30);

/// The maximum timeout that a client may set: longer than any process, and still a valid instant.
const LIFE_SECONDS_MAX: u64 = 10 * 365 * 24 * 60 * 60;

struct Watch {
    api: Api,
    client: Arc<str>,
    front_end: usize,
    resource: Resource,
    /// The watched namespace. `None` means all.
    namespace: Option<String>,
    prefix: String,
    selector: Selector,
    form: Form,
    /// Whether the columns were sent. Only the first event of a table contains them.
    columns_sent: bool,
    changed: Arc<Notify>,
    /// Everything up to this version was sent or skipped.
    cursor: u64,
    pending: VecDeque<Bytes>,
    /// Whether the watch ends after the pending lines.
    is_ended: bool,
    /// When a watch with a slow-watch fault may send the next line.
    next_line_at: Instant,
    deadline: Instant,
    next_bookmark: Option<Instant>,
}

/// The next action of a watch.
enum Step {
    Line(Bytes),
    Wait(Instant),
    End,
}

impl ApiService {
    pub(super) async fn watch(&self, request: &ParsedRequest) -> Result<Reply, Failure> {
        let (target, _) = request.call.target()?;
        let query = &request.query;
        let version = query.version()?;
        if query.sends_initial_events && (query.resource_version_match != "NotOlderThan" || !query.allows_bookmarks) {
            return Err(Failure::new(
                http::StatusCode::UNPROCESSABLE_ENTITY,
                "Invalid",
                "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is required \
                 as NotOlderThan, and allowWatchBookmarks with it, when sendInitialEvents is set",
            ));
        }
        let now = instant();
        // Separate statements, because each holds the lock to its end.
        let life = self.life(query.timeout_seconds);
        let changed = self.api.shared.state().registry.store.changed(target.resource);
        let mut watch = Watch {
            api: self.api.clone(),
            client: Arc::clone(&request.client),
            front_end: request.front_end,
            resource: target.resource,
            namespace: target.namespace.map(ToOwned::to_owned),
            prefix: Table::prefix(target.namespace),
            selector: request.query.selector(target.resource)?,
            form: request.form,
            columns_sent: false,
            changed,
            cursor: version.unwrap_or_default(),
            pending: VecDeque::new(),
            is_ended: self.api.shared.faults.closes_watch(&request.attributes(), now),
            next_line_at: now,
            deadline: now + life,
            next_bookmark: None,
        };
        let sends_existing = query.sends_initial_events || matches!(version, None | Some(0));
        if sends_existing {
            let latest = self.api.shared.state().registry.store.version();
            let at_least = version.unwrap_or(latest);
            let visible = self.visible_version(request, target.resource, at_least).await?;
            watch.send_existing(visible, query.sends_initial_events);
        } else {
            watch.refuse_expired_version();
        }
        if query.allows_bookmarks {
            watch.schedule_bookmark(now);
        }
        let lines = futures::stream::unfold(watch, |mut watch| async move {
            let next = watch.next().await?;
            Some((next, watch))
        });
        Ok(Reply::Watch(ApiBody::watch(lines)))
    }

    fn life(&self, timeout_seconds: Option<u64>) -> Duration {
        match timeout_seconds {
            Some(seconds) if seconds > 0 => Duration::from_secs(seconds.min(LIFE_SECONDS_MAX)),
            _ => self.api.shared.state().random.between(LIFE_MIN, 2 * LIFE_MIN),
        }
    }
}

impl Watch {
    /// Queues every existing object as an `ADDED` event, followed by a bookmark if the client requests it.
    fn send_existing(&mut self, version: u64, adds_bookmark: bool) {
        let api = self.api.clone();
        let state = api.shared.state();
        let Ok(view) = state.registry.store.table(self.resource).view(version) else {
            // The version is visible at the front end, so the log covers it.
            self.is_ended = true;
            return;
        };
        let objects: Vec<Bytes> = view
            .range(&self.prefix, None)
            .filter(|object| self.selector.matches(object))
            .map(|object| object.json())
            .collect();
        for object in objects {
            let line = self.line("ADDED", object);
            self.pending.push_back(line);
        }
        self.cursor = version;
        if adds_bookmark {
            let bookmark = self.bookmark(&json!({"k8s.io/initial-events-end": "true"}));
            self.pending.push_back(bookmark);
        }
    }

    /// Reports a version that the log no longer covers as an `ERROR` event, as in the API server.
    fn refuse_expired_version(&mut self) {
        let state = self.api.shared.state();
        let compacted = state
            .registry
            .store
            .table(self.resource)
            .changes_after(self.cursor)
            .err();
        drop(state);
        if let Some(compacted) = compacted {
            let failure = Failure::expired(format!(
                "too old resource version: {} ({})",
                self.cursor, compacted.oldest
            ));
            let line = event("ERROR", &to_json(&failure.status()));
            self.pending.push_back(line);
            self.is_ended = true;
        }
    }

    /// Waits for the next line. Returns `None` at the end, and an error if a fault breaks the connection.
    async fn next(&mut self) -> Option<Result<Bytes, ConnectionLost>> {
        loop {
            let shared = Arc::clone(&self.api.shared);
            let changed = Arc::clone(&self.changed);
            let mut is_changed = std::pin::pin!(changed.notified());
            let mut rules_changed = std::pin::pin!(shared.faults.changed.notified());
            is_changed.as_mut().enable();
            rules_changed.as_mut().enable();
            let now = instant();
            let fault_state = shared.faults.watch_state(&self.attributes(), now);
            if fault_state.is_broken {
                return Some(Err(ConnectionLost));
            }
            let mut wake = fault_state.next_change;
            if !fault_state.is_stalled {
                match self.step(now, fault_state.pause) {
                    Step::Line(line) => return Some(Ok(line)),
                    Step::End => return None,
                    Step::Wait(until) => wake = Some(wake.map_or(until, |wake| wake.min(until))),
                }
            }
            let wakes = async {
                match wake {
                    Some(wake) => sleep_until(wake).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = is_changed => {}
                () = rules_changed => {}
                () = wakes => {}
            }
        }
    }

    /// Returns the next action at this time.
    fn step(&mut self, now: Instant, pause: Duration) -> Step {
        let mut wake = self.deadline;
        if self.pending.is_empty() && !self.is_ended {
            wake = self.read_changes().map_or(wake, |next_visible| next_visible.min(wake));
        }
        if !self.pending.is_empty() && self.next_line_at > now {
            return Step::Wait(self.next_line_at);
        }
        if let Some(line) = self.pending.pop_front() {
            self.next_line_at = now + pause;
            if self.api.shared.faults.closes_watch(&self.attributes(), now) {
                self.pending.clear();
                self.is_ended = true;
            }
            return Step::Line(line);
        }
        if self.is_ended || now >= self.deadline {
            return Step::End;
        }
        match self.next_bookmark {
            Some(at) if at <= now => {
                self.schedule_bookmark(now);
                Step::Line(self.bookmark(&json!(null)))
            }
            Some(at) => Step::Wait(wake.min(at)),
            None => Step::Wait(wake),
        }
    }

    fn attributes(&self) -> RequestAttributes<'_> {
        RequestAttributes {
            client: &self.client,
            front_end: self.front_end,
            verb: Verb::Watch,
            resource: Some(self.resource),
            namespace: self.namespace.as_deref(),
            name: "",
        }
    }

    /// Reads the visible changes beyond the cursor. Returns when the next change becomes visible.
    fn read_changes(&mut self) -> Option<Instant> {
        let api = self.api.clone();
        let mut state = api.shared.state();
        let progress = state.progress(self.front_end, self.resource);
        let Ok(changes) = state.registry.store.table(self.resource).changes_after(self.cursor) else {
            self.is_ended = true;
            return None;
        };
        let mut n_read = 0;
        for change in changes.take_while(|change| change.object.version <= progress.version) {
            self.cursor = change.object.version;
            if let Some((kind, object)) = self.event_for(change) {
                let line = self.line(kind, object);
                self.pending.push_back(line);
                n_read += 1;
            }
            if n_read == BATCH_MAX {
                return None;
            }
        }
        self.cursor = self.cursor.max(progress.version);
        progress.next_at
    }

    /// Returns the event for the change, as a client with this selector receives it.
    fn event_for(&self, change: &Change) -> Option<(&'static str, Bytes)> {
        let object = &change.object;
        if !object.key.as_str().starts_with(&self.prefix) {
            return None;
        }
        let is_seen = |object: &Arc<Stored>| self.selector.matches(object);
        let was_seen = change.previous.as_ref().is_some_and(is_seen);
        let is_seen = change.kind != ChangeKind::Deleted && is_seen(object);
        match (was_seen, is_seen, &change.previous) {
            (false, true, _) => Some(("ADDED", object.json())),
            (true, true, _) => Some(("MODIFIED", object.json())),
            (true, false, _) if change.kind == ChangeKind::Deleted => Some(("DELETED", object.json())),
            (true, false, Some(previous)) => {
                // The object left the selection: the event has its previous state and the version of the change.
                let mut last = previous.value();
                last["metadata"]["resourceVersion"] = object.version.to_string().into();
                Some(("DELETED", to_json(&last)))
            }
            (false, false, _) | (true, false, None) => None,
        }
    }

    /// Returns the event for an object, in the format that the client requests.
    fn line(&mut self, kind: &str, object: Bytes) -> Bytes {
        let Form::Table(include) = self.form else {
            let now = self.api.shared.clock.now();
            return event(kind, &self.form.object(self.resource, object, now));
        };
        let object = serde_json::from_slice(&object).unwrap_or_default();
        self.row(kind, &object, include)
    }

    /// Returns one row, with the columns if it is the first.
    fn row(&mut self, kind: &str, object: &Value, include: IncludeObject) -> Bytes {
        let mut table = form::row(self.resource, object, include, self.api.shared.clock.now());
        if self.columns_sent {
            table["columnDefinitions"].take();
        }
        self.columns_sent = true;
        event(kind, &to_json(&table))
    }

    fn bookmark(&mut self, annotations: &Value) -> Bytes {
        let mut metadata = json!({"resourceVersion": self.cursor.to_string(), "creationTimestamp": null});
        if !annotations.is_null() {
            metadata["annotations"] = annotations.clone();
        }
        let (kind, version) = match self.form {
            Form::Whole => (self.resource.kind(), self.resource.api_version()),
            Form::Partial | Form::Table(_) => ("PartialObjectMetadata", "meta.k8s.io/v1"),
        };
        let object = json!({"kind": kind, "apiVersion": version, "metadata": metadata});
        match self.form {
            Form::Whole | Form::Partial => event("BOOKMARK", &to_json(&object)),
            // The object of the row has only metadata, regardless of `includeObject`.
            Form::Table(_) => self.row("BOOKMARK", &object, IncludeObject::Metadata),
        }
    }

    /// Schedules the next bookmark: after one interval, or shortly before the end if that is earlier and in the future.
    fn schedule_bookmark(&mut self, now: Instant) {
        let next = now + self.api.shared.bookmark_interval;
        let last = self.deadline.checked_sub(LAST_BOOKMARK).filter(|last| *last > now);
        self.next_bookmark = Some(last.map_or(next, |last| next.min(last)));
    }
}

fn event(kind: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + 40);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(kind.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line.into()
}
