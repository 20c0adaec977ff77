//! Converts text to objects: YAML or JSON, one or several documents, with lists split into their items.
//!
//! YAML is read like `kubectl` reads it: converted to JSON first, with the booleans and octal numbers of YAML 1.1, and
//! with times as strings.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Value, value::RawValue};

use crate::cli::error::CommandError;

/// Maximum number of documents in one input: more CronJobs than the largest clusters have.
const DOCUMENTS_MAX: usize = 1 << 20;

/// Maximum number of nodes of a small input, including those that aliases repeat.
const NODES_MIN: usize = 250_000;

/// Maximum nesting; an API server accepts no more in an object.
const DEPTH_MAX: usize = 100;

/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// A CronJob or a Job as read.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) kind: Kind,
    /// The document or item that it was read from.
    pub(super) place: String,
    pub(super) value: Value,
    /// `spec.jobTemplate` as written, if the input is JSON: the body of a run keeps numbers of any length.
    pub(super) template: Option<Box<RawValue>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    CronJob,
    Job,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Kind::CronJob => "CronJob",
            Kind::Job => "Job",
        }
    }
}

/// Returns `metadata.namespace` or the default.
pub(super) fn namespace_of(object: &Value) -> &str {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        DEFAULT_NAMESPACE
    } else {
        namespace
    }
}

/// Returns `metadata.name` or an empty text.
pub(super) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The source of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// Files, which may omit Jobs and have CronJobs that no API server accepts.
    #[default]
    Files,
    /// An API server, which has all objects and has accepted each of them.
    Cluster,
}

/// The objects of an input.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) origin: Origin,
    /// CronJobs and Jobs in their order.
    pub(super) items: Vec<Object>,
    /// Number of ignored objects of other kinds, by kind.
    left_out: BTreeMap<String, usize>,
}

/// Parses an input and adds its objects; `input` names it in errors.
pub(super) fn read(input: &str, text: &str, objects: &mut Objects) -> Result<(), CommandError> {
    for (position, document) in documents(input, text)?.into_iter().enumerate() {
        let place = format!("document {} of {input}", position + 1);
        objects.take(&place, document, None)?;
    }
    Ok(())
}

/// A document, and its text if it is JSON whose template must keep its numbers.
#[derive(Debug)]
pub(super) struct Document<'a> {
    pub(super) value: Value,
    pub(super) text: Option<&'a str>,
}

fn documents<'a>(input: &str, text: &'a str) -> Result<Vec<Document<'a>>, CommandError> {
    let from_yaml = || {
        let values = yaml(input, text)?.into_iter();
        Ok(values.map(|value| Document { value, text: None }).collect())
    };
    if !text.trim_start().starts_with('{') {
        return from_yaml();
    }
    // A text that begins like JSON may be YAML in braces.
    json(text).or_else(|error| {
        from_yaml().map_err(|_: CommandError| format!("{input}: not JSON: {error}; correct it there").into())
    })
}

fn json(text: &str) -> Result<Vec<Document<'_>>, serde_json::Error> {
    let texts = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    texts.map(|text| Document::of_json(text?.get())).collect()
}

impl<'a> Document<'a> {
    pub(super) fn of_json(text: &'a str) -> Result<Document<'a>, serde_json::Error> {
        Ok(Document {
            value: serde_json::from_str(text)?,
            text: Some(text),
        })
    }
}

/// Returns the texts of an object's members, if it is a JSON object.
fn member_texts(text: Option<&str>) -> BTreeMap<Cow<'_, str>, &RawValue> {
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

fn yaml(input: &str, text: &str) -> Result<Vec<Value>, CommandError> {
    // The size of the input bounds its content, except for the nodes that aliases repeat.
    let n_nodes_max = text.len().max(NODES_MIN);
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_events: n_nodes_max.saturating_mul(4),
            max_nodes: n_nodes_max,
            max_total_scalar_bytes: n_nodes_max.saturating_mul(16),
            max_documents: DOCUMENTS_MAX,
            max_depth: DEPTH_MAX,
        },
    };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        let problem = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
        let names_alias = ["alias", "anchor"].iter().any(|word| error.to_string().contains(word));
        let fix = if text.contains("{{") {
            "render a Helm template first, such as helm template CHART | cronwheel explain -f -"
        } else if names_alias {
            "put a schedule that begins with * in quotes"
        } else {
            "correct it there"
        };
        format!("{input}: not YAML: {problem}; {fix}").into()
    })
}

impl Objects {
    pub(super) fn new(origin: Origin) -> Objects {
        Objects {
            origin,
            ..Objects::default()
        }
    }

    /// Adds a document. `kind` is that of the items of a list, which need not have one.
    pub(super) fn take(&mut self, place: &str, document: Document<'_>, kind: Option<&str>) -> Result<(), CommandError> {
        let Document { mut value, text } = document;
        let no_object =
            |problem| format!("{place} {problem}; give Kubernetes objects, with apiVersion, kind, metadata and spec");
        if value.is_null() {
            return Ok(());
        }
        if !value.is_object() {
            return Err(no_object("is not an object").into());
        }
        let kind = value["kind"].as_str().or(kind).map(str::to_owned);
        let kind = kind.ok_or_else(|| no_object("has no kind"))?;
        if let Some(item_kind) = kind.strip_suffix("List")
            && let Some(Value::Array(items)) = value.get_mut("items").map(Value::take)
        {
            let item_kind = (!item_kind.is_empty()).then_some(item_kind);
            let texts: Vec<&RawValue> = member_texts(text)
                .get("items")
                .and_then(|items| serde_json::from_str(items.get()).ok())
                .unwrap_or_default();
            for (position, value) in items.into_iter().enumerate() {
                let text = texts.get(position).map(|text| text.get());
                let place = format!("item {} of {place}", position + 1);
                self.take(&place, Document { value, text }, item_kind)?;
            }
            return Ok(());
        }
        let version = value["apiVersion"].as_str().unwrap_or("batch/v1");
        let is_batch = version.starts_with("batch/");
        // Groups of other projects have a dot. Another version or spelling of CronJob is recognised, and refused by
        // name.
        let is_cron_job = kind.eq_ignore_ascii_case("CronJob") && !version.contains('.');
        match kind.as_str() {
            _ if is_cron_job => self.push(Kind::CronJob, place, value, text),
            "Job" if is_batch => self.push(Kind::Job, place, value, None),
            "List" | "CronJobList" | "JobList" => {}
            _ => *self.left_out.entry(format!("{version} {kind}")).or_default() += 1,
        }
        Ok(())
    }

    /// Reports the ignored objects.
    pub(super) fn notes(&self) -> Vec<String> {
        let note = |(kind, n_objects): (&String, &usize)| {
            format!("{kind} left out ({n_objects}): only batch/v1 CronJobs and Jobs are used")
        };
        self.left_out.iter().map(note).collect()
    }

    fn push(&mut self, kind: Kind, place: &str, value: Value, text: Option<&str>) {
        let spec = member_texts(text).get("spec").map(|spec| spec.get());
        let template = member_texts(spec).get("jobTemplate").copied().map(RawValue::to_owned);
        self.items.push(Object {
            kind,
            place: place.to_owned(),
            value,
            template,
        });
    }
}
