//! `cronwheel freeze` and `cronwheel thaw` against the in-memory API: the namespace that they leave, their output, and
//! their errors.

use apisim::{Api, Fault, Options, Resource, Rule, WallClock};
use clap::Parser as _;
use cronwheel::{
    cli::{
        args::{Cli, Command},
        freeze,
    },
    coordination::annotation,
    kube_api::{JsonApi, objects::classify::error_text},
};
use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use crate::leases::{TIMEOUT, every_server::done, held, leases, member};

const NOW: &str = "2026-12-26T22:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn api() -> Api {
    let mut options = Options::default();
    options.namespaces.push("shop".to_owned());
    Api::new(options, WallClock::starting_at(now()))
}

/// Runs a command. Returns its output, or its error.
async fn run(api: &Api, arguments: &[&str], now: Timestamp) -> Result<String, String> {
    Ok(run_with_notes(api, arguments, now).await?.0)
}

/// The same with the notes.
async fn run_with_notes(api: &Api, arguments: &[&str], now: Timestamp) -> Result<(String, String), String> {
    let command = Cli::try_parse_from([&["cronwheel"], arguments].concat());
    let command = command.map_err(|error| error.to_string())?.command;
    let json_api = JsonApi::new(Client::new(api.client("user"), "default"));
    let leases = freeze::Leases {
        client: crate::leases::client(api),
        namespaces: vec!["default".to_owned(), "kube-system".to_owned()],
    };
    let (mut output, mut notes) = (Vec::new(), Vec::new());
    let result = if let Command::Freeze(args) = &command {
        freeze::freeze(args, &json_api, &leases, now, &mut output, &mut notes).await
    } else if let Command::Thaw(args) = &command {
        freeze::thaw(args, &json_api, || now, &mut output).await
    } else {
        panic!("{command:?}")
    };
    result.map_err(|error| error_text(&error))?;
    Ok((String::from_utf8(output).unwrap(), String::from_utf8(notes).unwrap()))
}

/// Creates the Lease of a member with these settings.
async fn install(api: &Api, settings: &str) {
    let leases = leases(crate::leases::client(api), "kube-system");
    let mut join = held(member("a"), "pod-a/a/0000000000000001");
    join.annotations.insert(annotation::ACCEPTS, Some("now".into()));
    join.annotations.insert(annotation::SETTINGS, Some(settings.into()));
    done(leases.create(&join, now(), TIMEOUT).await);
}

async fn annotate(api: &Api, annotations: Value) {
    change(api, json!({"annotations": annotations})).await;
}

/// Changes the metadata of the namespace.
async fn change(api: &Api, metadata: Value) {
    let patch = json!({"metadata": metadata});
    let request = Request::patch("/api/v1/namespaces/shop")
        .header("content-type", "application/merge-patch+json")
        .body(patch.to_string().into_bytes())
        .unwrap();
    let client = Client::new(api.client("user"), "default");
    client.request::<Value>(request).await.unwrap();
}

async fn annotations(api: &Api) -> Value {
    let request = Request::get("/api/v1/namespaces/shop").body(Vec::new()).unwrap();
    let client = Client::new(api.client("user"), "default");
    let mut namespace: Value = client.request(request).await.unwrap();
    namespace["metadata"]["annotations"].take()
}

#[tokio::test(start_paused = true)]
async fn a_freeze_is_set_replaced_and_ended() {
    let api = api();
    annotate(&api, json!({"other": "stays"})).await;
    let arguments = [
        "freeze",
        "shop",
        "--until",
        "2026-12-27T06:00:00Z",
        "--reason",
        "year end",
    ];
    let text = run(&api, &arguments, now()).await.unwrap();
    assert_eq!(
        text,
        "namespace shop is frozen until Sun 2026-12-27 06:00 UTC, 8h from now: year end\n\
         To end the freeze earlier: cronwheel thaw shop\n"
    );
    let expected = json!({
        "cronwheel.dev/freeze-until": "2026-12-27T06:00:00Z",
        "cronwheel.dev/freeze-reason": "year end",
        "other": "stays",
    });
    assert_eq!(annotations(&api).await, expected);

    // The reason was that of the first freeze.
    let text = run(&api, &["freeze", "shop", "--until", "3d"], now()).await.unwrap();
    assert!(
        text.starts_with("namespace shop is frozen until Tue 2026-12-29 22:00 UTC, 3d from now\n"),
        "{text}"
    );
    let expected = json!({"cronwheel.dev/freeze-until": "2026-12-29T22:00:00Z", "other": "stays"});
    assert_eq!(annotations(&api).await, expected);

    let text = run(&api, &["thaw", "shop"], now()).await.unwrap();
    assert_eq!(
        text,
        "namespace shop is no longer frozen; the freeze would have ended at Tue 2026-12-29 22:00 UTC, 3d from now\n"
    );
    // What starts later knows the end from it.
    let expected = json!({"cronwheel.dev/freeze-until": NOW, "other": "stays"});
    assert_eq!(annotations(&api).await, expected);
    let text = run(&api, &["thaw", "shop"], now()).await.unwrap();
    let ended = "namespace shop is not frozen: its freeze ended at Sat 2026-12-26 22:00 UTC, 0s ago\n";
    assert_eq!(text, ended);
    assert_eq!(annotations(&api).await, expected);
    annotate(&api, json!({"cronwheel.dev/freeze-until": null})).await;
    let text = run(&api, &["thaw", "shop"], now()).await.unwrap();
    assert_eq!(text, "namespace shop is not frozen\n");
}

