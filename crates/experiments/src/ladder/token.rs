//! The token that all rungs show, found before any of them starts: Google's application default credentials.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use reqsign_core::{CommandExecute, CommandOutput, Context, FileRead, HttpSend, OsEnv, Signer};
use reqsign_google::{DefaultCredentialProvider, EnvCredentialProvider, RequestSigner};

use super::Error;
use super::rival::{Protocol, Rival};
use super::site::Origin;
use super::trust::Roots;

/// How long a token server may take. A machine without a metadata server often swallows the packets to it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whom a token is for, as the store's own rule has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trusted {
    Google,
    Named,
    Nobody,
}

/// The `Authorization` that a server is shown: Google the default credentials, another one over TLS what
/// `GOOGLE_APPLICATION_CREDENTIALS` names, a plain-HTTP one nothing.
///
/// # Errors
/// [`Error::Credentials`] when Google's are wanted and there are none, or they can't be used.
pub(super) async fn find(origin: &Origin, roots: &Roots) -> Result<Option<HeaderValue>, Error> {
    let named = std::env::var_os("GOOGLE_APPLICATION_CREDENTIALS").is_some_and(|name| !name.is_empty());
    let context = Context::new()
        .with_http_send(OverRival { roots: roots.clone() })
        .with_file_read(Files)
        .with_env(OsEnv)
        .with_command_execute(NoCommands);
    let signer = RequestSigner::new("storage");
    let signer = match trusted(origin, named) {
        Trusted::Nobody => return Ok(None),
        Trusted::Google => Signer::new(context, DefaultCredentialProvider::new(), signer),
        Trusted::Named => Signer::new(context, EnvCredentialProvider::new(), signer),
    };
    let failed = |why: String| Error::Credentials(why.lines().next().unwrap_or_default().to_owned());
    let request = http::Request::get("https://storage.googleapis.com/").body(());
    let mut parts = request.map_err(|e| failed(e.to_string()))?.into_parts().0;
    signer.sign(&mut parts, None).await.map_err(|e| failed(e.to_string()))?;
    Ok(parts.headers.remove(AUTHORIZATION))
}

fn trusted(origin: &Origin, named: bool) -> Trusted {
    let google = origin.host == "googleapis.com" || origin.host.ends_with(".googleapis.com");
    match origin.https {
        false => Trusted::Nobody,
        true if google => Trusted::Google,
        true if named => Trusted::Named,
        true => Trusted::Nobody,
    }
}

#[derive(Debug)]
struct OverRival {
    roots: Roots,
}

impl HttpSend for OverRival {
    async fn http_send(&self, request: http::Request<Bytes>) -> reqsign_core::Result<http::Response<Bytes>> {
        let invalid = || reqsign_core::Error::config_invalid("a token URL that is no URL");
        let origin = Origin::of(request.uri()).ok_or_else(invalid)?;
        let tls = origin.https.then(|| self.roots.config(Protocol::H1));
        let failed = |e: String| reqsign_core::Error::unexpected(e);
        let exchange = async {
            let rival = Rival::at(origin.clone(), tls);
            rival.connect_h1().await?.send(request).await
        };
        let answer = tokio::time::timeout(PATIENCE, exchange)
            .await
            .map_err(|_| failed(format!("{} doesn't answer", origin.host)))?
            .map_err(|e| failed(e.to_string()))?;
        let mut response = http::Response::new(answer.body);
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}

#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> reqsign_core::Result<Vec<u8>> {
        std::fs::read(path).map_err(|e| reqsign_core::Error::config_invalid(format!("{path}: {e}")))
    }
}

/// Credentials that a command prints are left to the program itself.
#[derive(Debug)]
struct NoCommands;

impl CommandExecute for NoCommands {
    async fn command_execute<'a>(
        &'a self,
        program: &'a str,
        _: &'a [&'a str],
    ) -> reqsign_core::Result<CommandOutput> {
        Err(reqsign_core::Error::config_invalid(format!("{program} is not run for a benchmark")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_to_google_or_where_it_was_meant_to() {
        let origin = |url: &str| Origin::of(&url.parse().unwrap()).unwrap();
        assert_eq!(trusted(&origin("https://storage.googleapis.com"), false), Trusted::Google);
        assert_eq!(trusted(&origin("https://evilgoogleapis.com"), false), Trusted::Nobody);
        assert_eq!(trusted(&origin("https://127.0.0.1:1"), true), Trusted::Named);
        assert_eq!(trusted(&origin("http://storage.googleapis.com"), true), Trusted::Nobody);
    }
}
