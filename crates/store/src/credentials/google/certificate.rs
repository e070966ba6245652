//! Workload certificates: finds the configured one, makes the token from it, and decides if GCS connections use it
//! (<https://google.aip.dev/auth/4114>, <https://google.aip.dev/auth/4117>). The rules are google-auth's.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use laneway_lanes::ClientCertificate;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde::Deserialize;

use super::super::request::malformed;
use super::adc::{CertificateSource, GOOGLE, gcloud_folder, is_absent, text};
use crate::Environment;

/// The configuration that names a certificate's files, as `gcloud iam workload-identity-pools create-cred-config`
/// writes it.
#[derive(Deserialize)]
struct CertificateConfig {
    cert_configs: CertificateConfigs,
}

#[derive(Deserialize)]
struct CertificateConfigs {
    /// The only entry that Laneway uses. The other entries describe the key stores of desktop systems.
    workload: Option<Workload>,
}

#[derive(Deserialize)]
struct Workload {
    cert_path: String,
    key_path: String,
}

/// Returns the path of the configuration file, and the environment variable that names this path, if one does.
fn location(environment: &Environment) -> Option<(Option<&'static str>, PathBuf)> {
    for name in ["GOOGLE_API_CERTIFICATE_CONFIG", "CLOUDSDK_CONTEXT_AWARE_CERTIFICATE_CONFIG_FILE_PATH"] {
        if let Some(path) = environment.get(name) {
            return Some((Some(name), environment.path(&path)));
        }
    }
    Some((None, gcloud_folder(environment)?.join("certificate_config.json")))
}

/// Returns the files of the certificate to which a credentials file refers.
///
/// # Errors
/// Returns the mistake in the configuration that names them.
pub(super) fn configured(
    source: &CertificateSource,
    environment: &Environment,
) -> Result<ClientCertificate, String> {
    let (by, path) = match text(&source.certificate_config_location) {
        Some(path) => (None, environment.path(path)),
        None => location(environment).ok_or(
            "can't tell where gcloud keeps certificate_config.json: neither CLOUDSDK_CONFIG nor a home \
             directory is set",
        )?,
    };
    read(by, &path)?.ok_or_else(|| format!("{}: it has no cert_configs.workload", named(by, &path)))
}

fn named(by: Option<&str>, path: &Path) -> String {
    match by {
        Some(by) => format!("{by} ({})", path.display()),
        None => path.display().to_string(),
    }
}

fn read(by: Option<&str>, path: &Path) -> Result<Option<ClientCertificate>, String> {
    let bad = |cause: String| format!("{}: {cause}", named(by, path));
    let document = std::fs::read(path).map_err(|e| bad(e.to_string()))?;
    let document: CertificateConfig = serde_json::from_slice(&document).map_err(|e| bad(malformed(&e)))?;
    let Some(Workload { cert_path, key_path }) = document.cert_configs.workload else { return Ok(None) };
    for (field, value) in [("cert_path", &cert_path), ("key_path", &key_path)] {
        if value.is_empty() {
            return Err(bad(format!("its {field} is empty")));
        }
    }
    Ok(Some(ClientCertificate { certificate_file: cert_path.into(), key_file: key_path.into() }))
}

/// Returns the subject token: a JSON list that contains the client's certificate and then the certificates of the trust
/// chain file, if one is configured. Each is in base64. The server must also see the client's certificate in the TLS
/// handshake.
///
/// # Errors
/// Returns the file that can't be used, and why.
pub(super) fn subject(source: &CertificateSource, pair: &ClientCertificate) -> Result<String, String> {
    let own = certificates(&pair.certificate_file)?;
    let mut chain = own.into_iter().take(1).collect::<Vec<_>>();
    if let Some(path) = text(&source.trust_chain_path) {
        for (n, issuer) in certificates(Path::new(path))?.into_iter().enumerate() {
            match (chain.first() == Some(&issuer), n) {
                (false, _) => chain.push(issuer),
                (true, 0) => {}
                (true, _) => {
                    return Err(format!(
                        "{path}: the client's own certificate must come before its issuer's"
                    ));
                }
            }
        }
    }
    let chain: Vec<_> = chain.iter().map(|certificate| BASE64_STANDARD.encode(certificate)).collect();
    serde_json::to_string(&chain).map_err(|e| e.to_string())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bad = |cause: &str| format!("{}: {cause}", path.display());
    let pem = std::fs::read(path).map_err(|e| bad(&e.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|_| bad("it isn't PEM"))?;
    if found.is_empty() { Err(bad("it holds no certificate")) } else { Ok(found) }
}

/// The default GCS endpoint.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct StorageEndpoint {
    pub(super) host: String,
    pub(super) certificate: Option<ClientCertificate>,
}

