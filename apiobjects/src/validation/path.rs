//! The path of a field. It is formatted only when an error contains it.

use std::fmt;

/// A field and the path of its parent.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// A member of the root object.
    pub(super) const fn root(name: &'a str) -> Path<'a> {
        Path {
            parent: None,
            step: Step::Member(name),
        }
    }

    /// A member of this field.
    pub(super) fn child(&'a self, name: &'a str) -> Path<'a> {
        Path {
            parent: Some(self),
            step: Step::Member(name),
        }
    }

    /// An element of this list.
    pub(super) fn index(&'a self, at: usize) -> Path<'a> {
        Path {
            parent: Some(self),
            step: Step::Index(at),
        }
    }

    /// An entry of this map.
    pub(super) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path {
            parent: Some(self),
            step: Step::Key(key),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(formatter)?;
        }
        match self.step {
            // The whole object.
            Step::Member("") => formatter.write_str("[]"),
            Step::Member(name) if self.parent.is_none() => formatter.write_str(name),
            Step::Member(name) => write!(formatter, ".{name}"),
            Step::Index(at) => write!(formatter, "[{at}]"),
            Step::Key(key) => write!(formatter, "[{key}]"),
        }
    }
}
