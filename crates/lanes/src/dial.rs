//! Opening a connection: addresses, TCP, proxy, TLS.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use http::HeaderValue;
use rustls::{AlertDescription, PeerIncompatible};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client_certificate::{is_refused, refused};
use crate::dispatch::Role;
use crate::driver::{Dial, DialReport, DynConnection, NewConnection, Transport};
use crate::error::{Error, Kind};
use crate::h1::H1;
use crate::h2::H2;
use crate::proxy::{Proxies, Proxy, tunnel};
use crate::stream::{BufferedSocket, ByteStream, IoProgress, WatchedSocket};
use crate::trust::TlsSettings;
use crate::{Origin, Protocol, Scheme, trust};

/// A connection attempt to the next address starts after the one before has taken this long (RFC 8305, section 5).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// If no SYN to an address has been answered for this long, another one is sent from a new socket. The kernel pauses for 1, 2, 4, 8 and 16
/// s between the SYNs of one socket, so a network that is back was noticed up to 16 s late. The socket before keeps waiting, so answers up
/// to 4 s late still count.
const NEXT_SYN_AFTER: Duration = Duration::from_secs(2);

/// The time within which a nearby server answers a TCP handshake. Other work meanwhile would delay us, make the server seem farther away
/// and lead to too many connections.
const NEARBY: Duration = Duration::from_millis(4);

/// The time to wait for a server that may refuse a client certificate: three handshakes, between these bounds.
const REFUSAL_MIN: Duration = Duration::from_millis(50);
const REFUSAL_MAX: Duration = Duration::from_secs(1);

/// An open stream, and the protocol that both ends agreed on.
struct NegotiatedStream {
    stream: ByteStream,
    protocol: Protocol,
    rtt: Duration,
    progress: Arc<IoProgress>,
    address: SocketAddr,
    /// The forward proxy that receives the requests. They must then name their whole URL.
    absolute_form: Option<Proxy>,
}

/// Opens HTTP/1.1 and HTTP/2 connections over TCP. With TLS, ALPN decides.
pub(crate) struct Dialer {
    pub(crate) tls: tokio::sync::OnceCell<TlsSettings>,
    pub(crate) roots: Vec<rustls_pki_types::CertificateDer<'static>>,
    pub(crate) proxies: Proxies,
    /// The name sent to proxies.
    pub(crate) user_agent: HeaderValue,
    pub(crate) timeout: Duration,
    /// The shortest time that a TCP handshake takes.
    pub(crate) tcp_handshake_min: Duration,
    /// Fixed addresses of hosts, for which the resolver isn't asked.
    pub(crate) resolve: BTreeMap<String, Vec<IpAddr>>,
}

impl Transport for Dialer {
    fn resolve<'a>(&'a self, origin: &'a Origin) -> BoxFuture<'a, Result<Vec<SocketAddr>, Error>> {
        Box::pin(self.addresses_of(origin))
    }

    fn open<'a>(
        &'a self,
        dial: &'a Dial,
        addresses: &'a [SocketAddr],
        tried: &'a mut DialReport,
    ) -> BoxFuture<'a, Result<NewConnection, Error>> {
        Box::pin(async move {
            // Bulk goes over HTTP/1.1 if the server offers it: each body then has a window and a core of its own.
            let only = (dial.role == Role::Freight).then_some(Protocol::H1);
            let dialed = match self.dial(dial, only, addresses, tried).await {
                // A server that speaks only HTTP/2 ends this handshake. Then offer both.
                Err(e) if only.is_some() && e.kind() == Kind::Tls => {
                    self.dial(dial, None, addresses, tried).await?
                }
                dialed => dialed?,
            };
            dial.connected();
            let NegotiatedStream { stream, protocol, rtt, progress, address, absolute_form } = dialed;
            let connection: Box<dyn DynConnection> = if protocol == Protocol::H2 {
                let h2 = H2::open(stream, progress, dial.lane, dial.role, dial.ended()).await?;
                dial.counts().connections_h2.fetch_add(1, Relaxed);
                Box::new(h2)
            } else {
                dial.counts().connections_h1.fetch_add(1, Relaxed);
                Box::new(H1::new(stream, progress, absolute_form))
            };
            Ok(NewConnection { connection, rtt, address })
        })
    }
}

