//! Reads the elements of a page.

/// A start tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
}

impl Element {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn has_class(&self, class: &str) -> bool {
        self.attribute("class")
            .is_some_and(|classes| classes.split(' ').any(|one| one == class))
    }
}

const VOID: [&str; 6] = ["meta", "link", "input", "wbr", "br", "hr"];

/// All elements. Panics if an element is not closed, in the wrong order, or has an attribute twice.
pub(super) fn elements(page: &str) -> Vec<Element> {
    let (mut elements, mut open) = (Vec::new(), Vec::<String>::new());
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("no doctype");
    while let Some(start) = rest.find('<') {
        let tag_end = start + rest[start..].find('>').expect("a tag without end");
        let tag = &rest[start + 1..tag_end];
        rest = &rest[tag_end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closed in the wrong order");
            continue;
        }
        let element = element(tag);
        if !VOID.contains(&element.name.as_str()) {
            open.push(element.name.clone());
        }
        elements.push(element);
    }
    assert!(open.is_empty(), "not closed: {open:?}");
    elements
}

fn element(tag: &str) -> Element {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    let mut attributes: Vec<(String, String)> = Vec::new();
    while !rest.trim().is_empty() {
        let (key, value) = rest.trim_start().split_once("=\"").unwrap_or((rest.trim(), "\""));
        let (value, after) = value.split_once('"').expect("a value without end");
        assert!(attributes.iter().all(|(other, _)| other != key), "{key} twice in {tag}");
        attributes.push((key.to_owned(), unescaped(value)));
        rest = after;
    }
    Element {
        name: name.to_owned(),
        attributes,
    }
}

fn unescaped(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// The text of a page without its tags.
pub(super) fn visible_text(page: &str) -> String {
    let mut text = String::new();
    for piece in page.split('<') {
        let after = piece.split_once('>').map_or("", |(_, after)| after);
        text.push_str(after);
    }
    unescaped(&text)
}
