//! The served kinds of objects, and their names in Kubernetes.

/// A served kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// `batch/v1` CronJobs.
    CronJob,
    /// `batch/v1` Jobs.
    Job,
    /// `coordination.k8s.io/v1` Leases.
    Lease,
    /// Core Events.
    Event,
    /// Core Namespaces.
    Namespace,
    /// Core `ConfigMaps`.
    ConfigMap,
}

impl Resource {
    /// The number of kinds.
    pub const COUNT: usize = Resource::ALL.len();

    /// All kinds, each at its [`index`](Resource::index).
    pub const ALL: [Resource; 6] = [
        Resource::CronJob,
        Resource::Job,
        Resource::Lease,
        Resource::Event,
        Resource::Namespace,
        Resource::ConfigMap,
    ];

    /// The position in [`ALL`](Resource::ALL).
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the kind with this plural in this API group and version.
    pub fn find(group: &str, version: &str, plural: &str) -> Option<Resource> {
        let is_match = |resource: &Resource| {
            resource.group() == group && resource.version() == version && resource.plural() == plural
        };
        Resource::ALL.into_iter().find(is_match)
    }

    /// The API group; empty for the core group.
    pub const fn group(self) -> &'static str {
        match self {
            Resource::CronJob | Resource::Job => "batch",
            Resource::Lease => "coordination.k8s.io",
            Resource::Event | Resource::Namespace | Resource::ConfigMap => "",
        }
    }

    /// The version in the API group.
    pub const fn version(self) -> &'static str {
        "v1"
    }

    /// The `apiVersion` of objects.
    pub const fn api_version(self) -> &'static str {
        match self {
            Resource::CronJob | Resource::Job => "batch/v1",
            Resource::Lease => "coordination.k8s.io/v1",
            Resource::Event | Resource::Namespace | Resource::ConfigMap => "v1",
        }
    }

    /// The `kind` of objects.
    pub const fn kind(self) -> &'static str {
        match self {
            Resource::CronJob => "CronJob",
            Resource::Job => "Job",
            Resource::Lease => "Lease",
            Resource::Event => "Event",
            Resource::Namespace => "Namespace",
            Resource::ConfigMap => "ConfigMap",
        }
    }

    /// The plural name, used in paths.
    pub const fn plural(self) -> &'static str {
        match self {
            Resource::CronJob => "cronjobs",
            Resource::Job => "jobs",
            Resource::Lease => "leases",
            Resource::Event => "events",
            Resource::Namespace => "namespaces",
            Resource::ConfigMap => "configmaps",
        }
    }

    /// The singular name, in lower case.
    pub const fn singular(self) -> &'static str {
        match self {
            Resource::CronJob => "cronjob",
            Resource::Job => "job",
            Resource::Lease => "lease",
            Resource::Event => "event",
            Resource::Namespace => "namespace",
            Resource::ConfigMap => "configmap",
        }
    }

    /// The short names for `kubectl`.
    pub const fn short_names(self) -> &'static [&'static str] {
        match self {
            Resource::CronJob => &["cj"],
            Resource::Job | Resource::Lease => &[],
            Resource::Event => &["ev"],
            Resource::Namespace => &["ns"],
            Resource::ConfigMap => &["cm"],
        }
    }

    /// The categories of the kind, such as that of `kubectl get all`.
    pub const fn categories(self) -> &'static [&'static str] {
        match self {
            Resource::CronJob | Resource::Job => &["all"],
            Resource::Lease | Resource::Event | Resource::Namespace | Resource::ConfigMap => &[],
        }
    }

    /// Whether the kind is namespaced.
    pub const fn is_namespaced(self) -> bool {
        !matches!(self, Resource::Namespace)
    }

    /// Whether the status is a subresource, at `/status`.
    pub const fn has_status(self) -> bool {
        matches!(self, Resource::CronJob | Resource::Job | Resource::Namespace)
    }

    /// Whether the server maintains `metadata.generation`, incremented with every change of the spec.
    pub const fn has_generation(self) -> bool {
        matches!(self, Resource::CronJob | Resource::Job)
    }

    /// `<plural>.<group>`, as messages name the kind. Only the plural in the core group.
    pub fn qualified(self) -> String {
        match self.group() {
            "" => self.plural().to_owned(),
            group => format!("{}.{group}", self.plural()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_index_and_path() {
        for (index, resource) in Resource::ALL.into_iter().enumerate() {
            assert_eq!(resource.index(), index);
            let (group, version, plural) = (resource.group(), resource.version(), resource.plural());
            assert_eq!(Resource::find(group, version, plural), Some(resource));
        }
        assert_eq!(Resource::find("batch", "v1beta1", "cronjobs"), None);
    }
}
