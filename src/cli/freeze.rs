//! The `freeze` and `thaw` commands: the annotations of a namespace in which nothing starts before an instant.

use std::{io::Write, path::PathBuf};

use clap::Args;
use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use serde_json::{Value, json};

use super::{
    args::values::{duration, parse_installation, parse_namespace},
    check::installation::Managed,
    error::CommandError,
    shards::{self, Listing},
};
use crate::{
    coordination::InstallationName,
    explain::calendar::{duration_text, local_text},
    kube_api::{JsonApi, JsonError, NamespaceSelector, objects::classify::is_not_permitted},
    schedule::{
        Zone,
        options::{Freeze, NamespaceOptions, OptionName, freeze_end},
    },
    telemetry::logging::escaped,
};

/// Lets nothing start in a namespace before an instant.
#[derive(Args, Debug)]
pub struct FreezeArgs {
    /// The namespace.
    #[command(flatten)]
    pub target: Target,
    /// End of the freeze: an instant in RFC 3339, e.g. 2026-12-27T06:00:00Z, or a duration from now, e.g. 2h or 3d
    #[arg(long, value_name = "INSTANT|DURATION", value_parser = parse_until, allow_hyphen_values = true)]
    until: Until,
    /// Why nothing may start, for the readers of the namespace
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Namespace of the Leases, which say whether cronwheel manages the namespace. Default: that of the context or of the
    /// service account, otherwise kube-system
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", value_parser = parse_namespace)]
    pub lease_namespace: Option<String>,
    /// Name of the installation, as given to its replicas
    #[arg(long, value_name = "NAME", value_parser = parse_installation, default_value_t)]
    installation: InstallationName,
}

/// Where the Leases of the installation are.
pub struct Leases {
    /// The client for Leases.
    pub client: kube::Client,
    /// The namespaces to search for Leases; the first one with Leases counts.
    pub namespaces: Vec<String>,
}

/// Ends the freeze of a namespace.
#[derive(Args, Debug)]
pub struct ThawArgs {
    /// The namespace.
    #[command(flatten)]
    pub target: Target,
}

/// The namespace, and the cluster that it is in.
#[derive(Args, Debug)]
pub struct Target {
    /// The namespace
    #[arg(value_parser = parse_namespace)]
    namespace: String,
    /// Kubeconfig file. Default: the service account in a Pod, otherwise KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: the current context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl Target {
    fn path(&self) -> String {
        // The name is a DNS label.
        format!("/api/v1/namespaces/{}", self.namespace)
    }
}

/// The end of a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    At(Timestamp),
    After(SignedDuration),
}

fn parse_until(text: &str) -> Result<Until, String> {
    if let Some(instant) = freeze_end(text) {
        return Ok(Until::At(instant));
    }
    let remedy = "write an instant with its offset from UTC, such as 2026-12-27T06:00:00Z, or a duration from now, such \
                  as 2h or 3d";
    duration(text).map(Until::After).ok_or_else(|| remedy.to_owned())
}

impl Until {
    /// The instant. A duration ends at a whole second.
    fn instant(self, now: Timestamp) -> Result<Timestamp, CommandError> {
        let whole_second = TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Ceil);
        let instant = match self {
            Until::At(instant) => Ok(instant),
            Until::After(duration) => now.checked_add(duration).and_then(|end| end.round(whole_second)),
        };
        let instant =
            instant.map_err(|error| CommandError::caused("--until: the end of the freeze is too late", error))?;
        if instant <= now {
            return Err(format!("--until: {} is not in the future", local_text(instant, &Zone::utc())).into());
        }
        Ok(instant)
    }
}

/// Freezes the namespace and prints until when. `now` is the time of the start. If cronwheel does not follow the freeze, or
/// that is not known, a note says so.
///
/// # Errors
///
/// [`CommandError`] if the end is in the past, or if the API server refuses the change.
pub async fn freeze(
    args: &FreezeArgs,
    api: &JsonApi,
    leases: &Leases,
    now: Timestamp,
    mut output: impl Write,
    mut notes: impl Write,
) -> Result<(), CommandError> {
    let until = args.until.instant(now)?;
    let reason = args
        .reason
        .as_deref()
        .map(str::trim)
        .filter(|reason| !reason.is_empty());
    let namespace = &args.target.namespace;
    // The reason of an earlier freeze goes with it.
    let annotations =
        json!({OptionName::FreezeUntil.annotation(): until.to_string(), Freeze::REASON_ANNOTATION: reason});
    let object = annotate(&args.target, api, "freeze", &annotations).await?;
    let end = end_text(until, now);
    let reason = reason.map_or_else(String::new, |reason| format!(": {}", escaped(reason)));
    write!(
        output,
        "namespace {namespace} is frozen until {end}{reason}\nTo end the freeze earlier: cronwheel thaw {namespace}\n"
    )
    .and_then(|()| output.flush())
    .map_err(CommandError::Write)?;
    let searched = shards::search(&leases.client, &args.installation, &leases.namespaces).await;
    let known = searched.ok().flatten();
    let managed = known.and_then(|(_, known)| Managed::of(&Listing::of(&known)));
    if let Some(note) = ignored_text(namespace, &object, managed.as_ref()) {
        // Standard error may be closed.
        let _ = writeln!(notes, "cronwheel: note: {note}");
    }
    Ok(())
}

