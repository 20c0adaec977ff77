//! The members that take shards, of every installation whose Leases can be seen.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use http::Method;
use jiff::Timestamp;
use serde::Deserialize;

use super::{LeaseApi, LeaseError, PAGE_MAX_BYTES, PAGE_SIZE, PAGES_MAX, answered, exchange::Request, unreadable};
use crate::{
    cluster::api::push_segment,
    state::lease::{Acceptance, LEASE_LABEL, MemberSettings, annotation},
};

/// A member that takes shards, as its Lease says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taker {
    /// The namespace of its Lease.
    pub namespace: String,
    /// The name of its installation.
    pub installation: String,
    /// Its scope and default time zone.
    pub settings: MemberSettings,
    /// When it was last renewed, by its own clock.
    pub renewed_at: Timestamp,
}

/// Where to look for members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseScope {
    /// In all namespaces.
    AllNamespaces,
    /// In the namespace of our Leases.
    OwnNamespace,
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    metadata: ListMetadata<'a>,
    #[serde(borrow, default)]
    items: Option<Vec<Lease<'a>>>,
}

#[derive(Deserialize)]
struct ListMetadata<'a> {
    #[serde(rename = "continue", borrow, default)]
    next: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Lease<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow, default)]
    spec: Option<Spec<'a>>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    labels: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
    #[serde(borrow, default)]
    annotations: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow, default)]
    holder_identity: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    renew_time: Option<Cow<'a, str>>,
}

impl Lease<'_> {
    fn taker(self) -> Option<Taker> {
        let annotations = self.metadata.annotations?;
        let spec = self.spec?;
        let accepts = annotations.get(annotation::ACCEPTS).map(Cow::as_ref) == Acceptance::Now.text();
        if !accepts || spec.holder_identity.is_none_or(|holder| holder.is_empty()) {
            return None;
        }
        Some(Taker {
            namespace: self.metadata.namespace.into_owned(),
            installation: self.metadata.labels?.remove(LEASE_LABEL)?.into_owned(),
            settings: MemberSettings::read(annotations.get(annotation::SETTINGS)?),
            renewed_at: spec.renew_time?.parse().ok()?,
        })
    }
}

impl LeaseApi {
    /// The members that take shards, ours among them, whatever their installations.
    ///
    /// # Errors
    ///
    /// As for [`LeaseApi::list`].
    pub async fn takers(&self, scope: LeaseScope, timeout: Duration) -> Result<Vec<Taker>, LeaseError> {
        let (what, path) = match scope {
            LeaseScope::AllNamespaces => (
                "listing the Leases of all installations".to_owned(),
                "/apis/coordination.k8s.io/v1/leases".to_owned(),
            ),
            LeaseScope::OwnNamespace => (format!("listing the Leases of {}", self.namespace), self.path(None)),
        };
        let mut takers = Vec::new();
        let mut next: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut path = format!("{path}?limit={PAGE_SIZE}&labelSelector=");
            push_segment(&mut path, LEASE_LABEL);
            if let Some(token) = &next {
                path.push_str("&continue=");
                push_segment(&mut path, token);
            }
            let request = Request::new(Method::GET, path).lives(timeout);
            let sent = self.exchange.send(request, PAGE_MAX_BYTES, timeout).await;
            let answer = answered(&what, sent)?;
            let list: List<'_> =
                serde_json::from_slice(&answer.body).map_err(|error| unreadable(&what, &error.into()))?;
            takers.extend(list.items.into_iter().flatten().filter_map(Lease::taker));
            next = list
                .metadata
                .next
                .filter(|token| !token.is_empty())
                .map(Cow::into_owned);
            if next.is_none() {
                break;
            }
        }
        Ok(takers)
    }
}
