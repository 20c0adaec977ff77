//! The configuration of `cronwheel run`, validated once at the start.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};

mod sharding;
mod surroundings;

use self::sharding::membership_of;
use self::surroundings::Surroundings;
#[cfg(feature = "dev")]
pub(super) use self::surroundings::random_number;
use super::{error::CommandError, run_args::RunArgs};
use crate::{
    controller::{
        event_task::EventBudget,
        settings::{Membership, RunSettings},
    },
    kube_api::http::exempt_from_proxy,
    schedule::{options::Freeze, zone::tzdb_version},
    shard::Scope,
};

/// The validated configuration of a run: the API server and the settings of the controller. The clock and the endpoints
/// use the flags directly.
#[derive(Clone)]
pub struct RunConfig {
    /// The API server and its credentials.
    pub kube: kube::Config,
    /// The settings of the controller.
    pub settings: RunSettings,
}

impl RunConfig {
    /// Validates the flags and finds the API server.
    pub async fn load(args: &RunArgs) -> Result<RunConfig, CommandError> {
        let kube = kube_config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
        let surroundings = if args.kubeconfig.is_none() && args.context.is_none() {
            Surroundings::of_process(&kube.default_namespace)
        } else {
            Surroundings::host()
        };
        let membership = membership_of(args, &kube, &surroundings)?;
        Ok(RunConfig {
            kube,
            settings: RunSettings {
                scopes: scopes(&args.namespaces),
                namespace_selector: args.namespace_selector.clone(),
                default_zone: args.default_time_zone.clone(),
                status_flush_interval: args.status_flush_interval,
                in_flight_max: args.max_inflight,
                template_memory_mib: args.max_template_memory,
                missed_runs_per_second: args.missed_runs_per_second,
                freeze: freeze(args),
                reads_calendars: args.calendars,
                built_in_policies: args.built_in_policies.clone(),
                events: EventBudget {
                    filter: args.events,
                    per_second_max: args.max_events_per_second,
                },
                cron_job_metrics: args.cron_job_metrics,
                trouble_label: args.trouble_label.clone(),
                log_runs: args.log_runs,
                membership,
            },
        })
    }

    /// Logs the configuration and its flags once.
    pub fn log(&self, args: &RunArgs) {
        let settings = &self.settings;
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            time_zone_data = tzdb_version(),
            api_server = %self.kube.cluster_url,
            scopes = scopes_text(&settings.scopes),
            namespace_selector = settings.namespace_selector.as_ref().map(tracing::field::display),
            listen = %args.listen,
            default_time_zone = settings.default_zone.name(),
            status_flush_interval = ?settings.status_flush_interval,
            max_inflight = settings.in_flight_max,
            max_template_memory_mib = settings.template_memory_mib,
            missed_runs_per_second = settings.missed_runs_per_second,
            events = ?settings.events.filter,
            max_events_per_second = settings.events.per_second_max,
            cron_job_metrics = ?settings.cron_job_metrics,
            trouble_label = settings.trouble_label.as_deref(),
            log_runs = ?settings.log_runs,
            max_clock_skew = %format_args!("{:#}", args.max_clock_skew),
            clock_offset = %format_args!("{:#}", args.clock_offset),
            sharing = sharing_text(&settings.membership),
            calendars = settings.reads_calendars,
            built_in_policies = settings.built_in_policies.join(","),
            "cronwheel starts"
        );
        if let Some(Freeze { until, reason }) = &settings.freeze {
            tracing::warn!(%until, reason, "nothing starts before --freeze-until");
        }
    }
}

/// The freeze of the flags.
fn freeze(args: &RunArgs) -> Option<Freeze> {
    let reason = args.freeze_reason.as_deref().unwrap_or_default();
    args.freeze_until.map(|until| Freeze {
        until,
        reason: reason.into(),
    })
}

/// Describes how the replica shares CronJobs, for the log.
fn sharing_text(membership: &Membership) -> String {
    let Membership {
        installation,
        shard_count,
        namespace,
        pod_name,
        ..
    } = membership;
    let n_shards = shard_count.get();
    format!("{pod_name} of installation {installation}, {n_shards} shards, Leases in {namespace}")
}

/// Lists the namespaces, for the log.
fn scopes_text(scopes: &[Scope]) -> String {
    let names = scopes.iter().map(|scope| match scope {
        Scope::Cluster => "all namespaces",
        Scope::Namespace(name) => name,
    });
    names.collect::<Vec<_>>().join(",")
}

/// The namespaces of the flag, each once; all if there are none.
pub(super) fn scopes(namespaces: &[String]) -> Vec<Scope> {
    if namespaces.is_empty() {
        return vec![Scope::Cluster];
    }
    let distinct: BTreeSet<&str> = namespaces.iter().map(String::as_str).collect();
    distinct.into_iter().map(|name| Scope::Namespace(name.into())).collect()
}

/// Finds the API server by the flags `--kubeconfig` and `--context`.
pub async fn kube_config(file: Option<&Path>, context: Option<&str>) -> Result<kube::Config, CommandError> {
    Ok(named_kube_config(file, context).await?.0)
}