/// Why nobody may follow the freeze of a namespace, and what mends it. `managed` are the namespaces of the installation, if
/// they are known.
fn ignored_text(namespace: &str, object: &Value, managed: Option<&Managed>) -> Option<String> {
    let not_known = || {
        format!(
            "whether cronwheel manages namespace {namespace} is not known, and the built-in controller ignores the freeze; \
             see cronwheel check"
        )
    };
    let selector = match managed {
        None => return Some(not_known()),
        Some(Managed::All | Managed::Named(_)) => {
            return Some(
                "the freeze has no effect, since the replicas do not select namespaces by label; give them --freeze-until, \
                 or a --namespace-selector"
                    .to_owned(),
            );
        }
        // Settings that are truncated, or those of a later version, do not parse.
        Some(Managed::Selected(selector)) => match selector.parse::<NamespaceSelector>() {
            Ok(selector) => selector,
            Err(_) => return Some(not_known()),
        },
    };
    let labels = &object["metadata"]["labels"];
    let is_selected = selector.selects(|label| labels.get(label)?.as_str());
    (!is_selected).then(|| {
        format!(
            "cronwheel does not manage namespace {namespace}, and the built-in controller ignores the freeze; to let \
             cronwheel run the CronJobs: {}",
            selector.label_command_for(namespace)
        )
    })
}

/// Ends the freeze of the namespace and prints what it was. The annotation keeps the end, which tells later replicas and
/// commands what the freeze held back.
///
/// # Errors
///
/// [`CommandError`] if the namespace cannot be read or changed. A namespace without a freeze is no error.
pub async fn thaw(
    args: &ThawArgs,
    api: &JsonApi,
    now: impl FnOnce() -> Timestamp,
    mut output: impl Write,
) -> Result<(), CommandError> {
    let namespace = &args.target.namespace;
    let read = api.get(&args.target.path()).await;
    let answer = read.map_err(|error| failed("thaw", namespace, error))?;
    let annotations = &answer.body["metadata"]["annotations"];
    let get = |name: &str| annotations.get(name).and_then(Value::as_str);
    let until = get(OptionName::FreezeUntil.annotation()).filter(|until| until.trim() != "none");
    let now = now();
    // By the clock of the API server, since another may be ahead.
    let end = answer.date.unwrap_or(now);
    let freeze = NamespaceOptions::read(get).and_then(|options| options.freeze);
    let until_now = match (until, &freeze) {
        (None, _) => None,
        (Some(_), None) => Some(Value::Null),
        (Some(_), Some(freeze)) => freeze.holds_at(end).then(|| end.to_string().into()),
    };
    if let Some(until_now) = until_now {
        let annotations = json!({OptionName::FreezeUntil.annotation(): until_now});
        annotate(&args.target, api, "thaw", &annotations).await?;
    }
    let text = match until {
        None => format!("namespace {namespace} is not frozen"),
        Some(until) => thawed_text(namespace, until, freeze.as_ref(), now),
    };
    writeln!(output, "{text}")
        .and_then(|()| output.flush())
        .map_err(CommandError::Write)
}

/// The freeze of a namespace that has not ended yet, and a text about it. `None` also if the namespace cannot be read.
pub(super) async fn present_freeze(api: &JsonApi, namespace: &str, now: Timestamp) -> Option<String> {
    let read = api.get(&format!("/api/v1/namespaces/{namespace}")).await;
    frozen_text(namespace, &read.ok()?.body, now)
}

fn frozen_text(namespace: &str, object: &Value, now: Timestamp) -> Option<String> {
    let annotations = &object["metadata"]["annotations"];
    let options = NamespaceOptions::read(|name| annotations.get(name).and_then(Value::as_str));
    let freeze = options?.freeze.filter(|freeze| now < freeze.until)?;
    Some(format!("namespace {namespace} is frozen {}", until_text(&freeze, now)))
}

/// The end and the reason of a freeze: `until Sun 2026-12-27 06:00 UTC, 8h from now: year end`.
pub(super) fn until_text(freeze: &Freeze, now: Timestamp) -> String {
    let (end, reason) = (end_text(freeze.until, now), reason_text(&freeze.reason));
    format!("until {end}{reason}")
}

fn reason_text(reason: &str) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!(": {}", escaped(reason))
    }
}

/// What the end of this freeze means. Its annotation may be in the past, or may never have been a freeze.
fn thawed_text(namespace: &str, until: &str, freeze: Option<&Freeze>, now: Timestamp) -> String {
    let annotation = OptionName::FreezeUntil.annotation();
    let Some(Freeze { until, reason }) = freeze else {
        let until = escaped(until);
        return format!(
            "namespace {namespace} was not frozen: {annotation} was {until:?}, which is no instant; the annotation is \
             removed"
        );
    };
    let end = end_text(*until, now);
    if *until <= now {
        return format!("namespace {namespace} is not frozen: its freeze ended at {end}");
    }
    let reason = reason_text(reason);
    format!("namespace {namespace} is no longer frozen; the freeze would have ended at {end}{reason}")
}

