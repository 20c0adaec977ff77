//! The verbs of requests.

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads what is no object, or asks for a review.
    Document,
    /// Reads an object.
    Get,
    /// Reads objects.
    List,
    /// Follows the changes of objects.
    Watch,
    /// Makes an object.
    Create,
    /// Puts an object in the place of one.
    Update,
    /// Changes an object.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes objects.
    DeleteCollection,
}

impl Verb {
    /// What rules call it; none for what is no object.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Document => "",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        }
    }

    /// The verb that rules call so.
    pub(crate) fn find(name: &str) -> Option<Verb> {
        let verbs = [
            Verb::Get,
            Verb::List,
            Verb::Watch,
            Verb::Create,
            Verb::Update,
            Verb::Patch,
            Verb::Delete,
            Verb::DeleteCollection,
        ];
        verbs.into_iter().find(|verb| verb.name() == name)
    }

    /// Whether it can change anything.
    pub fn is_write(self) -> bool {
        match self {
            Verb::Document | Verb::Get | Verb::List | Verb::Watch => false,
            Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => true,
        }
    }
}
