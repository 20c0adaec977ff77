//! Compares the pure functions over objects with a real kube-apiserver.
//!
//! Each case is a request. The server and the functions process it, and both responses must be equal, except for uids,
//! versions and times.

#![allow(clippy::unwrap_used, reason = "tests")]

mod discovery;
mod objects;
mod patches;
mod protobuf;
mod requests;
mod tables;

use testbed::{JobLife, Options, Testbed};

use requests::Server;

#[test]
fn responses_match_a_real_api_server() {
    let options = Options {
        jobs: JobLife::None,
        ..Options::default()
    };
    let testbed = Testbed::start(options).expect("the control plane starts");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let findings = runtime.block_on(async {
        let server = Server::connect(&testbed.kubeconfig()).await;
        let mut findings = Vec::new();
        objects::compare(&server, &mut findings).await;
        patches::compare(&server, &mut findings).await;
        protobuf::compare(&server, &mut findings).await;
        discovery::compare(&server, &mut findings).await;
        tables::compare(&server, &mut findings).await;
        findings
    });
    testbed.stop().expect("everything stops");
    assert!(
        findings.is_empty(),
        "{} findings\n{}",
        findings.len(),
        findings.join("\n\n")
    );
}