impl Dialer {
    /// Opens a stream within the timeout. `only` limits the protocols offered by ALPN.
    async fn dial(
        &self,
        dial: &Dial,
        only: Option<Protocol>,
        addresses: &[SocketAddr],
        tried: &mut DialReport,
    ) -> Result<NegotiatedStream, Error> {
        let dialed = self.dial_patiently(dial, only, addresses, tried);
        let dialed = tokio::time::timeout(self.timeout, dialed).await.unwrap_or_else(|_| {
            let late = format!("{}: no connection within {:?}", dial.origin, self.timeout);
            Err(Error::new(Kind::Timeout, late))
        });
        if dialed.is_ok() {
            tried.half_open = None;
        }
        dialed
    }

    /// Returns the TLS settings if they are needed. The first use builds them on a thread where that delays no other work.
    async fn settings(&self, needs_tls: bool) -> Result<Option<&TlsSettings>, Error> {
        if !needs_tls {
            return Ok(None);
        }
        let build = || async {
            let roots = self.roots.clone();
            let built = tokio::task::spawn_blocking(move || TlsSettings::build(roots)).await;
            built.map_err(|e| Error::because(Kind::Closed, "the TLS settings can't be built", e))?
        };
        self.tls.get_or_try_init(build).await.map(Some)
    }

    /// Returns the addresses that a dial to `origin` connects to: its proxy's if it has one.
    ///
    /// # Errors
    /// [`Kind::Resolve`].
    async fn addresses_of(&self, origin: &Origin) -> Result<Vec<SocketAddr>, Error> {
        let proxy = self.proxies.for_origin(origin);
        let to = proxy.map_or(origin, |p| &p.origin);
        if let Ok(ip) = to.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, to.port)]);
        }
        if let Some(announced) = self.resolve.get(&*to.host) {
            return Ok(announced.iter().map(|ip| SocketAddr::new(*ip, to.port)).collect());
        }
        let of_proxy = proxy.map_or_else(String::new, |proxy| format!("{}: ", proxy.named()));
        let unresolved = format!("{of_proxy}host {} can't be resolved", to.host);
        let failed = |e| Error::because(Kind::Resolve, unresolved, e);
        let found: Vec<_> = tokio::net::lookup_host((&*to.host, to.port)).await.map_err(failed)?.collect();
        if found.is_empty() {
            return Err(Error::new(Kind::Resolve, format!("host {} has no address", to.host)));
        }
        Ok(found)
    }

    async fn dial_patiently(
        &self,
        dial: &Dial,
        only: Option<Protocol>,
        addresses: &[SocketAddr],
        tried: &mut DialReport,
    ) -> Result<NegotiatedStream, Error> {
        let origin = &dial.origin;
        let progress = Arc::new(IoProgress::new(Arc::clone(&dial.traffic)));
        // Set before the first answer, so that the server never sends more ahead than allowed.
        progress.receives(dial.role);
        let proxy = self.proxies.for_origin(origin);
        let needs_tls = [Some(origin), proxy.map(|proxy| &proxy.origin)]
            .into_iter()
            .flatten()
            .any(|to| to.scheme == Scheme::Https);
        let connect = async {
            let to = proxy.map_or_else(|| origin.to_string(), Proxy::named);
            let (address, tcp, took) = connect_first(&to, addresses, tried).await?;
            tokio::time::sleep(self.tcp_handshake_min.saturating_sub(took)).await;
            let rtt = took.max(self.tcp_handshake_min);
            dial.reached(rtt);
            Ok((address, tcp, rtt))
        };
        let mut connect = std::pin::pin!(connect);
        let reached = tokio::select! {
            biased;
            reached = &mut connect => Some(reached?),
            () = tokio::time::sleep(NEARBY) => None,
        };
        // Reading the platform's certificates takes some milliseconds. The first time, this runs during the TCP handshake, unless the
        // server is nearby.
        let ((address, mut tcp, mut rtt), settings) = match reached {
            Some(reached) => (reached, self.settings(needs_tls).await?),
            None => tokio::try_join!(connect, self.settings(needs_tls))?,
        };
        let is_tunneled = origin.scheme == Scheme::Https || proxy.is_some_and(Proxy::tunnels_all);
        let is_secret = proxy.is_some_and(|proxy| proxy.origin.scheme == Scheme::Https);
        if let (Some(proxy), true, false) = (proxy, is_tunneled, is_secret) {
            tunnel(&mut tcp, origin, proxy, &self.user_agent).await?;
        }
        let tcp = BufferedSocket::new(WatchedSocket::new(tcp, Arc::clone(&progress)));
        let mut protocol = Protocol::H1;
        let stream = match (settings, proxy.filter(|_| is_secret)) {
            (None, _) => ByteStream::plain(tcp),
            (Some(settings), Some(proxy)) => {
                let mut tls = secured(settings, &proxy.origin, Some(Protocol::H1), tcp).await?.stream;
                if is_tunneled {
                    tunnel(&mut tls, origin, proxy, &self.user_agent).await?;
                    let secured = secured(settings, origin, only, tls).await?;
                    (rtt, protocol) = (secured.rtt, secured.protocol);
                    ByteStream::nested(secured.stream)
                } else {
                    ByteStream::tls(tls)
                }
            }
            (Some(settings), None) => {
                let secured = secured(settings, origin, only, tcp).await?;
                (rtt, protocol) = (secured.rtt, secured.protocol);
                ByteStream::tls(secured.stream)
            }
        };
        let absolute_form = proxy.filter(|_| !is_tunneled).cloned();
        Ok(NegotiatedStream { stream, protocol, rtt, progress, address, absolute_form })
    }
}

