//! Converts the content of requests, bodies and patches, to objects.

use serde_json::Value;

use crate::{
    Resource,
    failure::Failure,
    objects::{
        decoding::{self, Decoded, FieldValidation},
        patch::{self, Applier, PatchForm},
        protobuf,
    },
    registry::Moment,
};

/// The encoding of a body that holds an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyForm {
    Json,
    Protobuf,
}

impl BodyForm {
    /// Returns the encoding for a `Content-Type`. JSON if the header is empty.
    pub(crate) fn parse(content_type: &str) -> Option<BodyForm> {
        match content_type {
            "" | "application/json" | "*/*" => Some(BodyForm::Json),
            protobuf::CONTENT_TYPE => Some(BodyForm::Protobuf),
            _ => None,
        }
    }
}

/// Decodes the body of a request.
pub(crate) fn object(
    resource: Resource,
    form: BodyForm,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Decoded, Failure> {
    match form {
        BodyForm::Json => Ok(decoding::parse(resource, body, validation)?),
        BodyForm::Protobuf => {
            let members = protobuf::parse(resource, body)?;
            Ok(decoding::decode(resource, members, validation)?)
        }
    }
}

/// A change as a patch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patch<'a> {
    pub(crate) form: PatchForm,
    pub(crate) content: &'a Value,
    /// The field manager of an apply, and whether to force. Other formats ignore both.
    pub(crate) manager: &'a str,
    pub(crate) is_forced: bool,
    pub(crate) validation: FieldValidation,
}

impl Patch<'_> {
    /// Applies the patch to an object. Server-side apply creates a missing object.
    pub(crate) fn applied(&self, resource: Resource, old: Option<&Value>, moment: Moment) -> Result<Decoded, Failure> {
        let content = self.content;
        let patched = match (self.form, old) {
            (PatchForm::Apply, old) => {
                let applier = Applier {
                    manager: self.manager,
                    is_forced: self.is_forced,
                    now: moment.wall,
                };
                patch::apply(resource, old, content, applier)?
            }
            (PatchForm::Json, Some(old)) => patch::json_patch(old, content)?,
            (PatchForm::Merge, Some(old)) => patch::merge(old, content),
            (PatchForm::Strategic, Some(old)) => patch::strategic_merge(resource, old, content)?,
            (PatchForm::Json | PatchForm::Merge | PatchForm::Strategic, None) => content.clone(),
        };
        Ok(patch::decoded(resource, self.form, content, patched, self.validation)?)
    }
}
