//! Sends Job requests.

mod fair_queue;
