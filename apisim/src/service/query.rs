//! The query parameters of a request, and the continue tokens of lists.

use std::time::Duration;

use jiff::SignedDuration;

use crate::{
    Resource,
    failure::Failure,
    objects::{decoding::FieldValidation, label_selector::LabelSelector, validation::FieldError},
    store::{FieldSelector, Key, Selector},
};

/// The supported parameters. Others are ignored, as in the API server.
#[derive(Clone, Debug, Default)]
pub(super) struct Query {
    pub(super) is_watch: bool,
    pub(super) allows_bookmarks: bool,
    pub(super) sends_initial_events: bool,
    pub(super) label_selector: String,
    pub(super) field_selector: String,
    pub(super) resource_version: String,
    pub(super) resource_version_match: String,
    pub(super) limit: Option<usize>,
    pub(super) continue_token: String,
    pub(super) timeout_seconds: Option<u64>,
    timeout: String,
    pub(super) propagation_policy: Option<String>,
    pub(super) field_manager: String,
    pub(super) is_forced: Option<bool>,
    pub(super) include_object: String,
    dry_run: Vec<String>,
    field_validation: String,
}

impl Query {
    pub(super) fn parse(text: &str) -> Query {
        let mut query = Query::default();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            // Any other value means true, even an empty one, as in the API server.
            let is_set = value != "0" && !value.eq_ignore_ascii_case("false");
            match &*name {
                "watch" => query.is_watch = is_set,
                "allowWatchBookmarks" => query.allows_bookmarks = is_set,
                "sendInitialEvents" => query.sends_initial_events = is_set,
                "dryRun" => query.dry_run.push(value.into_owned()),
                "fieldManager" => query.field_manager = value.into_owned(),
                "fieldValidation" => query.field_validation = value.into_owned(),
                "force" => query.is_forced = Some(is_set),
                "includeObject" => query.include_object = value.into_owned(),
                "labelSelector" => query.label_selector = value.into_owned(),
                "fieldSelector" => query.field_selector = value.into_owned(),
                "resourceVersion" => query.resource_version = value.into_owned(),
                "resourceVersionMatch" => query.resource_version_match = value.into_owned(),
                "limit" => query.limit = value.parse().ok().filter(|limit| *limit > 0),
                "continue" => query.continue_token = value.into_owned(),
                "timeoutSeconds" => query.timeout_seconds = value.parse().ok(),
                "timeout" => query.timeout = value.into_owned(),
                "propagationPolicy" => query.propagation_policy = Some(value.into_owned()),
                _ => {}
            }
        }
        query
    }

    /// Whether the request is a dry run. `options` is the kind of the options.
    pub(super) fn is_dry_run(&self, options: &str) -> Result<bool, Failure> {
        if self.dry_run.iter().all(|value| value == "All") {
            return Ok(!self.dry_run.is_empty());
        }
        let values = format!("{:?}", self.dry_run);
        Err(unsupported(options, "dryRun", &values, "\"All\""))
    }

    /// How to treat unknown fields.
    pub(super) fn field_validation(&self, options: &str) -> Result<FieldValidation, Failure> {
        let supported = "\"\", \"Ignore\", \"Strict\", \"Warn\"";
        FieldValidation::parse(&self.field_validation).ok_or_else(|| {
            unsupported(
                options,
                "fieldValidation",
                &format!("{:?}", self.field_validation),
                supported,
            )
        })
    }

    /// Returns the time limit that the client sets. `None` if it sets none, or one that is zero or negative.
    pub(super) fn timeout(&self) -> Result<Option<Duration>, Failure> {
        if self.timeout.is_empty() {
            return Ok(None);
        }
        let Ok(timeout) = self.timeout.parse::<SignedDuration>() else {
            let value = &self.timeout;
            let message = format!("invalid timeout specified in the request URL - time: invalid duration {value:?}");
            return Err(Failure::bad_request(message));
        };
        Ok(Duration::try_from(timeout).ok().filter(|timeout| !timeout.is_zero()))
    }

    /// Returns the selector.
    pub(super) fn selector(&self, resource: Resource) -> Result<Selector, Failure> {
        let labels = LabelSelector::parse(&self.label_selector);
        let fields = FieldSelector::parse(resource, &self.field_selector);
        Ok(Selector {
            labels: labels.map_err(|error| Failure::bad_request(error.to_string()))?,
            fields: fields.map_err(|error| Failure::bad_request(error.to_string()))?,
        })
    }

    /// Returns the requested version. `None` means the latest, 0 means any.
    pub(super) fn version(&self) -> Result<Option<u64>, Failure> {
        match self.resource_version.as_str() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                Failure::bad_request(format!("resourceVersion: Invalid value: \"{text}\": invalid syntax"))
            }),
        }
    }
}

/// `value` is the formatted value.
fn unsupported(options: &str, field: &str, value: &str, supported: &str) -> Failure {
    let error = FieldError {
        reason: "FieldValueNotSupported",
        field: field.to_owned(),
        message: format!("Unsupported value: {value}: supported values: {supported}"),
    };
    Failure::invalid_options(options, &[error])
}

/// The position at which a list continues. Opaque to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Continue {
    /// The version of the first page. `None` if it has expired and the client continues at the current version.
    pub(super) version: Option<u64>,
    /// The last key of the previous page.
    pub(super) after: Key,
    /// The number of objects that remained after it.
    pub(super) n_remaining: Option<usize>,
}

impl Continue {
    /// Formats the token as text that needs no escapes in a query.
    pub(super) fn token(&self) -> String {
        let number = |number: Option<String>| number.unwrap_or_default();
        format!(
            "{}~{}~{}",
            number(self.version.map(|version| version.to_string())),
            number(self.n_remaining.map(|n_remaining| n_remaining.to_string())),
            self.after.as_str().replace('/', "~"),
        )
    }

    pub(super) fn parse(token: &str) -> Result<Continue, Failure> {
        let unreadable = || Failure::bad_request("continue key is not valid: the token cannot be read");
        let mut parts = token.splitn(3, '~');
        let mut number = || -> Result<Option<u64>, Failure> {
            match parts.next().ok_or_else(unreadable)? {
                "" => Ok(None),
                text => text.parse().map(Some).map_err(|_| unreadable()),
            }
        };
        let (version, n_remaining) = (number()?, number()?);
        let after = parts.next().filter(|after| !after.is_empty()).ok_or_else(unreadable)?;
        Ok(Continue {
            version,
            after: Key::from_text(&after.replace('~', "/")),
            n_remaining: n_remaining.and_then(|n_remaining| usize::try_from(n_remaining).ok()),
        })
    }
}
