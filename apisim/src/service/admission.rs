//! The admission of creates, in the order of the API server: mutating webhooks, `creationTimestamp`, policies,
//! validating webhooks. The object is stored afterwards. A create that times out during admission is not stored.

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::sleep;

use super::{ApiService, ParsedRequest, write};
use crate::{Resource, failure::Failure, faults::Admission, objects::times::seconds};

impl ApiService {
    /// Waits for the webhooks and evaluates the policies. Returns the time of the `creationTimestamp`.
    pub(super) async fn admit(
        &self,
        request: &ParsedRequest,
        body: &[u8],
        admission: &Admission,
    ) -> Result<Timestamp, Failure> {
        if !admission.mutating.is_zero() {
            sleep(admission.mutating).await;
        }
        let created = self.api.shared.wall(request.front_end);
        if let Some(resource) = request.call.route.resource().filter(|_| !admission.latest.is_empty()) {
            let object = write::object(request, resource, body)?.object;
            for (policy, annotation) in &admission.latest {
                deny_late(resource, &object, (policy.as_str(), annotation.as_str()), created)?;
            }
        }
        if !admission.validating.is_zero() {
            sleep(admission.validating).await;
        }
        Ok(created)
    }
}

/// Denies an object that is created later than its annotation allows, or whose annotation is no time.
fn deny_late(
    resource: Resource,
    object: &Value,
    (policy, annotation): (&str, &str),
    created: Timestamp,
) -> Result<(), Failure> {
    let Some(latest) = object["metadata"]["annotations"][annotation].as_str() else {
        return Ok(());
    };
    // `creationTimestamp` has whole seconds.
    let is_late = |latest: Timestamp| created.as_second() > latest.as_second();
    if latest.parse().is_ok_and(|latest| !is_late(latest)) {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let why = format!(
        "ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: it came at {} and was to be \
         created by {latest}",
        seconds(created)
    );
    Err(Failure::forbidden(resource, name, &why))
}
