//! Whether a metadata server is there at all, found out by a connection.

use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::thread;
use std::time::Duration;

use laneway_lanes::Lanes;
use tokio::sync::oneshot;

use super::ask::{Answer, Ask};
use super::deadline::within;

/// How long a connection to a metadata server may take. It is a hop away, and where there is none the packets are often
/// swallowed; AWS's and Google's clients wait 1 to 3 s.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// How long a server that refuses connections is looked for again where the machine is not its cloud's.
const PAUSES: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(700)];

/// The same on one of its cloud's machines, where silence is no answer either: an agent that stands in for the server may
/// start after the pod does.
const PAUSES_AT_HOME: [Duration; 6] = [
    Duration::from_millis(300),
    Duration::from_millis(700),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(15),
];

/// How long a server that nobody named may take for its first answer: in some networks something takes every connection.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Whose machine this may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cloud {
    Aws,
    Google,
}

impl Cloud {
    /// Whether the firmware's tables name this cloud. Google's laptops have its name as vendor, but not as product.
    fn is_here(self) -> bool {
        let (tables, name): (&[&str], &str) = match self {
            Self::Aws => (&["sys_vendor", "bios_vendor"], "Amazon EC2"),
            Self::Google => (&["product_name"], "Google"),
        };
        let table = |table: &&str| std::fs::read_to_string(format!("/sys/class/dmi/id/{table}"));
        tables.iter().any(|text| table(text).is_ok_and(|text| text.starts_with(name)))
    }
}

/// How a look for a server ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    There,
    Refused,
    Silent,
}

/// Whether something takes a connection there.
pub(super) async fn is_there(host: &str, port: u16, cloud: Cloud) -> bool {
    let (host, (done, found)) = (host.to_owned(), oneshot::channel());
    // A name may take its resolver longer than we wait.
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

/// The first answer of a server that nobody named; `None` when it takes too long.
pub(super) async fn first_answer(ask: &Ask, lanes: &Lanes) -> Option<Result<Answer, String>> {
    within(ANSWER_LIMIT, ask.send(lanes)).await
}

/// Looks, and again after each pause while that can help.
fn search(look: impl Fn() -> Seen, pauses: &[Duration], is_home: bool, pause: impl Fn(Duration)) -> bool {
    let mut pauses = pauses.iter();
    loop {
        match (look(), pauses.next()) {
            (Seen::There, _) => return true,
            // Who refuses is there, and what listens may be on its way.
            (Seen::Refused, Some(length)) => pause(*length),
            (Seen::Silent, Some(length)) if is_home => pause(*length),
            _ => return false,
        }
    }
}

fn look(host: &str, port: u16) -> Seen {
    let Ok(addresses) = (host, port).to_socket_addrs() else { return Seen::Silent };
    let mut seen = Seen::Silent;
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
            Ok(_) => return Seen::There,
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => seen = Seen::Refused,
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
        assert_eq!(look("127.0.0.1", port), Seen::There);
        drop(listener);
        assert_eq!(look("127.0.0.1", port), Seen::Refused);
        assert_eq!(look("no such host.invalid", 80), Seen::Silent);
    }

    /// How a search goes on that sees this, and what it waited.
    fn searched(sights: &[Seen], is_home: bool) -> (bool, usize) {
        let (n, waited) = (Cell::new(0), RefCell::new(Vec::new()));
        let look = || sights[n.replace(n.get() + 1).min(sights.len() - 1)];
        let pauses: &[Duration] = if is_home { &PAUSES_AT_HOME } else { &PAUSES };
        let found = search(look, pauses, is_home, |pause| waited.borrow_mut().push(pause));
        (found, waited.into_inner().len())
    }

    #[test]
    fn an_agent_may_start_late_and_longest_on_its_clouds_machines() {
        assert_eq!(searched(&[Seen::Refused, Seen::There], false), (true, 1));
        assert_eq!(searched(&[Seen::Refused], false), (false, PAUSES.len()));
        assert_eq!(searched(&[Seen::Silent], false), (false, 0));
        assert_eq!(searched(&[Seen::Silent, Seen::Refused, Seen::There], true), (true, 2));
        assert_eq!(searched(&[Seen::Silent], true), (false, PAUSES_AT_HOME.len()));
    }
}
