//! Rules for names. Each function returns the messages for the rules that a text breaks. Empty if the text is valid.

const LABEL_LENGTH_MAX: usize = 63;
const SUBDOMAIN_LENGTH_MAX: usize = 253;
const PORT_NAME_LENGTH_MAX: usize = 15;

const LABEL_FORM: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                          start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                          validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_FORM: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                              '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used \
                              for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const KEY_FORM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                        alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_FORM: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                          and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
                          '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY_FORM: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
                               'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
                               '[-._a-zA-Z0-9]+')";

/// One part of a DNS name.
pub(super) fn dns_label(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > LABEL_LENGTH_MAX {
        messages.push(too_long(LABEL_LENGTH_MAX, "characters"));
    }
    if !is_dns_label(text) {
        let has_dots = text.split('.').all(is_dns_label);
        messages.push(if has_dots { "must not contain dots" } else { LABEL_FORM }.to_owned());
    }
    messages
}

/// A DNS name.
pub(super) fn dns_subdomain(text: &str) -> Vec<String> {
    subdomain(text, "characters")
}

fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > SUBDOMAIN_LENGTH_MAX {
        messages.push(too_long(SUBDOMAIN_LENGTH_MAX, unit));
    }
    if !text.split('.').all(is_dns_label) {
        messages.push(SUBDOMAIN_FORM.to_owned());
    }
    messages
}

/// A segment of a URL's path.
pub(super) fn path_segment(text: &str, is_prefix: bool) -> Vec<String> {
    if !is_prefix && matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    let bad = ['/', '%'].into_iter().filter(|character| text.contains(*character));
    bad.map(|character| format!("may not contain '{character}'")).collect()
}

/// The key of a label; also a qualified name.
pub(crate) fn label_key(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {KEY_FORM} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            messages.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            messages.extend(
                subdomain(prefix, "bytes")
                    .into_iter()
                    .map(|message| format!("prefix part {message}")),
            );
            name
        }
    };
    if name.is_empty() {
        messages.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LENGTH_MAX {
        messages.push(format!("name part {}", too_long(LABEL_LENGTH_MAX, "bytes")));
    }
    if !is_label_key(name) {
        messages.push(format!("name part {KEY_FORM}"));
    }
    messages
}

/// The value of a label.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > LABEL_LENGTH_MAX {
        messages.push(too_long(LABEL_LENGTH_MAX, "bytes"));
    }
    if !text.is_empty() && !is_label_key(text) {
        messages.push(VALUE_FORM.to_owned());
    }
    messages
}

/// The key of an entry in a `ConfigMap`.
pub(super) fn config_key(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > SUBDOMAIN_LENGTH_MAX {
        messages.push(too_long(SUBDOMAIN_LENGTH_MAX, "characters"));
    }
    if text.is_empty() || !text.bytes().all(is_key_byte) {
        messages.push(CONFIG_KEY_FORM.to_owned());
    }
    match text {
        "." | ".." => messages.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => messages.push("must not start with '..'".to_owned()),
        _ => {}
    }
    messages
}

/// The name of an environment variable.
pub(super) fn environment_variable(text: &str) -> Vec<String> {
    let is_allowed = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    if text.bytes().all(is_allowed) {
        return Vec::new();
    }
    let message = "a valid environment variable name must consist only of printable ASCII characters other than '='";
    vec![message.to_owned()]
}

/// A path below a domain, such as `example.com/name`.
pub(super) fn domain_prefixed_path(text: &str) -> Vec<String> {
    if text.is_empty() {
        return vec!["must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned()];
    }
    let Some((domain, path)) = text
        .split_once('/')
        .filter(|(domain, path)| !domain.is_empty() && !path.is_empty())
    else {
        return vec!["must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned()];
    };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=%:".contains(&byte);
    let mut messages = dns_subdomain(domain);
    if !path.bytes().all(is_allowed) {
        messages.push("Invalid path".to_owned());
    }
    messages
}

/// The name of a port.
pub(super) fn port(text: &str) -> Vec<String> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let rules = [
        (
            text.len() <= PORT_NAME_LENGTH_MAX,
            too_long(PORT_NAME_LENGTH_MAX, "characters"),
        ),
        (
            !text.is_empty() && text.bytes().all(is_allowed),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        ),
        (
            text.bytes().any(|byte| byte.is_ascii_lowercase()),
            "must contain at least one letter (a-z)".to_owned(),
        ),
        (!text.contains("--"), "must not contain consecutive hyphens".to_owned()),
        (
            !text.starts_with('-') && !text.ends_with('-'),
            "must not begin or end with a hyphen".to_owned(),
        ),
    ];
    rules
        .into_iter()
        .filter(|(holds, _)| !holds)
        .map(|(_, message)| message)
        .collect()
}

/// Formats the message for a text that is too long. The unit is "characters" for names and "bytes" for labels, as in
/// the server. All lengths are in bytes.
fn too_long(length_max: usize, unit: &str) -> String {
    format!("must be no more than {length_max} {unit}")
}

fn is_dns_label(text: &str) -> bool {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_alphanumeric)
        && bytes.last().is_some_and(is_alphanumeric)
        && bytes.iter().all(|byte| is_alphanumeric(byte) || *byte == b'-')
}

fn is_label_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && text.bytes().all(is_key_byte)
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}
