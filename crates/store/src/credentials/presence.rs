//! Finds out if a metadata server exists, by connecting to it.

use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::thread;
use std::time::Duration;

use laneway_lanes::Lanes;
use tokio::sync::oneshot;

use super::deadline::within;
use super::request::{CredentialRequest, CredentialResponse};

/// The time limit of a connection to a metadata server. A metadata server is one network hop away. Where there is none,
/// the network often drops the packets, so a longer wait would only delay the program. AWS's and Google's clients wait
/// 1 to 3 s.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// The pauses between connection attempts to a server that refuses them, on a machine of another cloud.
const PAUSES: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(700)];

/// The pauses between attempts on a machine of the server's own cloud. There, Laneway also tries again after an attempt
/// without any answer. On Kubernetes, an agent replaces the server, and may start later than the pods.
const PAUSES_AT_HOME: [Duration; 6] = [
    Duration::from_millis(300),
    Duration::from_millis(700),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(15),
];

/// The time limit for the first answer of a server that no setting names. In some networks a firewall accepts every
/// connection, so a successful connection doesn't prove that there is a server.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// The cloud that a machine may belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cloud {
    Aws,
    Azure,
    Google,
}

impl Cloud {
    /// Returns true if the firmware's tables name this cloud. For Google, the product's name decides, because the
    /// vendor's name is the same on Google's laptops.
    fn is_here(self) -> bool {
        let (tables, name): (&[&str], &str) = match self {
            Self::Aws => (&["sys_vendor", "bios_vendor"], "Amazon EC2"),
            // Every virtual machine of Azure has this tag, and no other machine of Microsoft has it.
            Self::Azure => (&["chassis_asset_tag"], "7783-7084-3265-9085-8269-3286-77"),
            Self::Google => (&["product_name"], "Google"),
        };
        let table = |table: &&str| std::fs::read_to_string(format!("/sys/class/dmi/id/{table}"));
        tables.iter().any(|text| table(text).is_ok_and(|text| text.starts_with(name)))
    }
}

/// The outcome of a connection attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ProbeOutcome {
    There,
    Refused,
    Silent,
}

/// Returns true if a server accepts connections at this address.
pub(super) async fn is_there(host: &str, port: u16, cloud: Cloud) -> bool {
    let (host, (done, found)) = (host.to_owned(), oneshot::channel());
    // Resolving the host's name may take longer than our limit, so a new thread resolves and connects.
    let looking = move || {
        let is_home = cloud.is_here();
        let pauses: &[Duration] = if is_home { &PAUSES_AT_HOME } else { &PAUSES };
        let _ = done.send(search(|| look(&host, port), pauses, is_home, thread::sleep));
    };
    if thread::Builder::new().spawn(looking).is_err() {
        return false;
    }
    let limit = CONNECT_LIMIT * 7 + PAUSES_AT_HOME.iter().sum::<Duration>();
    within(limit, found).await.is_some_and(|found| found.unwrap_or(false))
}

/// Returns the first answer of a server that no setting names, or `None` if it takes too long.
pub(super) async fn first_answer(
    ask: &CredentialRequest,
    lanes: &Lanes,
) -> Option<Result<CredentialResponse, String>> {
    within(ANSWER_LIMIT, ask.send(lanes)).await
}

/// Tries to connect until the server accepts, the pauses are used up, or another attempt can't help.
fn search(
    look: impl Fn() -> ProbeOutcome,
    pauses: &[Duration],
    is_home: bool,
    pause: impl Fn(Duration),
) -> bool {
    let mut pauses = pauses.iter();
    loop {
        match (look(), pauses.next()) {
            (ProbeOutcome::There, _) => return true,
            // A refused connection shows that the host exists. Its server may be about to start, so try again.
            (ProbeOutcome::Refused, Some(length)) => pause(*length),
            (ProbeOutcome::Silent, Some(length)) if is_home => pause(*length),
            _ => return false,
        }
    }
}

fn look(host: &str, port: u16) -> ProbeOutcome {
    let Ok(addresses) = (host, port).to_socket_addrs() else { return ProbeOutcome::Silent };
    let mut seen = ProbeOutcome::Silent;
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
            Ok(_) => return ProbeOutcome::There,
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => seen = ProbeOutcome::Refused,
            Err(_) => {}
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_takes_connections_is_there_and_what_refuses_them_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        assert_eq!(look("127.0.0.1", port), ProbeOutcome::There);
        drop(listener);
        assert_eq!(look("127.0.0.1", port), ProbeOutcome::Refused);
        assert_eq!(look("no such host.invalid", 80), ProbeOutcome::Silent);
    }

    /// Returns the result of a search with these outcomes, and the number of its pauses.
    fn searched(sights: &[ProbeOutcome], is_home: bool) -> (bool, usize) {
        let (n, waited) = (Cell::new(0), RefCell::new(Vec::new()));
        let look = || sights[n.replace(n.get() + 1).min(sights.len() - 1)];
        let pauses: &[Duration] = if is_home { &PAUSES_AT_HOME } else { &PAUSES };
        let found = search(look, pauses, is_home, |pause| waited.borrow_mut().push(pause));
        (found, waited.into_inner().len())
    }

    #[test]
    fn an_agent_may_start_late_and_longest_on_its_clouds_machines() {
        assert_eq!(searched(&[ProbeOutcome::Refused, ProbeOutcome::There], false), (true, 1));
        assert_eq!(searched(&[ProbeOutcome::Refused], false), (false, PAUSES.len()));
        assert_eq!(searched(&[ProbeOutcome::Silent], false), (false, 0));
        assert_eq!(
            searched(&[ProbeOutcome::Silent, ProbeOutcome::Refused, ProbeOutcome::There], true),
            (true, 2)
        );
        assert_eq!(searched(&[ProbeOutcome::Silent], true), (false, PAUSES_AT_HOME.len()));
    }
}
