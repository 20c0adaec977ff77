//! The scopes whose first lists are complete.

use std::collections::BTreeSet;

/// The namespaces whose CronJobs and whose Jobs were listed in full.
#[derive(Debug, Default)]
pub(super) struct Listed {
    cron_jobs: Scopes,
    jobs: Scopes,
}

#[derive(Debug, Default)]
struct Scopes {
    is_whole_cluster: bool,
    namespaces: BTreeSet<Box<str>>,
}

impl Scopes {
    fn add(&mut self, namespace: Option<&str>) {
        match namespace {
            None => self.is_whole_cluster = true,
            Some(namespace) => _ = self.namespaces.insert(namespace.into()),
        }
    }

    fn has(&self, namespace: &str) -> bool {
        self.is_whole_cluster || self.namespaces.contains(namespace)
    }
}

impl Listed {
    pub(super) fn add_cron_jobs(&mut self, namespace: Option<&str>) {
        self.cron_jobs.add(namespace);
    }

    pub(super) fn add_jobs(&mut self, namespace: Option<&str>) {
        self.jobs.add(namespace);
    }

    /// The namespace may no longer be read. It is listed again before it is judged.
    pub(super) fn remove(&mut self, namespace: &str) {
        for listed in [&mut self.cron_jobs, &mut self.jobs] {
            listed.namespaces.remove(namespace);
        }
    }

    /// Whether both kinds of a namespace are known in full.
    pub(super) fn contains(&self, namespace: &str) -> bool {
        self.cron_jobs.has(namespace) && self.jobs.has(namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_listed_with_both_kinds() {
        let mut listed = Listed::default();
        listed.add_cron_jobs(Some("shop"));
        assert!(!listed.contains("shop"));
        listed.add_jobs(Some("shop"));
        assert!(listed.contains("shop") && !listed.contains("bank"));
        listed.remove("shop");
        assert!(!listed.contains("shop"));
        listed.add_cron_jobs(None);
        listed.add_jobs(None);
        assert!(listed.contains("shop") && listed.contains("bank"));
    }
}