/// Returns the endpoint for mutual TLS if a workload's certificate is configured. GCS requires mutual TLS only if the
/// organisation's administrators have bound tokens to certificates. But Google's own clients use it whenever a
/// certificate exists, so Laneway does too.
///
/// # Errors
/// Returns the reason why a requested certificate can't be used.
pub(super) fn storage_endpoint(universe: &str, environment: &Environment) -> Result<StorageEndpoint, String> {
    const ASKED: [&str; 2] =
        ["GOOGLE_API_USE_CLIENT_CERTIFICATE", "CLOUDSDK_CONTEXT_AWARE_USE_CLIENT_CERTIFICATE"];
    let asked = ASKED.iter().find_map(|name| Some((*name, environment.switch(name)?)));
    let found = match (asked, location(environment)) {
        (Some((_, false)), _) => None,
        (Some((name, true)), location) => {
            let (by, path) =
                location.ok_or_else(|| format!("{name} is true, but no certificate is set up"))?;
            let found = read(by, &path).map_err(|cause| format!("{name} is true: {cause}"))?;
            let none = || format!("{name} is true: {}: it has no cert_configs.workload", named(by, &path));
            Some(found.ok_or_else(none)?)
        }
        (None, Some((by, path))) if by.is_some() || !is_absent(&path) => read(by, &path)?,
        (None, _) => None,
    };
    let is_mutual = match environment.get("GOOGLE_API_USE_MTLS_ENDPOINT").as_deref() {
        Some("never") => false,
        Some("always") => true,
        None | Some("auto") => found.is_some(),
        Some(other) => {
            return Err(format!(
                "GOOGLE_API_USE_MTLS_ENDPOINT is {other:?}: it must be auto, always or never"
            ));
        }
    };
    match is_mutual {
        true if universe != GOOGLE => {
            Err(format!("a client certificate is set up, but the cloud of {universe} doesn't accept any"))
        }
        true => Ok(StorageEndpoint { host: format!("storage.mtls.{universe}"), certificate: found }),
        false => Ok(StorageEndpoint { host: format!("storage.{universe}"), certificate: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint_of(document: &str, variables: &[(&str, &str)]) -> Result<(String, bool), String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("certificate_config.json");
        std::fs::write(&path, document).expect("a file");
        let named = [("GOOGLE_API_CERTIFICATE_CONFIG", path.to_str().expect("text"))];
        let environment = Environment::of(named.into_iter().chain(variables.iter().copied()));
        storage_endpoint(GOOGLE, &environment).map(|found| (found.host, found.certificate.is_some()))
    }

    #[test]
    fn shows_gcs_a_configured_workload_certificate_unless_it_is_turned_off() {
        const WORKLOAD: &str = r#"{"cert_configs":{"workload":{"cert_path":"/c","key_path":"/k"}}}"#;
        const LAPTOP: &str = r#"{"cert_configs":{"pkcs11":{"slot":"0x1"}}}"#;
        let plain = Ok(("storage.googleapis.com".to_owned(), false));
        let mutual = |shown| Ok(("storage.mtls.googleapis.com".to_owned(), shown));
        assert_eq!(endpoint_of(WORKLOAD, &[]), mutual(true));
        assert_eq!(endpoint_of(LAPTOP, &[]), plain);
        assert_eq!(endpoint_of(WORKLOAD, &[("GOOGLE_API_USE_CLIENT_CERTIFICATE", "false")]), plain);
        assert_eq!(endpoint_of(WORKLOAD, &[("GOOGLE_API_USE_MTLS_ENDPOINT", "never")]), plain);
        assert_eq!(endpoint_of(LAPTOP, &[("GOOGLE_API_USE_MTLS_ENDPOINT", "always")]), mutual(false));
        assert_eq!(
            storage_endpoint(GOOGLE, &Environment::of([("HOME", "/nowhere")])).expect("an endpoint").host,
            "storage.googleapis.com"
        );
        for (document, variables, words) in [
            (LAPTOP, &[("GOOGLE_API_USE_CLIENT_CERTIFICATE", "true")][..], "no cert_configs.workload"),
            ("{", &[], "certificate_config.json"),
            (WORKLOAD, &[("GOOGLE_API_USE_MTLS_ENDPOINT", "perhaps")], "perhaps"),
        ] {
            let error = endpoint_of(document, variables).expect_err("no endpoint");
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn another_cloud_takes_no_certificates() {
        let always = Environment::of([("GOOGLE_API_USE_MTLS_ENDPOINT", "always")]);
        assert!(
            storage_endpoint("apis-own.example", &always)
                .is_err_and(|error| error.contains("apis-own.example"))
        );
    }
}
