//! Tests of the check of freezes.

use serde_json::{Value, json};

use super::{at, line};
use crate::cli::check::{freezes::Freezes, installation::Managed};

/// A namespace with these annotations.
fn namespace(name: &str, annotations: Value) -> Value {
    json!({"metadata": {"name": name, "annotations": annotations}})
}

fn frozen(name: &str, until: &str) -> Value {
    namespace(name, json!({"cronwheel.dev/freeze-until": until}))
}

/// The line of an installation that follows the freezes of `shop` alone.
fn found(managed: &Managed, namespaces: &[Value]) -> Option<String> {
    let freezes = Freezes::new(namespaces, |name| name == "shop", at("10:00:00"));
    freezes.finding(managed).as_ref().map(line)
}

fn selected() -> Managed {
    Managed::Selected("cronwheel.dev/managed=true".to_owned())
}

#[test]
fn freezes_are_named_with_their_end_and_their_reason() {
    let with_reason =
        json!({"cronwheel.dev/freeze-until": "2026-05-05T12:00:00Z", "cronwheel.dev/freeze-reason": "year end"});
    for (namespaces, expected) in [
        (vec![], None),
        (
            vec![
                namespace("shop", json!({"cronwheel.dev/spread": "1m"})),
                frozen("shop", "2026-05-05T10:00:00Z"),
                frozen("shop", "none"),
            ],
            None,
        ),
        (
            vec![namespace("shop", with_reason)],
            Some(
                "✓ freezes: nothing starts in 1 namespace: shop until Tue 2026-05-05 12:00 UTC, 2h from now: year end",
            ),
        ),
        (
            vec![
                frozen("shop", "9999-12-31T23:59:59Z"),
                frozen("other", "2026-05-05T12:00:00Z"),
            ],
            Some(
                "! freezes: nothing starts in 1 namespace: shop until Thu 9999-12-30 22:00 UTC; 1 namespace with a freeze \
                 which the built-in controller ignores until cronwheel manages the namespace: other until Tue 2026-05-05 \
                 12:00 UTC, 2h from now -> kubectl label namespace other cronwheel.dev/managed=true",
            ),
        ),
        (
            vec![frozen("shop", "tomorrow")],
            Some(
                "! freezes: 1 namespace whose cronwheel.dev/freeze-until is no instant: shop (\"tomorrow\") -> cronwheel \
                 freeze NAMESPACE --until INSTANT, or cronwheel thaw NAMESPACE",
            ),
        ),
    ] {
        assert_eq!(found(&selected(), &namespaces).as_deref(), expected);
    }
}

/// The annotations of a namespace count only where it is selected by its labels.
#[test]
fn a_freeze_has_no_effect_where_the_replicas_select_no_namespace_by_label() {
    for managed in [Managed::All, Managed::Named(["other".to_owned()].into())] {
        assert_eq!(
            found(&managed, &[frozen("other", "2026-05-05T12:00:00Z")]).as_deref(),
            Some(
                "! freezes: 1 namespace with a freeze which has no effect, since the replicas do not select namespaces by \
                 label: other until Tue 2026-05-05 12:00 UTC, 2h from now -> give the replicas --freeze-until, or a \
                 --namespace-selector"
            )
        );
    }
}
