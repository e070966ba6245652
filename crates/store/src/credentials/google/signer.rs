//! Signs for a service account: with its private key, or through IAM for an identity that may impersonate the account
//! (<https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/signBlob>).

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use laneway_lanes::Lanes;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::RSA_PKCS1_SHA256;
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::failure::CredentialFailure;
use super::super::request::CredentialRequest;
use super::adc::ServiceAccount;
use super::token::{Token, refusal};

/// A service account, with its key or IAM's URL to sign for it.
pub(crate) struct AccountSigner {
    email: String,
    /// The source's name in error messages.
    source: String,
    by: SigningMethod,
}

enum SigningMethod {
    /// The account's own key.
    Key(Box<AccountKey>),
    Iam(IamSigner),
}

/// The URL and the token with which IAM signs for the account.
struct IamSigner {
    url: String,
    delegates: Vec<String>,
    token: Token,
    lanes: Lanes,
}

impl AccountSigner {
    /// Returns a signer for a service account, with the private key from its file.
    ///
    /// # Errors
    /// Fails if the text isn't a key. The error doesn't repeat it.
    pub(super) fn of_key(source: &str, account: &ServiceAccount) -> Result<Self, String> {
        let key = AccountKey::of(account)?;
        let (email, source) = (account.client_email.clone(), source.to_owned());
        Ok(Self { email, source, by: SigningMethod::Key(Box::new(key)) })
    }

    /// Returns a signer for the account that an IAM URL names. IAM signs, and `token` authorises the request to IAM.
    pub(super) fn of_iam(
        source: &str,
        (url, email): (String, String),
        delegates: &[String],
        token: Token,
        lanes: &Lanes,
    ) -> Self {
        let iam = IamSigner { url, delegates: delegates.to_vec(), token, lanes: lanes.clone() };
        Self { email, source: source.to_owned(), by: SigningMethod::Iam(iam) }
    }

    pub(crate) fn email(&self) -> &str {
        &self.email
    }

    /// Returns true if IAM signs. Google regularly replaces the key with which IAM signs, so signatures become invalid
    /// after a while.
    pub(crate) fn is_rotated(&self) -> bool {
        matches!(self.by, SigningMethod::Iam(_))
    }

    /// Returns the signature, RSA with SHA-256 (PKCS #1 v1.5).
    ///
    /// # Errors
    /// `Unauthenticated`, with IAM's error.
    pub(crate) async fn sign(&self, text: &str) -> Result<Vec<u8>, crate::Error> {
        let signature = match &self.by {
            SigningMethod::Key(key) => key.sign(text),
            SigningMethod::Iam(iam) => iam.sign(text).await,
        };
        signature.map_err(|cause| CredentialFailure::unusable(&self.source, cause).into_error())
    }
}

impl IamSigner {
    async fn sign(&self, text: &str) -> Result<Vec<u8>, String> {
        let document = json!({"payload": BASE64_STANDARD.encode(text), "delegates": self.delegates});
        let authorization = format!("Bearer {}", self.token.access_token);
        let ask = CredentialRequest::json(&self.url, &document)?.header("authorization", &authorization)?;
        let answer = ask.send(&self.lanes).await?;
        if !answer.status.is_success() {
            return Err(format!("{} answered {}", ask.place(), refusal(&answer)));
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Document {
            signed_blob: String,
        }
        let Document { signed_blob } = answer.json().map_err(|e| format!("{}: {e}", ask.place()))?;
        let signature = BASE64_STANDARD.decode(signed_blob);
        signature.map_err(|_| format!("{}: its signedBlob isn't base64", ask.place()))
    }
}

/// Converts the URL at which IAM issues an account's tokens into the URL at which it signs for that account. Returns
/// the new URL and the account's email address.
///
/// # Errors
/// Fails if the URL names no account.
pub(super) fn beside(url: &str) -> Result<(String, String), String> {
    let named = || {
        let account = url.strip_suffix(":generateAccessToken")?;
        let (_, email) = account.rsplit_once("/serviceAccounts/")?;
        Some((format!("{account}:signBlob"), email.to_owned()))
    };
    named().ok_or_else(|| {
        "its service_account_impersonation_url doesn't name the account to sign for: it must end in \
         /serviceAccounts/EMAIL:generateAccessToken"
            .to_owned()
    })
}

/// Returns the URL at which a cloud's IAM signs for an account, and the account's email address.
pub(super) fn at(universe: &str, email: &str) -> (String, String) {
    let url = format!("https://iamcredentials.{universe}/v1/projects/-/serviceAccounts/{email}:signBlob");
    (url, email.to_owned())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_signed_for_where_its_tokens_are() {
        let base =
            "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@p.iam.gserviceaccount.com";
        let found = beside(&format!("{base}:generateAccessToken")).expect("an account");
        assert_eq!(found, (format!("{base}:signBlob"), "a@p.iam.gserviceaccount.com".to_owned()));
        assert_eq!(at("googleapis.com", "a@p.iam.gserviceaccount.com"), found);
        assert!(beside("https://h/token").is_err());
    }
}
