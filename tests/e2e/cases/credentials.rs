//! Identity and permissions that are withdrawn and restored while the controller runs.

use std::{
    fs,
    path::{Path, PathBuf},
    rc::Rc,
};

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::{
    account::Account,
    controller::Controller,
    kubernetes::{Namespace, job_name, wait},
};

const REQUESTS: &str = "cronwheel_api_requests_total";

fn hanging() -> Value {
    json!({"outcome": "hang", "run-for": "0s"})
}

/// Creates a CronJob that missed the slot of the first minute, so that it is due at once.
async fn create_overdue(namespace: &Namespace, name: &str) {
    namespace
        .create_cron_job(hanging(), json!({"metadata": {"name": name}}))
        .await;
    namespace.set_last_run(name, namespace.minute(-1)).await;
}

fn job_names(namespace: &Namespace, cron_jobs: &[&str]) -> Vec<String> {
    cron_jobs
        .iter()
        .map(|name| job_name(name, namespace.minute(0)))
        .collect()
}

fn start_after_first_minute(namespace: &Namespace) -> Controller {
    let just_after = namespace.minute(0) + SignedDuration::from_secs(1);
    Controller::start_at(namespace, just_after, &[])
}

pub(super) async fn rotated_token_is_reloaded(mut namespace: Namespace) {
    let account = Account::create_for(&mut namespace).await;
    account.permit(&namespace).await;
    let controller = start_after_first_minute(&namespace);
    create_overdue(&namespace, "before").await;
    namespace.wait_for_jobs(&job_names(&namespace, &["before"])).await;

    account.rotate(&namespace).await;
    create_overdue(&namespace, "created").await;
    namespace
        .wait_for_jobs(&job_names(&namespace, &["before", "created"]))
        .await;
    // A Job can be visible before the response to its create, and a create without a response does not count as
    // `created`.
    controller.wait_for_account(&[("created", 2)]).await;
    // Open watches outlive the identity. They continue until they are cut.
    account.proxy.cut();
    create_overdue(&namespace, "seen").await;
    namespace
        .wait_for_jobs(&job_names(&namespace, &["before", "created", "seen"]))
        .await;
    controller.wait_for_account(&[("created", 3)]).await;
    controller.terminate().await;
}

pub(super) async fn revoked_and_restored_permission_loses_no_run(mut namespace: Namespace) {
    let account = Account::create_for(&mut namespace).await;
    account.permit(&namespace).await;
    let controller = start_after_first_minute(&namespace);
    controller.wait_until_ready().await;

    account.forbid(&namespace).await;
    create_overdue(&namespace, "refused").await;
    let refused = [("verb", "create"), ("resource", "jobs"), ("code", "403")];
    controller.wait_for_metric(REQUESTS, &refused, |n| n >= 3).await;
    account.proxy.cut();
    for resource in ["cronjobs", "jobs"] {
        // A watch that was interrupted reads the current version before it resumes.
        let refused = [("verb", "list"), ("resource", resource), ("code", "403")];
        controller.wait_for_metric(REQUESTS, &refused, |n| n >= 1).await;
        controller
            .wait_for_metric("cronwheel_watch_errors_total", &[("resource", resource)], |n| n >= 1)
            .await;
    }
    create_overdue(&namespace, "unseen").await;
    assert_eq!(namespace.job_names().await, Vec::<String>::new());
    assert_eq!(controller.metric("cronwheel_instants_open", &[]).await, Some(1));

    account.permit(&namespace).await;
    controller.wait_for_account(&[("created", 2)]).await;
    namespace
        .wait_for_jobs(&job_names(&namespace, &["refused", "unseen"]))
        .await;
    controller.terminate().await;
}

pub(super) async fn controller_reports_missing_permissions_and_starts_once_granted(mut namespace: Namespace) {
    let account = Account::create_for(&mut namespace).await;
    create_overdue(&namespace, "hello").await;
    let controller = start_after_first_minute(&namespace);
    for resource in ["cronjobs", "jobs"] {
        let refused = [("verb", "list"), ("resource", resource), ("code", "403")];
        controller.wait_for_metric(REQUESTS, &refused, |n| n >= 2).await;
    }
    let readiness = controller.readiness().await;
    for resource in ["cronjobs", "jobs"] {
        let refused = format!("{resource}.batch is forbidden");
        assert!(readiness.contains(&refused), "{readiness}");
    }
    assert_eq!(namespace.job_names().await, Vec::<String>::new());

    account.permit(&namespace).await;
    controller.wait_until_ready().await;
    controller.wait_for_account(&[("created", 1)]).await;
    namespace.wait_for_jobs(&job_names(&namespace, &["hello"])).await;
    controller.terminate().await;
}

/// The client certificate files of one case.
struct ClientCertificate {
    /// The control plane's folder of keys and certificates.
    keys: PathBuf,
    folder: PathBuf,
}

impl ClientCertificate {
    /// Lets the controllers of this case use the certificate with this name from now on.
    fn begin(namespace: &mut Namespace, name: &str) -> ClientCertificate {
        let shared = Rc::clone(&namespace.control_plane);
        let text = fs::read_to_string(&shared.controller_kubeconfig).expect("a kubeconfig");
        let mut kubeconfig: Value = serde_json::from_str(&text).expect("JSON");
        let ca = &mut kubeconfig["clusters"][0]["cluster"]["certificate-authority"];
        let keys = Path::new(ca.as_str().expect("a path")).parent().expect("a folder");
        let certificate = ClientCertificate {
            keys: keys.to_owned(),
            folder: shared.controller_kubeconfig.with_file_name(&namespace.name),
        };
        fs::create_dir(&certificate.folder).expect("a folder");
        certificate.replace(name);
        let [path, key] = ["tls.crt", "tls.key"].map(|file| certificate.folder.join(file));
        kubeconfig["users"][0]["user"] = json!({"client-certificate": path, "client-key": key});
        // Its Leases are separate from those of other cases.
        kubeconfig["contexts"][0]["context"]["namespace"] = json!(namespace.name);
        let path = certificate.folder.join("kubeconfig");
        fs::write(&path, kubeconfig.to_string()).expect("a kubeconfig");
        namespace.control_plane = Rc::new(shared.with_controller_kubeconfig(path));
        certificate
    }

    /// Replaces one file after the other, so that certificate and key do not match for a moment.
    fn replace(&self, name: &str) {
        for (extension, file) in [("crt", "tls.crt"), ("key", "tls.key")] {
            let new = self.folder.join("new");
            fs::copy(self.keys.join(format!("{name}.{extension}")), &new).expect("a copy");
            fs::rename(new, self.folder.join(file)).expect("a file");
        }
    }
}

pub(super) async fn replaced_client_certificate_is_used_without_a_restart(mut namespace: Namespace) {
    // This user may read everything, but not create Jobs.
    let certificate = ClientCertificate::begin(&mut namespace, "kcm");
    let controller = start_after_first_minute(&namespace);
    create_overdue(&namespace, "hello").await;
    let is_refused = wait(async || controller.readiness_or_nothing().await.contains("create jobs in")).await;
    assert!(is_refused, "{}", controller.readiness_or_nothing().await);
    assert_eq!(namespace.job_names().await, Vec::<String>::new());

    // The certificate of an administrator.
    certificate.replace("kwok");
    namespace.wait_for_jobs(&job_names(&namespace, &["hello"])).await;
    controller.wait_for_account(&[("created", 1)]).await;
    controller.terminate().await;
}
