//! `cronwheel ui` in one process with the in-memory API server.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use apisim::{Api, Options, WallClock};
use clap::Parser as _;
use cronwheel::{
    cli::{
        args::{Cli, Command},
        ui::{self, Cluster, UiArgs},
    },
    controller::clock::Clock,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::CronJob;
use kube::{Api as Objects, Client, api::PostParams};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Requests until the page shows something. Each is a real exchange, and the lists take a few milliseconds.
const N_REQUESTS_MAX: usize = 2_000;

/// Captures the printed text. Clones share one buffer.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    async fn address(&self) -> String {
        while !self.text().ends_with('\n') {
            tokio::task::yield_now().await;
        }
        self.text().trim_end().rsplit("http://").next().unwrap().to_owned()
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(&mut *self.0.lock().unwrap(), bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn args(arguments: &[&str]) -> UiArgs {
    let line = [&["cronwheel", "ui", "--history", "none"], arguments].concat();
    let command = Cli::parse_from(line).command;
    let Command::Ui(args) = command else {
        panic!("{command:?}");
    };
    args
}

fn api() -> Api {
    let now: Timestamp = "2026-11-27T10:00:30Z".parse().unwrap();
    Api::new(Options::default(), WallClock::starting_at(now))
}

fn cluster(api: &Api) -> Cluster {
    Cluster {
        client: Client::new(api.client("page"), "default"),
        name: "test-cluster".to_owned(),
        context: None,
        address: "https://test.example.com/".to_owned(),
        credentials: None,
    }
}

async fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

async fn create_cron_job(api: &Api, name: &str) {
    let cron_job = json!({"metadata": {"name": name}, "spec": {"schedule": "0 2 * * *", "jobTemplate": {"spec": {"template": {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }}}}});
    let cron_jobs: Objects<CronJob> = Objects::default_namespaced(Client::new(api.client("user"), "default"));
    let cron_job = serde_json::from_value(cron_job).unwrap();
    cron_jobs.create(&PostParams::default(), &cron_job).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn page_is_served_until_the_end() {
    let api = api();
    create_cron_job(&api, "nightly-backup").await;
    let (printed, notes) = (Printed::default(), Printed::default());
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let clock = Clock::system(SignedDuration::ZERO, SignedDuration::ZERO);
    let args = args(&["--listen", "0"]);
    let end_of = async { drop(ended.await) };
    let served = ui::run(&args, cluster(&api), clock, end_of, printed.clone(), notes.clone());
    let reader = async {
        let address = printed.address().await;
        let mut page = String::new();
        for _ in 0..N_REQUESTS_MAX {
            page = get(&address, "/").await;
            if page.contains("nightly-backup") {
                break;
            }
        }
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        assert!(
            page.contains("nightly-backup") && page.contains("test-cluster"),
            "{page}"
        );
        let detail = get(&address, "/cronjobs/default/nightly-backup").await;
        assert!(detail.starts_with("HTTP/1.1 200"), "{detail}");
        // Idle connections replace each other, and the page is still answered.
        let mut idle = Vec::new();
        for _ in 0..300 {
            idle.push(TcpStream::connect(&address).await.unwrap());
        }
        assert!(get(&address, "/healthz").await.starts_with("HTTP/1.1 200"));
        assert_eq!(idle[0].read(&mut [0]).await.unwrap(), 0, "the oldest is closed");
        end.send(()).unwrap();
        address
    };
    let (served, address) = tokio::join!(served, reader);
    served.unwrap();
    assert_eq!(notes.text(), "", "loopback exposes nothing");
    assert!(TcpStream::connect(address).await.is_err(), "the port is still open");
}
