//! A control plane with nodes and a Prometheus, to try the chart by hand: `make demo-cluster`.
//!
//! It prints commands for another terminal, and runs until Enter, Ctrl-C or the end of the input.

use std::{io, thread};

use tokio::{select, signal::ctrl_c, sync::oneshot};

use super::{
    cluster::{Cluster, is_wanted},
    prometheus::Prometheus,
};

/// Set to run the demo, which lasts until the user ends it.
const WANTED: &str = "CRONWHEEL_INSTALL_DEMO";
/// The name of the control plane.
const NAME: &str = "install-demo";
/// The root of the repository.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const README: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));

#[test]
fn the_chart_can_be_tried_until_the_user_ends_it() {
    if !is_wanted(WANTED) {
        return;
    }
    let cluster = Cluster::start_named(NAME);
    let prometheus = Prometheus::start(&cluster.testbed, cluster.nodes.processes());
    eprintln!("{}", usage(&cluster, &prometheus));
    wait_for_the_user();
    eprintln!("Stopping everything.");
}

/// The instructions for the user.
fn usage(cluster: &Cluster, prometheus: &Prometheus) -> String {
    let helm = testbed::find_or_build_helm().unwrap();
    let programs = [helm.as_path(), cluster.kubectl.program().as_path()];
    let [helm, kubectl] = programs.map(|program| program.parent().unwrap().display().to_string());
    let kubeconfig = cluster.testbed.kubeconfig().display().to_string();
    let folder = cluster.testbed.folder().display();
    let install = install_commands(&format!("{folder}/my-values.yaml"));
    let prometheus = prometheus.client().url();
    format!(
        "
A Kubernetes control plane with three nodes runs. For every image, the nodes run the cronwheel of this build.
In another terminal, as the same user:

  cd {ROOT}
  export KUBECONFIG={kubeconfig}
  export PATH={helm}:{kubectl}:$PATH
  {install}
  kubectl --namespace kube-system rollout status deployment/cronwheel
  kubectl label namespace default cronwheel.dev/managed=true
  kubectl apply -f examples/hello.yaml
  kubectl get cronjobs,jobs

After some minutes, draw the dashboards:

  make demo-pictures PROMETHEUS={prometheus}

Prometheus:            {prometheus}
Logs of the Pods:      {folder}/pods/*.log
Logs of Kubernetes:    {folder}/logs/*.log

Enter or Ctrl-C here stops and removes everything.
"
    )
}

/// The commands of the README that install the chart, indented for [`usage`].
///
/// They write the values into `values`, because `my-values.yaml` may be that of a real installation.
fn install_commands(values: &str) -> String {
    let (_, begin) = README.split_once("```\necho 'image: ").unwrap();
    let (commands, _) = begin.split_once("\n```").unwrap();
    format!("echo 'image: {commands}")
        .replace("my-values.yaml", values)
        .replace('\n', "\n  ")
}

/// Returns when the user presses Enter or Ctrl-C, or when the input ends.
fn wait_for_the_user() {
    let (entered, enter) = oneshot::channel();
    // After Ctrl-C, the thread waits for input until the process ends.
    thread::spawn(move || {
        let _ = io::stdin().read_line(&mut String::new());
        let _ = entered.send(());
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async {
        select! {
            _ = enter => {}
            interrupted = ctrl_c() => interrupted.unwrap(),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_is_installed_by_the_commands_of_the_readme() {
        let expected = [
            "echo 'image: {repository: REPOSITORY, tag: TAG}' > demo/my-values.yaml",
            "  helm install cronwheel deploy/helm/cronwheel --namespace kube-system -f demo/my-values.yaml",
        ];
        assert_eq!(install_commands("demo/my-values.yaml"), expected.join("\n"));
    }
}
