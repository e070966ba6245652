//! What reqsign needs of the world: HTTP over our lanes, files, variables, commands.

use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use laneway_lanes::{Body, Lanes, Origin};
use reqsign_core::{CommandExecute, CommandOutput, Context, Error, FileRead, HttpSend, OsEnv, Result};
use tokio::sync::oneshot;

use super::deadline::within;

/// How long a metadata server may take to be there at all. It is a hop away; a machine without one often swallows
/// the packets.
const METADATA_LIMIT: Duration = Duration::from_millis(1500);

/// How long a token server on the network may be silent.
const PATIENCE: Duration = Duration::from_secs(20);

/// The context of all credential sources.
pub(super) fn context(lanes: &Lanes) -> Context {
    Context::new()
        .with_http_send(OverLanes { lanes: lanes.clone() })
        .with_file_read(Files)
        .with_env(OsEnv)
        .with_command_execute(Commands)
}

/// Whether a host is a cloud's metadata server: link-local, and silent where there is none.
fn is_metadata_host(host: &str) -> bool {
    host == "metadata.google.internal" || host.starts_with("169.254.") || host == "fd00:ec2::254"
}

#[derive(Debug)]
struct OverLanes {
    lanes: Lanes,
}

impl HttpSend for OverLanes {
    async fn http_send(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>> {
        let (parts, body) = request.into_parts();
        let invalid = |e: String| Error::config_invalid(e);
        let origin = Origin::parse(&parts.uri.to_string()).map_err(|e| invalid(e.to_string()))?;
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        let target = target.parse().map_err(|_| invalid("a token URL that is no URL".to_owned()))?;
        let metadata = is_metadata_host(&origin.host);
        let mut request = laneway_lanes::Request::new(origin, parts.method, target);
        request.headers = parts.headers;
        request.body = Body::from(body);
        request.patience = Some(PATIENCE);
        let host = request.origin.host.clone();
        let exchange = self.lanes.exchange(request);
        let answer = if metadata {
            within(METADATA_LIMIT, exchange)
                .await
                .ok_or_else(|| Error::unexpected(format!("{host} doesn't answer")))?
        } else {
            exchange.await
        };
        let answer = answer.map_err(|e| Error::unexpected(e.to_string()).set_retryable(e.is_transient()))?;
        let mut response = http::Response::new(answer.body);
        *response.status_mut() = answer.head.status;
        *response.headers_mut() = answer.head.headers;
        Ok(response)
    }
}

/// Credential files are a few hundred bytes and are read once in a token's life, so that reading them where we stand
/// is cheaper than handing them to another thread.
#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> Result<Vec<u8>> {
        std::fs::read(path).map_err(|e| Error::config_invalid(format!("{path}: {e}")))
    }
}

#[derive(Debug)]
struct Commands;

impl CommandExecute for Commands {
    async fn command_execute<'a>(&'a self, program: &'a str, args: &'a [&'a str]) -> Result<CommandOutput> {
        let mut command = Command::new(program);
        command.args(args);
        let (done, output) = oneshot::channel();
        // A credential process may ask its user something; it must not hold up a thread of the caller's runtime.
        std::thread::spawn(move || {
            let _ = done.send(command.output());
        });
        let output = output.await.map_err(|_| Error::unexpected("the credential process was lost"))?;
        let output = output.map_err(|e| Error::config_invalid(format!("{program}: {e}")))?;
        Ok(CommandOutput {
            status: output.status.code().unwrap_or(-1),
            stdout: output.stdout,
            stderr: output.stderr,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_servers_are_known_by_their_addresses() {
        assert!(is_metadata_host("169.254.169.254"));
        assert!(is_metadata_host("169.254.170.2"));
        assert!(is_metadata_host("metadata.google.internal"));
        assert!(!is_metadata_host("sts.amazonaws.com"));
    }

    #[tokio::test]
    async fn a_command_gives_its_output_and_status() {
        let output = Commands.command_execute("sh", &["-c", "echo out; exit 3"]).await.expect("output");
        assert_eq!((output.status, output.stdout.as_slice()), (3, b"out\n".as_slice()));
        assert!(Commands.command_execute("/does/not/exist", &[]).await.is_err());
    }
}