/// An instant in UTC, and how far from now it is, unless that is beyond all plans.
fn end_text(end: Timestamp, now: Timestamp) -> String {
    const FAR: SignedDuration = SignedDuration::from_hours(100 * 366 * 24);
    let distance = end.duration_since(now);
    if distance > FAR {
        return local_text(end, &Zone::utc());
    }
    let distance_text = duration_text(distance.as_secs().unsigned_abs());
    let direction = if distance.is_positive() { "from now" } else { "ago" };
    format!("{}, {distance_text} {direction}", local_text(end, &Zone::utc()))
}

/// Patches the annotations of the namespace: a null removes one. Returns the namespace.
async fn annotate(target: &Target, api: &JsonApi, verb: &str, annotations: &Value) -> Result<Value, CommandError> {
    let patch = json!({"metadata": {"annotations": annotations}});
    let patched = api.merge_patch(&target.path(), &patch).await;
    patched
        .map(|answer| answer.body)
        .map_err(|error| failed(verb, &target.namespace, error))
}

fn failed(verb: &str, namespace: &str, error: JsonError) -> CommandError {
    let remedy = match &error {
        JsonError::Refused { code: 404, .. } => "; check its name, and the cluster by --context",
        JsonError::Refused { code, message } if is_not_permitted(*code, message) && verb == "thaw" => {
            "; the account needs get and patch on namespaces"
        }
        JsonError::Refused { code, message } if is_not_permitted(*code, message) => {
            "; the account needs patch on namespaces"
        }
        JsonError::Refused { .. } | JsonError::Unanswered(_) | JsonError::Unreadable(_) => "",
    };
    CommandError::caused(format!("cannot {verb} namespace {namespace}{remedy}"), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_end_is_an_instant_or_a_duration_from_now() {
        let now = at("2026-05-05T10:00:00.2Z");
        for (text, end) in [
            ("2026-12-27T06:00:00Z", "2026-12-27T06:00:00Z"),
            ("2026-12-27T06:00:00+01:00", "2026-12-27T05:00:00Z"),
            ("9999-12-31T23:59:59Z", "9999-12-30T22:00:00Z"),
            ("2h", "2026-05-05T12:00:01Z"),
            ("3d", "2026-05-08T10:00:01Z"),
            ("1d 12h", "2026-05-06T22:00:01Z"),
            ("1w", "2026-05-12T10:00:01Z"),
        ] {
            let until = parse_until(text).unwrap().instant(now).unwrap();
            assert_eq!(until, at(end), "{text}");
        }
    }

    #[test]
    fn a_namespace_is_frozen_until_the_instant_of_its_annotation() {
        let object = json!({"metadata": {"annotations": {
            "cronwheel.dev/freeze-until": "2026-05-05T12:00:00Z", "cronwheel.dev/freeze-reason": "migration"}}});
        let text = frozen_text("shop", &object, at("2026-05-05T11:00:00Z")).unwrap();
        assert!(
            text.starts_with("namespace shop is frozen until ") && text.ends_with(": migration"),
            "{text}"
        );
        assert_eq!(frozen_text("shop", &object, at("2026-05-05T12:00:00Z")), None);
        let forever = json!({"metadata": {"annotations": {"cronwheel.dev/freeze-until": "9999-12-31T23:59:59Z"}}});
        assert_eq!(
            frozen_text("shop", &forever, at("2026-05-05T12:00:00Z")).as_deref(),
            Some("namespace shop is frozen until Thu 9999-12-30 22:00 UTC")
        );
        assert_eq!(
            frozen_text("shop", &json!({"metadata": {}}), at("2026-05-05T11:00:00Z")),
            None
        );
    }

    #[test]
    fn other_texts_are_refused_with_the_form() {
        for text in ["", "tomorrow", "2", "1mo", "1y", "2026-12-27", "2026-12-27T06:00:00"] {
            let refused = parse_until(text).unwrap_err();
            assert!(refused.contains("such as 2026-12-27T06:00:00Z"), "{text}: {refused}");
        }
    }

    #[test]
    fn an_end_that_is_not_in_the_future_is_refused() {
        let now = at("2026-05-05T10:00:00Z");
        for (text, expected) in [
            (
                "2026-05-05T10:00:00Z",
                "--until: Tue 2026-05-05 10:00 UTC is not in the future",
            ),
            (
                "2026-05-05T11:59:00+02:00",
                "--until: Tue 2026-05-05 09:59 UTC is not in the future",
            ),
            ("-2h", "--until: Tue 2026-05-05 08:00 UTC is not in the future"),
            ("0s", "--until: Tue 2026-05-05 10:00 UTC is not in the future"),
            ("999999w", "--until: the end of the freeze is too late"),
        ] {
            let error = parse_until(text).unwrap().instant(now).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text}");
        }
    }
}