/// A stream after its TLS handshake.
struct TlsHandshake<S> {
    stream: TlsStream<S>,
    protocol: Protocol,
    /// The round trip of the TLS flight. The server itself answers it, while a TCP handshake may end at a middlebox.
    rtt: Duration,
}

async fn secured<S: AsyncRead + AsyncWrite + Unpin>(
    settings: &TlsSettings,
    origin: &Origin,
    only: Option<Protocol>,
    below: S,
) -> Result<TlsHandshake<S>, Error> {
    let name = ServerName::try_from(origin.host.to_string())
        .map_err(|e| Error::because(Kind::Invalid, format!("{} isn't a server name", origin.host), e))?;
    let connector = TlsConnector::from(settings.to(origin, only).await?);
    let started = Instant::now();
    let mut stream = connector.connect(name, below).await.map_err(|e| tls_error(origin, e))?;
    let rtt = started.elapsed();
    // With TLS 1.3, the server checks a client certificate after our side of the handshake. An HTTP/2 server speaks first if it accepts. An
    // HTTP/1.1 server that stays silent is taken to accept.
    if origin.client_certificate.is_some() {
        let time = (3 * rtt).clamp(REFUSAL_MIN, REFUSAL_MAX);
        if let Ok(Err(e)) = tokio::time::timeout(time, stream.fill_buf()).await {
            return Err(tls_error(origin, e));
        }
    }
    let protocol = match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => Protocol::H2,
        _ => Protocol::H1,
    };
    Ok(TlsHandshake { stream, protocol, rtt })
}

/// Connects to the addresses in turn, each a little after the one before. Returns the first that answers.
async fn connect_first(
    to: &str,
    addresses: &[SocketAddr],
    tried: &mut DialReport,
) -> Result<DialOutcome, Error> {
    // Holds unless one answers, also if the caller stops waiting.
    *tried = DialReport { failed: addresses.to_vec(), half_open: None };
    let mut running = FuturesUnordered::new();
    let mut left = addresses.iter();
    let mut last = None;
    let mut replace = true;
    loop {
        if std::mem::take(&mut replace) {
            match left.next() {
                Some(address) => running.push(connect_patiently(*address)),
                None if running.is_empty() => break,
                None => {}
            }
        }
        let more = left.len() > 0;
        tokio::select! {
            ended = running.next() => match ended {
                Some(Ok((address, tcp, took))) => {
                    tried.half_open = Some(address);
                    // The addresses before it had their time. Those begun later may be as good.
                    let before = addresses.iter().take_while(|a| **a != address);
                    tried.failed = before.copied().collect();
                    return Ok((address, tcp, took));
                }
                Some(Err(failed)) => {
                    last = Some(failed);
                    replace = true;
                }
                None => replace = true,
            },
            () = tokio::time::sleep(NEXT_ADDRESS_AFTER), if more => {
                if let Some(address) = left.next() {
                    running.push(connect_patiently(*address));
                }
            }
        }
    }
    Err(match last {
        Some((address, e)) => Error::because(Kind::Connect, format!("{to} ({address}) can't be reached"), e),
        None => Error::new(Kind::Connect, format!("{to} has no address")),
    })
}

