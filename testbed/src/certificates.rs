//! Keys and certificates of a control plane, generated at each start.
//!
//! All keys are EC P-256. Service account tokens are signed with ES256, which the API server accepts like RSA.
//! Generating an EC key takes a millisecond.

use std::{fs, path::Path};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// Why keys or certificates are missing.
#[derive(Debug, thiserror::Error)]
pub enum CertificatesError {
    /// A key or a certificate could not be generated.
    #[error("cannot make the certificate {name}")]
    Make {
        /// The certificate.
        name: &'static str,
        /// The cause.
        source: rcgen::Error,
    },
    /// A key or a certificate could not be written.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
}

/// Host names of the API server, in the cluster and on loopback.
const API_SERVER_NAMES: [&str; 5] = [
    "127.0.0.1",
    "10.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default.svc",
];

/// A certificate signed by the CA. Certificates with alternative names are for servers, the others for clients.
struct Leaf {
    name: &'static str,
    common_name: &'static str,
    organization: Option<&'static str>,
    subject_alt_names: &'static [&'static str],
}

const LEAVES: [Leaf; 6] = [
    Leaf {
        name: "apiserver",
        common_name: "kube-apiserver",
        organization: None,
        subject_alt_names: &API_SERVER_NAMES,
    },
    Leaf {
        name: "kcm-serving",
        common_name: "kube-controller-manager",
        organization: None,
        subject_alt_names: &["127.0.0.1", "localhost"],
    },
    Leaf {
        name: "admin",
        common_name: "admin",
        organization: Some("system:masters"),
        subject_alt_names: &[],
    },
    Leaf {
        name: "kwok",
        common_name: "kwok",
        organization: Some("system:masters"),
        subject_alt_names: &[],
    },
    Leaf {
        name: "kcm",
        common_name: "system:kube-controller-manager",
        organization: None,
        subject_alt_names: &[],
    },
    Leaf {
        name: "scheduler",
        common_name: "system:kube-scheduler",
        organization: None,
        subject_alt_names: &[],
    },
];

/// The client certificate with which the API server forwards requests to aggregated API servers.
const FRONT_PROXY: Leaf = Leaf {
    name: "front-proxy",
    common_name: "front-proxy",
    organization: None,
    subject_alt_names: &[],
};

/// Writes all keys and certificates into `folder`: `<name>.crt` and `<name>.key` for the CA and for each leaf,
/// `fp-ca.crt`, `sa.key` and `sa.pub`.
pub(crate) fn write_all(folder: &Path) -> Result<(), CertificatesError> {
    let ca = authority("ca")?;
    write(folder, "ca.crt", &ca.pem())?;
    // A second CA, for the requests that the API server forwards. The API server refuses to start if both CAs are the
    // same.
    let front_proxy_ca = authority("fp-ca")?;
    write(folder, "fp-ca.crt", &front_proxy_ca.pem())?;
    write_leaf(folder, &FRONT_PROXY, &front_proxy_ca)?;
    for leaf in &LEAVES {
        write_leaf(folder, leaf, &ca)?;
    }
    let service_accounts = KeyPair::generate().map_err(|source| CertificatesError::Make { name: "sa", source })?;
    write(folder, "sa.key", &service_accounts.serialize_pem())?;
    write(folder, "sa.pub", &service_accounts.public_key_pem())
}

fn write_leaf(
    folder: &Path,
    leaf: &Leaf,
    authority: &CertifiedIssuer<'static, KeyPair>,
) -> Result<(), CertificatesError> {
    let make = |source| CertificatesError::Make {
        name: leaf.name,
        source,
    };
    let key = KeyPair::generate().map_err(make)?;
    let certificate = leaf_params(leaf).map_err(make)?.signed_by(&key, authority);
    write(folder, &format!("{}.crt", leaf.name), &certificate.map_err(make)?.pem())?;
    write(folder, &format!("{}.key", leaf.name), &key.serialize_pem())
}

fn authority(name: &'static str) -> Result<CertifiedIssuer<'static, KeyPair>, CertificatesError> {
    let make = |source| CertificatesError::Make { name, source };
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(name, None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    set_validity(&mut params);
    CertifiedIssuer::self_signed(params, KeyPair::generate().map_err(make)?).map_err(make)
}

fn leaf_params(leaf: &Leaf) -> Result<CertificateParams, rcgen::Error> {
    let names: Vec<String> = leaf.subject_alt_names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = subject(leaf.common_name, leaf.organization);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    params.extended_key_usages = if leaf.subject_alt_names.is_empty() {
        vec![ExtendedKeyUsagePurpose::ClientAuth]
    } else {
        vec![ExtendedKeyUsagePurpose::ServerAuth]
    };
    set_validity(&mut params);
    Ok(params)
}

fn subject(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}

/// A long validity, so that certificates are valid for processes whose clock a test has shifted.
fn set_validity(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(2049, 12, 31);
}

fn write(folder: &Path, file: &str, pem: &str) -> Result<(), CertificatesError> {
    let path = folder.join(file);
    fs::write(&path, pem).map_err(|source| CertificatesError::Write {
        path: path.display().to_string(),
        source,
    })
}
