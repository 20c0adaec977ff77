//! Flags and addresses.

use clap::Parser as _;

use super::*;
use crate::cli::args::{Cli, Command};

fn parse(arguments: &[&str]) -> Result<UiArgs, String> {
    let line = ["cronwheel", "ui"].into_iter().chain(arguments.iter().copied());
    let command = Cli::try_parse_from(line).map_err(|error| error.to_string())?.command;
    if let Command::Ui(args) = command {
        Ok(args)
    } else {
        Err(format!("{command:?}"))
    }
}

#[test]
fn page_is_on_loopback_by_default() {
    let args = parse(&[]).unwrap();
    assert_eq!(args.listen.to_string(), "127.0.0.1:8090");
    assert_eq!((args.history, args.history_days), (None, 30));
    assert_eq!(
        parse(&["--listen", "9000"]).unwrap().listen.to_string(),
        "127.0.0.1:9000"
    );
    assert_eq!(
        parse(&["--listen", "[::]:9000"]).unwrap().listen.to_string(),
        "[::]:9000"
    );
}

#[test]
fn wrong_flags_are_refused() {
    for arguments in [
        ["--listen", "everywhere"],
        ["-n", "Team A"],
        ["--history-days", "0"],
        ["--default-time-zone", "Mars"],
    ] {
        let error = parse(&arguments).unwrap_err();
        assert!(error.contains(arguments[1]), "{error}");
    }
}

#[test]
fn namespaces_become_scopes() {
    let names = |names: &[&str]| scopes(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(names(&[]), [Scope::Cluster]);
    let expected = [Scope::Namespace("a".into()), Scope::Namespace("b".into())];
    assert_eq!(names(&["b", "a", "b"]), expected);
}

#[tokio::test]
async fn port_in_use_is_named_with_the_fix() {
    let taken = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let error = listen(taken.local_addr().unwrap()).await.unwrap_err().to_string();
    assert!(
        error.contains("another process has this port") && error.contains("--listen 8091"),
        "{error}"
    );
    let error = listen("192.0.2.1:8090".parse().unwrap()).await.unwrap_err().to_string();
    assert!(error.contains("an address of this machine"), "{error}");
}

#[test]
fn address_beyond_this_machine_exposes_the_page() {
    for (address, is_exposed) in [
        ("127.0.0.1:8090", false),
        ("127.5.0.1:8090", false),
        ("[::1]:8090", false),
        ("0.0.0.0:8090", true),
        ("[::]:8090", true),
        ("192.0.2.1:8090", true),
    ] {
        let note = exposure(address.parse().unwrap());
        assert_eq!(note.is_some(), is_exposed, "{address}");
        assert!(note.is_none_or(|note| note.contains("there is no login")), "{note:?}");
    }
}
