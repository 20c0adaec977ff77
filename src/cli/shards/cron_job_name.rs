//! The value of `--cronjob`.

use crate::cli::args::values::parse_namespace;

/// Namespace and name of a CronJob.
#[derive(Clone, Debug)]
pub(super) struct CronJobName {
    pub(super) namespace: String,
    pub(super) name: String,
}

pub(super) fn parse(text: &str) -> Result<CronJobName, String> {
    let names = text.split_once('/').filter(|(_, name)| !name.is_empty());
    let (namespace, name) = names.ok_or("write namespace and name, such as shop/report")?;
    Ok(CronJobName {
        namespace: parse_namespace(namespace)?,
        name: name.to_owned(),
    })
}
