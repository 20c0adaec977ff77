//! The configuration of `cronwheel run`, validated once at the start.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use clap::{ValueEnum, builder::PossibleValue};
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};

mod sharding;
mod surroundings;

pub use self::sharding::ShardingError;
use self::sharding::membership_of;
use self::surroundings::Surroundings;
use super::args::{RunArgs, TimingPreset};
use crate::{
    controller::{
        event_task::EventBudget,
        settings::{Membership, RunSettings},
    },
    kube_api::http::exempt_from_proxy,
    schedule::zone::tzdb_version,
    shard::Scope,
};

/// The reasons why there is no configuration of an API server.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is neither a service account nor a kubeconfig.
    #[error(
        "cannot find an API server: no service account of a Pod, since {not_in_pod}, and no kubeconfig in {kubeconfig}; \
         give --kubeconfig FILE, or run in a Pod with a service account"
    )]
    Nowhere {
        /// The reason why the process is not in a Pod.
        not_in_pod: String,
        /// The path of the kubeconfig.
        kubeconfig: String,
        /// The error of the kubeconfig.
        source: KubeconfigError,
    },
    /// The process is in a Pod with an incomplete service account.
    #[error(
        "the Pod's service account cannot be used; mount its token, ca.crt and namespace, set KUBERNETES_SERVICE_HOST and \
         KUBERNETES_SERVICE_PORT, or give --kubeconfig FILE"
    )]
    ServiceAccount(#[source] InClusterError),
    /// `--kubeconfig` cannot be read.
    #[error("--kubeconfig {file}: cannot be used; give a kubeconfig that can be read")]
    Read {
        /// The file.
        file: String,
        /// The cause.
        source: KubeconfigError,
    },
    /// `--context` was given, and there is no kubeconfig.
    #[error("--context {context}: there is no kubeconfig to find it in; give --kubeconfig FILE too")]
    NoKubeconfig {
        /// The context.
        context: String,
        /// The cause.
        source: KubeconfigError,
    },
    /// The kubeconfig of the user exists and cannot be read or parsed.
    #[error("the kubeconfig in {place} cannot be used; correct it, or give --kubeconfig FILE")]
    Kubeconfig {
        /// The path of the kubeconfig.
        place: String,
        /// The cause.
        source: KubeconfigError,
    },
    /// `--context` is not in the kubeconfig.
    #[error("--context {context}: not in the kubeconfig; it has {known}")]
    UnknownContext {
        /// The context.
        context: String,
        /// The contexts of the kubeconfig.
        known: String,
    },
    /// The context of the kubeconfig is invalid.
    #[error("the context of the kubeconfig cannot be used; check its cluster and its user")]
    Context(#[source] KubeconfigError),
    /// This replica cannot share CronJobs with others.
    #[error(transparent)]
    Sharding(#[from] ShardingError),
}

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
    pub async fn load(args: &RunArgs) -> Result<RunConfig, ConfigError> {
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
                default_zone: args.default_time_zone.clone(),
                status_flush_interval: args.status_flush_interval,
                in_flight_max: args.max_inflight,
                template_memory_mib: args.max_template_memory,
                events: EventBudget {
                    filter: args.events,
                    per_second_max: args.max_events_per_second,
                },
                cron_job_metrics: args.cron_job_metrics,
                membership: Some(membership),
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
            listen = %args.listen,
            default_time_zone = settings.default_zone.name(),
            status_flush_interval = ?settings.status_flush_interval,
            max_inflight = settings.in_flight_max,
            max_template_memory_mib = settings.template_memory_mib,
            events = ?settings.events.filter,
            max_events_per_second = settings.events.per_second_max,
            cron_job_metrics = ?settings.cron_job_metrics,
            max_clock_skew = %format_args!("{:#}", args.max_clock_skew),
            clock_offset = %format_args!("{:#}", args.clock_offset),
            sharing = sharing_text(settings.sharing(), args.timing),
            "cronwheel starts"
        );
    }
}

/// Describes how the replica shares CronJobs, for the log.
fn sharing_text(sharing: Option<&Membership>, timing: TimingPreset) -> String {
    let Some(membership) = sharing else {
        return "alone".to_owned();
    };
    let Membership {
        installation,
        shard_count,
        namespace,
        pod_name,
        ..
    } = membership;
    let n_shards = shard_count.get();
    let timing = timing.to_possible_value();
    let timing = timing.as_ref().map_or("default", PossibleValue::get_name);
    format!("{pod_name} of installation {installation}, {n_shards} shards, timing {timing}, Leases in {namespace}")
}

/// Lists the namespaces, for the log.
fn scopes_text(scopes: &[Scope]) -> String {
    let names = scopes.iter().map(|scope| match scope {
        Scope::Cluster => "all namespaces",
        Scope::Namespace(name) => name,
    });
    names.collect::<Vec<_>>().join(",")
}

fn scopes(namespaces: &[String]) -> Vec<Scope> {
    if namespaces.is_empty() {
        return vec![Scope::Cluster];
    }
    let distinct: BTreeSet<&str> = namespaces.iter().map(String::as_str).collect();
    distinct.into_iter().map(|name| Scope::Namespace(name.into())).collect()
}

/// Finds the API server by the flags `--kubeconfig` and `--context`.
pub async fn kube_config(file: Option<&Path>, context: Option<&str>) -> Result<kube::Config, ConfigError> {
    let mut config = found_config(file, context).await?;
    exempt_from_proxy(&mut config, |name| env::var(name).ok());
    Ok(config)
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
/// must not select another cluster; otherwise the kubeconfig of the user.
async fn found_config(file: Option<&Path>, context: Option<&str>) -> Result<kube::Config, ConfigError> {
    let kubeconfig = match (file, context) {
        (Some(file), _) => Kubeconfig::read_from(file).map_err(|source| ConfigError::Read {
            file: file.display().to_string(),
            source,
        })?,
        (None, Some(context)) => users_kubeconfig(|_, source| ConfigError::NoKubeconfig {
            context: context.to_owned(),
            source,
        })?,
        (None, None) => match not_in_pod(|name| env::var_os(name), Path::new(TOKEN_FILE)) {
            None => return kube::Config::incluster().map_err(ConfigError::ServiceAccount),
            Some(not_in_pod) => users_kubeconfig(|kubeconfig, source| ConfigError::Nowhere {
                not_in_pod,
                kubeconfig,
                source,
            })?,
        },
    };
    if let Some(context) = context
        && !kubeconfig.contexts.iter().any(|known| known.name == context)
    {
        let known: Vec<&str> = kubeconfig.contexts.iter().map(|known| known.name.as_str()).collect();
        return Err(ConfigError::UnknownContext {
            context: context.to_owned(),
            known: if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            },
        });
    }
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let root_cert_file = authority_file(&kubeconfig, context);
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(ConfigError::Context)?;
    config.root_cert_file = root_cert_file;
    Ok(config)
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

/// Reads the kubeconfig of the user. `absent` is the error if there is none, from its path and the cause.
fn users_kubeconfig(absent: impl FnOnce(String, KubeconfigError) -> ConfigError) -> Result<Kubeconfig, ConfigError> {
    Kubeconfig::read().map_err(|source| {
        let place = kubeconfig_place(env::var_os("KUBECONFIG"));
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let is_absent = matches!(&source, KubeconfigError::FindPath)
            || matches!(&source, KubeconfigError::ReadConfig(error, _) if is_missing(error));
        if is_absent {
            absent(place, source)
        } else {
            ConfigError::Kubeconfig { place, source }
        }
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
