//! A sweep removes only the control planes of dead owners.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command},
};

use super::*;
use crate::{
    binaries::Binaries,
    component::{Autoscaling, Component, JobLife},
    process::ProcessRecord,
};

/// A folder of control planes that is removed after the test.
struct TemporaryRoot(StateRoot);

impl TemporaryRoot {
    fn new(test: &str) -> TemporaryRoot {
        let folder = env::temp_dir().join(format!("testbed-test-{}-{test}", std::process::id()));
        TemporaryRoot(StateRoot::at(folder).unwrap())
    }

    /// A control plane whose programs are all `sleep`.
    fn claim(&self, name: &str, owner: Option<ProcessRecord>) -> Instance {
        let sleep = PathBuf::from("sleep");
        let binaries = Binaries {
            etcd: sleep.clone(),
            kube_apiserver: sleep.clone(),
            kube_controller_manager: sleep.clone(),
            kubectl: sleep.clone(),
            kwok: sleep,
            kube_scheduler: None,
        };
        let manifest = |ports| Manifest {
            owner,
            ports,
            jobs: JobLife::Kwok,
            workloads: false,
            autoscaling: Autoscaling::Off,
            audit: false,
            server_defaults: false,
            binaries,
        };
        self.0.claim(name, manifest).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        self.0.folders().unwrap().iter().map(name).collect()
    }
}

impl Drop for TemporaryRoot {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0.folder).unwrap();
    }
}

fn record_of_ended_process() -> ProcessRecord {
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let record = ProcessRecord::of(child.id()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    record
}

fn sleeper(instance: &Instance, component: Component) -> Child {
    instance.spawn(component, &["600".to_owned()]).unwrap()
}

#[test]
fn sweep_removes_only_instances_of_dead_owners() {
    let root = TemporaryRoot::new("sweep");
    let abandoned = root.claim("abandoned", Some(record_of_ended_process()));
    let owned = root.claim("owned", Some(ProcessRecord::of_this_process().unwrap()));
    let detached = root.claim("detached", None);
    let mut children = [&abandoned, &owned, &detached].map(|instance| sleeper(instance, Component::Etcd));
    fs::create_dir(root.0.folder.join("half-removed")).unwrap();

    assert_eq!(root.0.sweep().unwrap(), ["abandoned"]);

    assert!(!abandoned.is_running(Component::Etcd));
    assert!(owned.is_running(Component::Etcd) && detached.is_running(Component::Etcd));
    assert_eq!(root.names(), ["detached", "owned"]);
    root.0.remove(&owned).unwrap();
    root.0.remove(&detached).unwrap();
    assert!(!owned.is_running(Component::Etcd) && !detached.is_running(Component::Etcd));
    for child in &mut children {
        child.wait().unwrap();
    }
}

#[test]
fn names_and_ports_of_instances_are_unique() {
    let root = TemporaryRoot::new("claim");
    let first = root.claim("first", None);
    let second = root.claim("second", None);
    assert!(
        first
            .ports()
            .all()
            .iter()
            .all(|port| !second.ports().all().contains(port))
    );
    let third = root.0.claim("first", |_| panic!("made for a name that is taken"));
    assert!(matches!(third, Err(StateRootError::Exists { name }) if name == "first"));
}

#[test]
fn component_runs_once_and_can_be_restarted() {
    let root = TemporaryRoot::new("spawn");
    let instance = root.claim("one", None);
    let mut first = sleeper(&instance, Component::Kwok);
    let again = instance.spawn(Component::Kwok, &["600".to_owned()]);
    assert!(matches!(
        again,
        Err(InstanceError::Running {
            component: Component::Kwok
        })
    ));
    assert_eq!(instance.pid(Component::Kwok), Some(first.id()));
    instance.stop(Component::Kwok).unwrap();
    instance.stop(Component::Kwok).unwrap();
    first.wait().unwrap();
    let mut second = sleeper(&instance, Component::Kwok);
    instance.stop_all().unwrap();
    second.wait().unwrap();
}

#[test]
fn control_plane_is_found_by_its_name() {
    let root = TemporaryRoot::new("find");
    let claimed = root.claim("one", None);
    let found = root.0.find("one").unwrap().unwrap();
    assert_eq!((found.name(), found.ports()), ("one".to_owned(), claimed.ports()));
    assert!(root.0.find("other").unwrap().is_none());
}

#[test]
fn symlink_in_place_of_the_folder_is_refused() {
    let root = TemporaryRoot::new("link");
    let link = root.0.folder.join("link");
    std::os::unix::fs::symlink(Path::new("/"), &link).unwrap();
    assert!(matches!(StateRoot::at(link), Err(StateRootError::Foreign { .. })));
}

#[test]
fn sweep_kills_attached_processes_of_a_dead_owner() {
    let root = TemporaryRoot::new("attached");
    let abandoned = root.claim("abandoned", Some(record_of_ended_process()));
    let mut attached = Command::new("sleep").arg("600").spawn().unwrap();
    abandoned.attach("container", attached.id()).unwrap();
    root.0.sweep().unwrap();
    assert!(!attached.wait().unwrap().success());
}
