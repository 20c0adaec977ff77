//! The in-memory API server in this process, with a runner for its Jobs.

use std::{
    fmt::{self, Debug, Formatter},
    future::pending,
    net::{Ipv4Addr, SocketAddr},
};

use apisim::{Api, JobRunner, JobRunnerOptions, Options, Server, WallClock};
use jiff::Timestamp;
use serde_json::json;
use tokio::task::JoinHandle;

/// A server that runs until it is dropped.
pub(super) struct InMemory {
    address: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

impl InMemory {
    /// Starts a server on a free port of the loopback interface.
    pub(super) async fn start() -> anyhow::Result<InMemory> {
        let api = Api::new(Options::default(), WallClock::new(Timestamp::now));
        let service = api.client("kubectl").named_by_user_agent();
        let server = Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), service).await?;
        let address = server.address();
        let jobs = JobRunner::new(api, JobRunnerOptions::default());
        Ok(InMemory {
            address,
            tasks: [
                tokio::spawn(async move {
                    server.run(pending()).await;
                }),
                tokio::spawn(async move {
                    jobs.run().await;
                }),
            ],
        })
    }

    /// A JSON kubeconfig. The server does not authenticate clients.
    pub(super) fn kubeconfig(&self) -> String {
        let server = format!("http://{}", self.address);
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "in-memory", "cluster": {"server": server}}],
            "users": [{"name": "in-memory", "user": {}}],
            "contexts": [{"name": "in-memory", "context": {"cluster": "in-memory", "user": "in-memory"}}],
            "current-context": "in-memory",
        })
        .to_string()
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Debug for InMemory {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemory")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
