//! The `OpenAPI` documents: the parts that `kubectl` needs to detect field validation and to explain kinds.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{GIT_VERSION, groups};
use crate::{
    Resource,
    fnv::fnv_1a,
    patch::PatchForm,
    schema::{Field, Kind, Merge, Schema, Struct},
};

/// Query parameters of a PATCH.
const PATCH_PARAMETERS: [(&str, &str); 4] = [
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
    ("force", "boolean"),
];

/// The index of the documents. The hash changes with the content, because clients cache documents by hash.
pub(super) fn index() -> Value {
    let names =
        std::iter::once("api/v1".to_owned()).chain(groups::GROUPS.iter().map(|group| format!("apis/{group}/v1")));
    let paths: Map<_, _> = names
        .filter_map(|name| {
            let hash = fnv_1a(&version_3(&name)?.to_string());
            Some((
                name.clone(),
                json!({"serverRelativeURL": format!("/openapi/v3/{name}?hash={hash:016X}")}),
            ))
        })
        .collect();
    json!({"paths": paths})
}

/// The document of one group, by the end of its path.
pub(super) fn version_3(name: &str) -> Option<Value> {
    let group = match name {
        "api/v1" => "",
        name => {
            let name = name.strip_prefix("apis/")?.strip_suffix("/v1")?;
            groups::GROUPS.into_iter().find(|group| *group == name)?
        }
    };
    let mut paths = Map::new();
    let mut shapes = BTreeSet::new();
    for resource in groups::resources(group) {
        put_paths(resource, &mut paths);
        collect(Schema::get().of(resource), &mut shapes);
    }
    let schemas: Map<_, _> = shapes
        .into_iter()
        .filter_map(|name| {
            let shape = Schema::get().named(name)?;
            Some((name.to_owned(), schema(shape, "#/components/schemas/")))
        })
        .collect();
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": GIT_VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// All groups in one document, in the old format.
pub(super) fn version_2() -> Value {
    let mut paths = Map::new();
    let mut shapes = BTreeSet::new();
    for resource in Resource::ALL {
        put_paths(resource, &mut paths);
        collect(Schema::get().of(resource), &mut shapes);
    }
    let definitions: Map<_, _> = shapes
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), schema(Schema::get().named(name)?, "#/definitions/"))))
        .collect();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": GIT_VERSION},
        "paths": paths,
        "definitions": definitions,
    })
}

fn put_paths(resource: Resource, paths: &mut Map<String, Value>) {
    let root = match resource.group() {
        "" => format!("/api/{}", resource.version()),
        group => format!("/apis/{group}/{}", resource.version()),
    };
    let scope = if resource.is_namespaced() {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let list = format!("{root}{scope}/{}", resource.plural());
    let kind = group_version_kind(resource);
    let operation =
        |action: &str| json!({"x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind, "responses": {}});
    let mut patch = operation("patch");
    let parameters = PATCH_PARAMETERS.iter();
    patch["parameters"] = parameters
        .map(|(name, kind)| json!({"name": name, "in": "query", "schema": {"type": kind}}))
        .collect();
    let forms = PatchForm::CONTENT_TYPES
        .iter()
        .map(|form| ((*form).to_owned(), json!({})));
    patch["requestBody"] = json!({"content": forms.collect::<Map<_, _>>()});
    let object =
        json!({"get": operation("get"), "put": operation("put"), "delete": operation("delete"), "patch": patch});
    paths.insert(format!("{list}/{{name}}"), object);
    paths.insert(list, json!({"get": operation("list"), "post": operation("post")}));
}

fn group_version_kind(resource: Resource) -> Value {
    json!({"group": resource.group(), "version": resource.version(), "kind": resource.kind()})
}

/// Adds a type and all types that it contains.
fn collect(shape: &'static Struct, names: &mut BTreeSet<&'static str>) {
    if names.insert(shape.name) {
        shape.fields().iter().for_each(|field| collect_kind(&field.kind, names));
    }
}

fn collect_kind(kind: &'static Kind, names: &mut BTreeSet<&'static str>) {
    if let Some(element) = kind.element() {
        collect_kind(element, names);
    }
    if let Some(shape) = kind.as_struct() {
        collect(shape, names);
    }
}

fn schema(shape: &'static Struct, references: &str) -> Value {
    let property = |field: &'static Field| {
        let mut property = kind_schema(&field.kind, references);
        put_merge(field, &mut property);
        (field.name.to_owned(), property)
    };
    let properties: Map<_, _> = shape.fields().iter().map(property).collect();
    let mut schema = json!({"type": "object", "description": "", "properties": properties});
    let resource = Resource::ALL.into_iter().find(|resource| resource.kind() == shape.name);
    if let Some(resource) = resource {
        schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(resource)]);
    }
    schema
}

/// Writes how a list is merged, for clients that create strategic merge patches.
fn put_merge(field: &'static Field, property: &mut Value) {
    let strategy = match field.merge {
        Merge::Replace => return,
        Merge::Set => "merge",
        Merge::ByKey(key) => {
            property["x-kubernetes-patch-merge-key"] = key.into();
            // The members of a volume are mutually exclusive.
            if field.name == "volumes" {
                "merge,retainKeys"
            } else {
                "merge"
            }
        }
    };
    property["x-kubernetes-patch-strategy"] = strategy.into();
}

fn kind_schema(kind: &'static Kind, references: &str) -> Value {
    match kind {
        Kind::String(_) | Kind::Quantity => json!({"type": "string"}),
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Int32 => json!({"type": "integer", "format": "int32"}),
        Kind::Int64 => json!({"type": "integer", "format": "int64"}),
        Kind::Bytes => json!({"type": "string", "format": "byte"}),
        Kind::IntOrString => json!({"type": "string", "format": "int-or-string"}),
        Kind::Time | Kind::MicroTime => json!({"type": "string", "format": "date-time"}),
        Kind::Any => json!({"type": "object"}),
        Kind::List(element) => json!({"type": "array", "items": kind_schema(element, references)}),
        Kind::Map(element) => json!({"type": "object", "additionalProperties": kind_schema(element, references)}),
        Kind::Struct(id) => {
            let reference = format!("{references}{}", Schema::get().at(*id).name);
            json!({"allOf": [{"$ref": reference}]})
        }
    }
}
