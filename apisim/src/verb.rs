//! The verbs of requests.

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads a document that is not an object, or requests a review.
    Document,
    /// Reads one object.
    Get,
    /// Lists objects.
    List,
    /// Watches objects.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Patches an object.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes objects.
    DeleteCollection,
}

impl Verb {
    /// The name in RBAC rules. Empty for documents.
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

    /// Returns the verb with this name in RBAC rules.
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

    /// Whether the verb can change objects.
    pub fn is_write(self) -> bool {
        match self {
            Verb::Document | Verb::Get | Verb::List | Verb::Watch => false,
            Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => true,
        }
    }
}