/// Finds the API server like [`kube_config`], and the context, if a kubeconfig was used.
pub async fn named_kube_config(
    file: Option<&Path>,
    context: Option<&str>,
) -> Result<(kube::Config, Option<String>), CommandError> {
    let (mut config, context) = found_config(file, context).await?;
    exempt_from_proxy(&mut config, |name| env::var(name).ok());
    Ok((config, context))
}

/// The token of a Pod's service account at the path where the kubelet mounts it.
const TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Returns why the process is not in a Pod with a service account; `None` if it is.
fn not_in_pod(variable: impl Fn(&str) -> Option<OsString>, token: &Path) -> Option<String> {
    const SERVICE_HOST: &str = "KUBERNETES_SERVICE_HOST";
    if variable(SERVICE_HOST).is_none_or(|host| host.is_empty()) {
        Some(format!("{SERVICE_HOST} is not set"))
    } else if !token.exists() {
        Some(format!("there is no token at {}", token.display()))
    } else {
        None
    }
}

/// Uses the flags; without them, the service account if the process is in a Pod, since a kubeconfig inside an image
/// must not select another cluster; otherwise the kubeconfig of the user. Returns the context too, if there is one.
async fn found_config(
    file: Option<&Path>,
    context: Option<&str>,
) -> Result<(kube::Config, Option<String>), CommandError> {
    let kubeconfig = match (file, context) {
        (Some(file), _) => Kubeconfig::read_from(file).map_err(|error| {
            let text = format!(
                "--kubeconfig {}: cannot be used; give a kubeconfig that can be read",
                file.display()
            );
            CommandError::caused(text, error)
        })?,
        (None, Some(context)) => users_kubeconfig(|_| {
            format!("--context {context}: there is no kubeconfig to find it in; give --kubeconfig FILE too")
        })?,
        (None, None) => match not_in_pod(|name| env::var_os(name), Path::new(TOKEN_FILE)) {
            None => {
                let config = kube::Config::incluster().map_err(bad_service_account)?;
                return Ok((config, None));
            }
            Some(not_in_pod) => users_kubeconfig(|place| no_api_server(&not_in_pod, place))?,
        },
    };
    if let Some(context) = context
        && !kubeconfig.contexts.iter().any(|known| known.name == context)
    {
        let known: Vec<&str> = kubeconfig.contexts.iter().map(|known| known.name.as_str()).collect();
        let known = if known.is_empty() {
            "none".to_owned()
        } else {
            known.join(", ")
        };
        return Err(format!("--context {context}: not in the kubeconfig; it has {known}").into());
    }
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let root_cert_file = authority_file(&kubeconfig, context);
    let used_context = context
        .map(str::to_owned)
        .or_else(|| kubeconfig.current_context.clone());
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(|error| {
        let text = "the context of the kubeconfig cannot be used; check its cluster and its user";
        CommandError::caused(text, error)
    })?;
    config.root_cert_file = root_cert_file;
    Ok((config, used_context))
}

/// Returns the CA file, which `kube` reads from a kubeconfig without exposing its path; `None` if the CA is inline or
/// absent.
fn authority_file(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<PathBuf> {
    let context = context.or(kubeconfig.current_context.as_deref())?;
    let context = kubeconfig.contexts.iter().find(|known| known.name == context)?;
    let cluster = &context.context.as_ref()?.cluster;
    let cluster = kubeconfig.clusters.iter().find(|known| known.name == *cluster)?;
    let cluster = cluster.cluster.as_ref()?;
    if cluster.certificate_authority_data.is_some() {
        return None;
    }
    cluster.certificate_authority.as_deref().map(PathBuf::from)
}

fn bad_service_account(error: InClusterError) -> CommandError {
    let text = "the Pod's service account cannot be used; mount its token, ca.crt and namespace, set \
                KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, or give --kubeconfig FILE";
    CommandError::caused(text, error)
}

fn no_api_server(not_in_pod: &str, kubeconfig: &str) -> String {
    format!(
        "cannot find an API server: no service account of a Pod, since {not_in_pod}, and no kubeconfig in {kubeconfig}; \
         give --kubeconfig FILE, or run in a Pod with a service account"
    )
}

/// Reads the kubeconfig of the user. `absent` is the error if there is none in this place.
fn users_kubeconfig(absent: impl FnOnce(&str) -> String) -> Result<Kubeconfig, CommandError> {
    Kubeconfig::read().map_err(|error| {
        let place = kubeconfig_place(env::var_os("KUBECONFIG"));
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let is_absent = matches!(&error, KubeconfigError::FindPath)
            || matches!(&error, KubeconfigError::ReadConfig(error, _) if is_missing(error));
        let text = if is_absent {
            absent(&place)
        } else {
            format!("the kubeconfig in {place} cannot be used; correct it, or give --kubeconfig FILE")
        };
        CommandError::caused(text, error)
    })
}

/// Returns the path that `Kubeconfig::read` uses.
fn kubeconfig_place(variable: Option<OsString>) -> String {
    match variable.filter(|files| !files.is_empty()) {
        Some(files) => format!("KUBECONFIG={}", files.display()),
        None => "~/.kube/config (KUBECONFIG is not set)".to_owned(),
    }
}

#[cfg(test)]
mod tests;
