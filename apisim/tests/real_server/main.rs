//! What the pure functions over objects say and make, beside what a real kube-apiserver says and makes of the same.
//!
//! Each case is a request. It is sent to the server and played through the functions, and both answers must be equal,
//! once what only a server can know (uid, versions, times) is taken out.

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
    let testbed = Testbed::start(options).expect("a control plane");
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
