//! All objects of a cluster, to check what an uninstallation leaves behind.

use std::collections::BTreeSet;

use super::{
    cluster::{Cluster, wait_for},
    release::NAMESPACE,
};

/// Resources that change during a case: Events and the objects of tenants. `ComponentStatus` is not a stored object.
const EXCLUDED: [&str; 5] = [
    "events",
    "events.events.k8s.io",
    "cronjobs.batch",
    "jobs.batch",
    "componentstatuses",
];

/// Kind, namespace and name.
type Object = [String; 3];

impl Cluster {
    /// Every object of every resource, except [`EXCLUDED`] ones.
    pub(crate) fn objects(&self) -> BTreeSet<Object> {
        let resources = self.kubectl(&["api-resources", "--verbs=list", "--output=name"]);
        let resources: Vec<&str> = resources
            .lines()
            .filter(|resource| !EXCLUDED.contains(resource))
            .collect();
        let columns = "--output=custom-columns=KIND:kind,NAMESPACE:metadata.namespace,NAME:metadata.name";
        let text = self.kubectl(&["get", &resources.join(","), "--all-namespaces", "--no-headers", columns]);
        let object = |line: &str| {
            let mut columns = line.split_ascii_whitespace().map(str::to_owned);
            Some([columns.next()?, columns.next()?, columns.next()?])
        };
        text.lines().filter_map(object).collect()
    }

    /// Removes the release. Asserts that only the objects in its notes remain, and that the commands in the notes
    /// delete them.
    pub(crate) fn uninstall(&self, before: &BTreeSet<Object>) {
        let notes = self.helm(&["get", "notes", "cronwheel", "--namespace", NAMESPACE]);
        self.helm(&[
            "uninstall",
            "cronwheel",
            "--namespace",
            NAMESPACE,
            "--wait",
            "--timeout=2m",
        ]);
        self.wait_for_pods(0);
        let is_named = |[kind, namespace, name]: &Object| {
            namespace == NAMESPACE && kind == "Lease" || name == "cronwheel-built-in-leases"
        };
        wait_for("nothing is left but Leases and what helm keeps", || {
            let now = self.objects();
            let left: Vec<&Object> = now.difference(before).collect();
            eprintln!("left: {} objects", left.len());
            (!left.is_empty() && left.iter().all(|object| is_named(object))).then_some(())
        });
        let commands = notes.lines().filter_map(|line| line.trim().strip_prefix("kubectl "));
        let is_delete = |command: &&str| command.split(' ').any(|word| word == "delete");
        let commands: Vec<&str> = commands.filter(is_delete).collect();
        assert!(!commands.is_empty(), "{notes}");
        for command in commands {
            // The notes of the old chart also name an object that this program does not create.
            let arguments = command.split(' ').chain(["--ignore-not-found"]);
            self.kubectl(&arguments.collect::<Vec<_>>());
        }
        let now = self.objects();
        let left: Vec<&Object> = now.difference(before).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