/// The built-in controller ignores a freeze, and so does cronwheel where it does not select the namespace by its labels.
#[tokio::test(start_paused = true)]
async fn a_freeze_that_nobody_follows_is_told() {
    let (freeze, selector) = (["freeze", "shop", "--until", "2h"], "cronwheel.dev/managed=true");
    let selected = format!("time-zone=UTC namespace-selector={selector} namespaces=*");
    for (settings, is_labelled, expected) in [
        (
            None,
            false,
            "whether cronwheel manages namespace shop is not known, and the built-in controller ignores the freeze; see \
             cronwheel check",
        ),
        (
            Some("time-zone=UTC namespace-selector=a > 1 namespaces=*"),
            false,
            "whether cronwheel manages namespace shop is not known, and the built-in controller ignores the freeze; see \
             cronwheel check",
        ),
        (
            Some("time-zone=UTC namespaces=*"),
            true,
            "the freeze has no effect, since the replicas do not select namespaces by label; give them --freeze-until, or \
             a --namespace-selector",
        ),
        (
            Some(&*selected),
            false,
            "cronwheel does not manage namespace shop, and the built-in controller ignores the freeze; to let cronwheel run \
             the CronJobs: kubectl label namespace shop cronwheel.dev/managed=true",
        ),
        (Some(&*selected), true, ""),
    ] {
        let api = api();
        if let Some(settings) = settings {
            install(&api, settings).await;
        }
        if is_labelled {
            change(&api, json!({"labels": {"cronwheel.dev/managed": "true"}})).await;
        }
        let (text, notes) = run_with_notes(&api, &freeze, now()).await.unwrap();
        assert!(text.starts_with("namespace shop is frozen until "), "{text}");
        let expected = if expected.is_empty() {
            String::new()
        } else {
            format!("cronwheel: note: {expected}\n")
        };
        assert_eq!(notes, expected, "{settings:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_annotation_that_holds_nothing_back_is_removed_unless_it_did() {
    for (until, expected, is_kept) in [
        (
            "2026-12-26T06:00:00Z",
            "namespace shop is not frozen: its freeze ended at Sat 2026-12-26 06:00 UTC, 16h ago\n",
            true,
        ),
        (
            "tomorrow",
            "namespace shop was not frozen: cronwheel.dev/freeze-until was \"tomorrow\", which is no instant; the \
             annotation is removed\n",
            false,
        ),
    ] {
        let api = api();
        annotate(&api, json!({"cronwheel.dev/freeze-until": until, "other": "stays"})).await;
        assert_eq!(run(&api, &["thaw", "shop"], now()).await.unwrap(), expected);
        let mut left = annotations(&api).await;
        let stays = left.as_object_mut().unwrap().remove("cronwheel.dev/freeze-until");
        assert_eq!((stays.is_some(), left), (is_kept, json!({"other": "stays"})));
    }
}

#[tokio::test(start_paused = true)]
async fn errors_name_the_namespace_and_the_remedy() {
    let api = api();
    for (arguments, expected) in [
        (
            &["freeze", "shops", "--until", "2h"][..],
            "cannot freeze namespace shops; check its name, and the cluster by --context: namespaces \"shops\" not found \
             (404)",
        ),
        (
            &["thaw", "shops"],
            "cannot thaw namespace shops; check its name, and the cluster by --context: namespaces \"shops\" not found \
             (404)",
        ),
        (
            &["freeze", "shop", "--until", "2026-12-26T21:00:00Z"],
            "--until: Sat 2026-12-26 21:00 UTC is not in the future",
        ),
    ] {
        assert_eq!(run(&api, arguments, now()).await.unwrap_err(), expected);
    }
    let refused = run(&api, &["freeze", "shop", "--until", "soon"], now())
        .await
        .unwrap_err();
    assert!(
        refused.contains("invalid value 'soon' for '--until <INSTANT|DURATION>'")
            && refused.contains("such as 2h or 3d"),
        "{refused}"
    );
    let refused = run(&api, &["freeze", "shop"], now()).await.unwrap_err();
    assert!(refused.contains("--until <INSTANT|DURATION>"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_the_missing_right() {
    for (fault, arguments, expected) in [
        (
            Fault::NotPermitted,
            &["freeze", "shop", "--until", "2h"][..],
            "cannot freeze namespace shop; the account needs patch on namespaces: ",
        ),
        (
            Fault::NotPermitted,
            &["thaw", "shop"],
            "cannot thaw namespace shop; the account needs get and patch on namespaces: ",
        ),
        (
            Fault::Forbid("no freezes on Fridays".to_owned()),
            &["freeze", "shop", "--until", "2h"],
            "cannot freeze namespace shop: ",
        ),
    ] {
        let api = api();
        let mut rule = Rule::new(fault);
        rule.resource = Some(Resource::Namespace);
        api.faults().add(rule);
        let error = run(&api, arguments, now()).await.unwrap_err();
        assert!(error.starts_with(expected), "{error}");
        assert!(error.contains("forbidden") || error.contains("Fridays"), "{error}");
    }
}
