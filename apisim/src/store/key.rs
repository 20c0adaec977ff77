//! Keys of objects, in the order of the API server's storage: bytewise by `<namespace>/<name>`.

use std::{borrow::Borrow, sync::Arc};

/// The name of an object, with its namespace if it has one. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(Arc<str>);

impl Key {
    pub(crate) fn new(namespace: Option<&str>, name: &str) -> Key {
        match namespace {
            Some(namespace) => Key([namespace, "/", name].concat().into()),
            None => Key(name.into()),
        }
    }

    pub(crate) fn from_text(text: &str) -> Key {
        Key(text.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    pub(crate) fn name(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(_, name)| name)
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}
