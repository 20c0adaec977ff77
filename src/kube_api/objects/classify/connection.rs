//! The causes of failed connections to the API server, with remedies.

use std::{error::Error, io};

use rustls::CertificateError;

/// The text of an error without a known cause.
pub(super) const UNREACHABLE: &str = "the API server cannot be reached";

/// Errors of a server that cannot be reached.
const UNREACHABLE_KINDS: [(io::ErrorKind, &str); 4] = [
    (io::ErrorKind::ConnectionRefused, "connection refused"),
    (io::ErrorKind::HostUnreachable, "no route to it"),
    (io::ErrorKind::NetworkUnreachable, "no route to it"),
    (io::ErrorKind::TimedOut, "no answer in time"),
];

/// Returns the text for an error of the transport that has a known cause.
pub(super) fn connection_problem(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return Some(tls_problem(error));
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return io_problem(error);
        }
        // The request waited for a connection that another request opens.
        if error
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_canceled)
        {
            return Some(format!(
                "{UNREACHABLE}: the connection that the request waited for failed"
            ));
        }
        // Resolvers have no specific error type.
        if error.to_string() == "dns error" {
            return Some("the name of the API server cannot be resolved; check its address, and the DNS".to_owned());
        }
        next = error.source();
    }
    None
}

fn io_problem(error: &io::Error) -> Option<String> {
    // `io::Error::source` leaves out the error that it wraps.
    if let Some(inner) = error.get_ref()
        && let Some(problem) = connection_problem(inner)
    {
        return Some(problem);
    }
    let (_, cause) = UNREACHABLE_KINDS.iter().find(|(kind, _)| *kind == error.kind())?;
    Some(format!("{UNREACHABLE}: {cause}; check its address, and that it runs"))
}

/// Returns the problem with the certificate of the API server. The texts of rustls have `Debug` output.
fn certificate_problem(error: &CertificateError) -> String {
    use CertificateError as Is;
    if let Is::NotValidForName | Is::NotValidForNameContext { .. } = error {
        return "the certificate of the API server is for another name than its address has; use a name of the \
                certificate as address, or set tls-server-name in the kubeconfig"
            .to_owned();
    }
    if let Is::Expired | Is::ExpiredContext { .. } = error {
        return "the certificate of the API server has expired; renew it, or correct the clock of this machine"
            .to_owned();
    }
    if let Is::NotValidYet | Is::NotValidYetContext { .. } = error {
        return "the certificate of the API server is not valid yet; correct the clock of this machine".to_owned();
    }
    if let Is::UnknownIssuer | Is::BadSignature = error {
        return "the certificate of the API server is not trusted, since the configured CA did not sign it; set the cluster's CA as \
                certificate-authority in the kubeconfig"
            .to_owned();
    }
    format!(
        "the certificate of the API server is not accepted: {error}; issue another one, or set the cluster's CA as \
         certificate-authority in the kubeconfig"
    )
}

fn tls_problem(error: &rustls::Error) -> String {
    if let rustls::Error::InvalidCertificate(error) = error {
        return certificate_problem(error);
    }
    if let rustls::Error::InvalidMessage(_) = error {
        return "the API server does not speak TLS at this address; check scheme and port of its address".to_owned();
    }
    if let rustls::Error::AlertReceived(alert) = error {
        return format!(
            "the API server ended the TLS handshake: {alert:?}; check the client certificate of the kubeconfig"
        );
    }
    format!("no TLS connection to the API server: {error}")
}

#[cfg(test)]
mod tests {
    use rustls::{AlertDescription, InvalidMessage};

    use super::*;
    use crate::kube_api::objects::classify::error_text;

    #[derive(Debug, thiserror::Error)]
    #[error("listing Leases")]
    struct Listing(#[source] kube::Error);

    #[track_caller]
    fn check(error: impl Error + Send + Sync + 'static, expected: &str) {
        let error = kube::Error::Service(Box::new(error));
        assert_eq!(error_text(&error), expected);
        assert_eq!(error_text(&Listing(error)), format!("listing Leases: {expected}"));
    }

    #[test]
    fn a_transport_error_names_cause_and_remedy() {
        let kind = |kind| io::Error::from(kind);
        let tls = |error: rustls::Error| io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error));
        check(
            kind(io::ErrorKind::ConnectionRefused),
            "the API server cannot be reached: connection refused; check its address, and that it runs",
        );
        check(
            kind(io::ErrorKind::TimedOut),
            "the API server cannot be reached: no answer in time; check its address, and that it runs",
        );
        check(
            tls(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)),
            "the certificate of the API server is not trusted, since the configured CA did not sign it; set the cluster's CA as \
             certificate-authority in the kubeconfig",
        );
        check(
            tls(rustls::Error::InvalidCertificate(CertificateError::NotValidForName)),
            "the certificate of the API server is for another name than its address has; use a name of the certificate \
             as address, or set tls-server-name in the kubeconfig",
        );
        check(
            tls(rustls::Error::InvalidCertificate(CertificateError::Expired)),
            "the certificate of the API server has expired; renew it, or correct the clock of this machine",
        );
        check(
            tls(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)),
            "the API server does not speak TLS at this address; check scheme and port of its address",
        );
        check(
            tls(rustls::Error::AlertReceived(AlertDescription::CertificateRequired)),
            "the API server ended the TLS handshake: CertificateRequired; check the client certificate of the kubeconfig",
        );
    }

    #[test]
    fn other_errors_keep_their_text() {
        let error = kube::Error::Service(Box::new(io::Error::other("broken")));
        assert_eq!(error_text(&error), "ServiceError: broken");
    }

    #[test]
    fn an_api_error_has_its_message_and_code() {
        let status = kube::core::Status::failure("Unauthorized", "Unauthorized").with_code(401);
        let error = kube::Error::Api(Box::new(status));
        assert_eq!(error_text(&error), "Unauthorized (401)");
        assert_eq!(error_text(&Listing(error)), "listing Leases: Unauthorized (401)");
    }
}
