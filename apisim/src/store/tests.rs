//! Compares older states and changes of the store with a model.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::{clock::instant, random::Random};

fn object(name: &str, random: &mut Random) -> Value {
    json!({"metadata": {"name": name, "namespace": "n", "uid": Uid(random.uid()).text(), "labels": {"a": name}}})
}

/// The objects at a version of the store: the version of each by name.
type Model = BTreeMap<String, u64>;

fn versions_by_name(view: &View<'_>, after: Option<&Key>) -> Model {
    view.range("n/", after)
        .map(|object| (object.key.name().to_owned(), object.version))
        .collect()
}

#[test]
fn past_versions_are_readable_within_the_capacity_of_the_log() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let capacity = 30;
        let mut store = Store::new(capacity);
        let mut past: Vec<(u64, Model)> = vec![(store.version(), Model::new())];
        for _ in 0..100 {
            let name = format!("o-{}", random.below(6));
            let key = Key::new(Some("n"), &name);
            let mut model = past.last().unwrap().1.clone();
            if random.happens(300_000) {
                let was_there = store.remove(Resource::Job, &key, instant()).is_some();
                assert_eq!(was_there, model.remove(&name).is_some());
            } else {
                let stored = store.put(Resource::Job, key, object(&name, &mut random), instant());
                model.insert(name, stored.version);
            }
            if store.version() > past.last().unwrap().0 {
                past.push((store.version(), model));
            }
        }
        let after = Key::new(Some("n"), "o-2");
        for (at, (version, model)) in past.iter().enumerate() {
            let view = store.table(Resource::Job).view(*version);
            if past.len() - at > capacity + 1 {
                assert!(view.is_err(), "seed {seed}: {version} is too old");
                continue;
            }
            let view = view.unwrap_or_else(|_| panic!("seed {seed}: {version} is known"));
            assert_eq!(versions_by_name(&view, None), *model, "seed {seed}, version {version}");
            let changes = store.table(Resource::Job).changes_after(*version);
            let versions: Vec<_> = changes
                .into_iter()
                .flatten()
                .map(|change| change.object.version)
                .collect();
            let later: Vec<_> = past[at + 1..].iter().map(|(version, _)| *version).collect();
            assert_eq!(versions, later, "seed {seed}, version {version}");
            let rest: Model = model
                .iter()
                .filter(|(name, _)| name.as_str() > "o-2")
                .map(|(n, v)| (n.clone(), *v))
                .collect();
            assert_eq!(
                versions_by_name(&view, Some(&after)),
                rest,
                "seed {seed}, version {version}"
            );
        }
    }
}

#[test]
fn changes_are_ordered_and_carry_the_previous_version() {
    let mut random = Random::new(1);
    let mut store = Store::new(10);
    let key = Key::new(Some("n"), "a");
    let first = object("a", &mut random);
    store.put(Resource::Job, key.clone(), first.clone(), instant());
    store.put(Resource::CronJob, key.clone(), object("a", &mut random), instant());
    store.put(Resource::Job, key.clone(), first, instant());
    store.remove(Resource::Job, &key, instant());
    let changes: Vec<_> = store.table(Resource::Job).changes_after(1).unwrap().collect();
    let summary: Vec<_> = changes
        .iter()
        .map(|change| {
            (
                change.kind,
                change.object.version,
                change.previous.as_ref().map(|previous| previous.version),
            )
        })
        .collect();
    assert_eq!(
        summary,
        [
            (ChangeKind::Added, 2, None),
            (ChangeKind::Modified, 4, Some(2)),
            (ChangeKind::Deleted, 5, Some(4))
        ]
    );
    let last = changes[2].object.value();
    assert_eq!(last["metadata"]["resourceVersion"], "5");
    store.compact(4);
    assert_eq!(store.table(Resource::Job).changes_after(4).unwrap().count(), 1);
    assert!(store.table(Resource::Job).changes_after(3).is_err());
}

