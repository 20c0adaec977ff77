//! Paths of objects.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The path of the core API group.
pub(super) const CORE: &str = "/api/v1";

/// The path of the API group of CronJobs and Jobs.
pub(super) const BATCH: &str = "/apis/batch/v1";

/// The path of the API group of Leases.
pub(super) const COORDINATION: &str = "/apis/coordination.k8s.io/v1";

/// The path of the API group of admission policies.
pub(super) const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// All but the unreserved characters of RFC 3986.
pub(crate) const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns a path within a namespace: `rest` is the plural of the resource, and then the name of one object and its
/// subresource, if they are meant.
pub(super) fn namespaced(api_group: &str, namespace: &str, rest: &[&str]) -> String {
    let mut path = format!("{api_group}/namespaces");
    for segment in [namespace].iter().chain(rest) {
        path.push('/');
        push_segment(&mut path, segment);
    }
    path
}

/// Appends a path segment. Names that the API server accepts need no escapes, but `status.active` may contain any name.
pub(super) fn push_segment(path: &mut String, segment: &str) {
    path.extend(utf8_percent_encode(segment, RESERVED));
}
