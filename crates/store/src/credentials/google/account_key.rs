//! The private key of a service account.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::RSA_PKCS1_SHA256;
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;

use super::adc::ServiceAccount;

/// The RSA key with which a service account signs.
pub(super) struct AccountKey(KeyPair);

impl AccountKey {
    /// Reads the key of an account's file.
    ///
    /// # Errors
    /// Fails if the text isn't a key. The error doesn't repeat it.
    pub(super) fn of(account: &ServiceAccount) -> Result<Self, String> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(account.private_key.as_bytes())
            .map_err(|_| "its private_key isn't an RSA key in PEM format")?;
        let key = KeyPair::from_pkcs8(der.secret_pkcs8_der());
        key.map(Self).map_err(|e| format!("its private_key can't sign: {e}"))
    }

    /// Signs a text with RSA and SHA-256 (PKCS #1 v1.5).
    ///
    /// # Errors
    /// Fails if the key can't sign.
    pub(super) fn sign(&self, text: &str) -> Result<Vec<u8>, String> {
        let mut signature = vec![0; self.0.public().modulus_len()];
        self.0
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
            .map_err(|_| "its private_key can't sign")?;
        Ok(signature)
    }

    /// Returns a signed JSON Web Token (RFC 7519) with `claims`. Its header names the algorithm `RS256`.
    ///
    /// # Errors
    /// As for [`sign`](Self::sign).
    pub(super) fn json_web_token(&self, header: &Value, claims: &Value) -> Result<String, String> {
        let encoded = |document: &Value| BASE64_URL_SAFE_NO_PAD.encode(document.to_string());
        let text = format!("{}.{}", encoded(header), encoded(claims));
        let signature = self.sign(&text)?;
        Ok(format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }
}
