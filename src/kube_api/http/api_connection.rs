//! Identifies the connection of an answer, so that API servers behind one address can be distinguished.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use jiff::Timestamp;

/// One connection to an API server. The transport puts it into the extensions of every response. Clones are one connection.
#[derive(Clone, Debug)]
pub struct ApiConnection {
    is_retired: Arc<AtomicBool>,
}

impl ApiConnection {
    /// Creates a connection, which differs from all others.
    #[expect(clippy::new_without_default, reason = "no two are equal")]
    pub fn new() -> ApiConnection {
        ApiConnection {
            is_retired: Arc::default(),
        }
    }

    /// Makes the transport replace the connection. Requests in flight on it are still answered.
    pub fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    /// Whether the transport is to replace the connection.
    pub fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Relaxed)
    }
}

impl PartialEq for ApiConnection {
    fn eq(&self, other: &ApiConnection) -> bool {
        Arc::ptr_eq(&self.is_retired, &other.is_retired)
    }
}

impl Eq for ApiConnection {}

/// The `Date` of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerDate {
    /// The server's clock, in whole seconds.
    pub at: Timestamp,
    /// The connection that the answer came over; `None` for clients without sockets.
    pub connection: Option<ApiConnection>,
}

impl From<Timestamp> for ServerDate {
    fn from(at: Timestamp) -> ServerDate {
        ServerDate { at, connection: None }
    }
}