#[test]
fn dependents_are_found_by_the_uid_of_their_owner() {
    let mut random = Random::new(1);
    let mut store = Store::new(10);
    let owner = Uid(random.uid());
    let key = Key::new(Some("n"), "a");
    let mut child = object("a", &mut random);
    child["metadata"]["ownerReferences"] = json!([{"uid": owner.text(), "blockOwnerDeletion": true}]);
    store.put(Resource::Job, key.clone(), child.clone(), instant());
    assert_eq!(store.dependents(owner), [(Resource::Job, key.clone())]);
    let uid = Uid::parse(child["metadata"]["uid"].as_str().unwrap()).unwrap();
    assert_eq!(store.place(uid), Some(&(Resource::Job, key.clone())));
    child["metadata"]["ownerReferences"] = Value::Null;
    store.put(Resource::Job, key.clone(), child, instant());
    assert_eq!(store.dependents(owner), []);
    store.remove(Resource::Job, &key, instant());
    assert_eq!(store.place(uid), None);
    assert!(store.is_empty_namespace("n"));
}

#[test]
fn uid_round_trips_through_text() {
    let mut random = Random::new(3);
    let uid = Uid(random.uid());
    assert_eq!(Uid::parse(&uid.text()), Some(uid));
    assert_eq!(&uid.text()[14..15], "4");
    for text in [
        "",
        "uid-a",
        "0000000000000000000000000000000000000",
        "00000000-0000-0000-0000-00000000000g",
        "00000000-0000-0000-0000_000000000000",
    ] {
        assert_eq!(Uid::parse(text), None, "{text}");
    }
}

/// An object whose texts resemble its members.
fn misleading(random: &mut Random) -> Value {
    let texts = ["x", "\"resourceVersion\":\"2\"", "\"status\":{}", "ä\n", "}"];
    let text = texts[usize::try_from(random.below(5)).unwrap()];
    let mut object = json!({
        "kind": "Job",
        "metadata": {"annotations": {"a": text}, "name": "o", "uid": Uid(random.uid()).text(), "zone": text},
    });
    if random.happens(700_000) {
        object["spec"] = json!({"resourceVersion": "7", "status": text, "template": {"status": {}}});
    }
    if random.happens(700_000) {
        object["status"] = json!({"active": random.below(3), "message": text});
    }
    object
}

#[test]
fn partial_change_equals_a_rewrite_of_the_whole_object() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let key = Key::new(Some("n"), "o");
        let mut object = misleading(&mut random);
        let mut stored = Stored::new(key.clone(), 2, &mut object, None);
        for version in [3, 99, 100, 1_000] {
            let status = random.happens(500_000).then(|| json!({"succeeded": version}));
            stored = stored.changed(version, status.as_ref());
            object["metadata"]["resourceVersion"] = version.to_string().into();
            if let Some(status) = status {
                object["status"] = status;
            }
            assert_eq!(stored.json(), object.to_string(), "seed {seed}");
            let part = |name: &str| object.get(name).map(Value::to_string).unwrap_or_default();
            assert_eq!(stored.spec(), part("spec").as_bytes(), "seed {seed}");
            assert_eq!(stored.status(), part("status").as_bytes(), "seed {seed}");
        }
        let mut rest = stored.value_without_spec();
        assert!(rest.get("spec").is_none_or(Value::is_null), "seed {seed}");
        let whole = Stored::new(key, 1_000, &mut rest, Some(&stored.spec()));
        assert_eq!(whole.json(), stored.json(), "seed {seed}");
    }
}

#[test]
fn changes_are_found_by_time_and_version() {
    let mut random = Random::new(1);
    let begun = instant();
    for n in 0..40 {
        let mut store = Store::new(100);
        // Three changes share each second.
        let time = |number: u64| begun + std::time::Duration::from_secs(number / 3);
        for number in 0..n {
            let name = format!("o-{number}");
            let key = Key::new(Some("n"), &name);
            store.put(Resource::Job, key, object(&name, &mut random), time(number));
        }
        let table = store.table(Resource::Job);
        let all: Vec<_> = table.changes_after(0).unwrap().collect();
        for number in 0..n {
            let at = time(number);
            let later = all.iter().find(|change| change.at > at);
            let found = table.first_change_after(at);
            assert_eq!(
                found.map(|change| change.object.version),
                later.map(|change| change.object.version)
            );
            let version = all[usize::try_from(number).unwrap()].object.version;
            let n_after = table.changes_after(version).unwrap().count();
            assert_eq!(n_after as u64, n - number - 1);
        }
    }
}