/// The address, its connection, and the time of its handshake.
type DialOutcome = (SocketAddr, TcpStream, Duration);

async fn connect_patiently(address: SocketAddr) -> Result<DialOutcome, (SocketAddr, io::Error)> {
    overlapping(NEXT_SYN_AFTER, || connect(address)).await
}

/// Starts another attempt after each `pause`, and waits for the last two. Returns the result of the first that ends.
async fn overlapping<F: Future>(pause: Duration, attempt: impl Fn() -> F) -> F::Output {
    let (mut before, mut last) = (None, Box::pin(attempt()));
    loop {
        let earlier = async {
            match &mut before {
                Some(before) => before.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            ended = earlier => return ended,
            ended = &mut last => return ended,
            () = tokio::time::sleep(pause) => before = Some(std::mem::replace(&mut last, Box::pin(attempt()))),
        }
    }
}

async fn connect(address: SocketAddr) -> Result<DialOutcome, (SocketAddr, io::Error)> {
    let attempt = async {
        let started = Instant::now();
        let tcp = TcpStream::connect(address).await?;
        let took = started.elapsed();
        tcp.set_nodelay(true)?;
        // An idle lane is kept as long as the server keeps it. Keepalive notices a path that has died meanwhile.
        socket2::SockRef::from(&tcp)
            .set_tcp_keepalive(&socket2::TcpKeepalive::new().with_time(Duration::from_secs(30)))?;
        Ok((address, tcp, took))
    };
    attempt.await.map_err(|e| (address, e))
}

fn tls_error(origin: &Origin, e: io::Error) -> Error {
    let rustls = e.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match rustls {
        Some(rustls::Error::InvalidCertificate(why)) => {
            Error::because(Kind::Certificate, format!("{origin}: {}", trust::cause(why)), why.to_string())
        }
        Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => Error::because(
            Kind::Scheme,
            format!("{origin}: the server doesn't speak TLS there; write http:// if that is meant"),
            e,
        ),
        Some(
            rustls::Error::AlertReceived(AlertDescription::ProtocolVersion)
            | rustls::Error::PeerIncompatible(
                PeerIncompatible::ServerDoesNotSupportTls12Or13
                | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
            ),
        ) => Error::because(
            Kind::Scheme,
            format!(
                "{origin}: the server speaks neither TLS 1.2 nor 1.3, and older versions are not accepted"
            ),
            e,
        ),
        _ if is_refused(&e) => refused(&origin.to_string(), e),
        _ => Error::because(Kind::Tls, format!("{origin}: TLS handshake failed"), e),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Runs attempts. The `answered`th ends after `takes`, the others never. Returns the time until then, and the number of attempts.
    async fn run(answered: u32, takes: Duration) -> (Duration, u32) {
        let (begun, made) = (tokio::time::Instant::now(), Cell::new(0));
        let attempt = || {
            made.set(made.get() + 1);
            let time = if made.get() == answered { takes } else { Duration::MAX };
            tokio::time::sleep(time)
        };
        overlapping(NEXT_SYN_AFTER, attempt).await;
        (begun.elapsed(), made.get())
    }

    #[tokio::test(start_paused = true)]
    async fn another_attempt_is_made_every_two_seconds_while_none_is_answered() {
        let rtt = Duration::from_millis(50);
        assert_eq!(run(1, rtt).await, (rtt, 1));
        assert_eq!(run(5, rtt).await, (NEXT_SYN_AFTER * 4 + rtt, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_comes_after_the_next_attempt_counts() {
        let late = NEXT_SYN_AFTER + Duration::from_millis(50);
        assert_eq!(run(1, late).await, (late, 2));
    }
}
