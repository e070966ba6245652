//! Whether a metadata server is there at all, found out by a connection.

use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use super::deadline::within;

/// How long a connection to a metadata server may take. It is a hop away, and where there is none the packets are often
/// swallowed; AWS's and Google's clients wait 1 to 3 s.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// How long a server that refuses connections is looked for again where the machine is not its cloud's.
const REFUSALS: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(700)];

/// The same on one of its cloud's machines: an agent that answers in its place may start after the pod does.
const REFUSALS_AT_HOME: [Duration; 6] = [
    Duration::from_millis(300),
    Duration::from_millis(700),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(15),
];

/// Whose machine this may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cloud {
    Aws,
    Google,
}

impl Cloud {
    /// Whether the firmware's tables name this cloud.
    fn is_here(self) -> bool {
        let table = |name: &str| std::fs::read_to_string(format!("/sys/class/dmi/id/{name}"));
        let tables =
            ["sys_vendor", "product_name", "bios_vendor"].map(|name| table(name).unwrap_or_default());
        tables.iter().any(|text| self.is_named_in(text))
    }

    fn is_named_in(self, text: &str) -> bool {
        match self {
            Self::Aws => text.trim().starts_with("Amazon EC2"),
            Self::Google => text.trim().starts_with("Google"),
        }
    }
}

/// Whether something takes a connection there.
pub(super) async fn is_there(host: &str, port: u16, cloud: Cloud) -> bool {
    let (host, (done, found)) = (host.to_owned(), oneshot::channel());
    // A name may take its resolver longer than we wait.
    thread::spawn(move || {
        let pauses: &[Duration] = if cloud.is_here() { &REFUSALS_AT_HOME } else { &REFUSALS };
        let found = look(&host, port, pauses);
        let _ = done.send(found);
    });
    let limit = CONNECT_LIMIT * 3 + REFUSALS_AT_HOME.iter().sum();
    within(limit, found).await.is_some_and(|found| found.unwrap_or(false))
}

fn look(host: &str, port: u16, pauses: &[Duration]) -> bool {
    for pause in pauses.iter().map(Some).chain([None]) {
        let Ok(mut addresses) = (host, port).to_socket_addrs() else { return false };
        let tried = addresses.find_map(|address| match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
            Err(e) if e.kind() != ErrorKind::ConnectionRefused => None,
            answered => Some(answered.is_ok()),
        });
        match (tried, pause) {
            (Some(true), _) => return true,
            // Who refuses is there, and what listens may be on its way.
            (Some(false), Some(pause)) => thread::sleep(*pause),
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_takes_connections_is_there_and_what_refuses_them_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        assert!(look("127.0.0.1", port, &[]));
        drop(listener);
        assert!(!look("127.0.0.1", port, &[Duration::ZERO]));
        assert!(!look("no such host.invalid", 80, &[]));
    }

    #[test]
    fn a_cloud_is_known_by_its_firmware() {
        assert!(Cloud::Google.is_named_in("Google Compute Engine\n"));
        assert!(Cloud::Aws.is_named_in("Amazon EC2\n"));
        assert!(!Cloud::Aws.is_named_in("QEMU\n"));
    }
}
