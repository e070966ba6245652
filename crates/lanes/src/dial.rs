//! Opens connections: resolves addresses, connects over TCP, passes proxies and makes the TLS handshake.

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

/// If an address hasn't answered within this time, a connection attempt to the next one starts as well (RFC 8305, section 5).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// If no SYN to an address has been answered for this long, another one is sent from a new socket. The kernel pauses for 1, 2, 4, 8 and 16
/// s between the SYNs of one socket. With only one socket, the end of a network failure would be noticed up to 16 s late. The previous
/// socket keeps waiting, so answers that come up to 4 s late are still used.
const NEXT_SYN_AFTER: Duration = Duration::from_secs(2);

/// A nearby server answers the TCP handshake within this time. The dial does no other work in this time, because other work could delay the
/// measurement of the round trip. If the measured round trip was too long, the dispatcher would open too many connections.
const NEARBY: Duration = Duration::from_millis(4);

/// After a handshake with a client certificate, we wait to see if the server refuses the certificate. The wait is three times the round
/// trip, but at least `REFUSAL_MIN` and at most `REFUSAL_MAX`.
const REFUSAL_MIN: Duration = Duration::from_millis(50);
const REFUSAL_MAX: Duration = Duration::from_secs(1);

/// An open stream, and the protocol that both ends agreed on.
struct NegotiatedStream {
    stream: ByteStream,
    protocol: Protocol,
    rtt: Duration,
    progress: Arc<IoProgress>,
    address: SocketAddr,
    /// The forward proxy that receives the requests. The first line of such a request must contain the whole URL.
    absolute_form: Option<Proxy>,
}

/// Opens HTTP/1.1 and HTTP/2 connections over TCP. With TLS, ALPN selects the protocol.
pub(crate) struct Dialer {
    pub(crate) tls: tokio::sync::OnceCell<TlsSettings>,
    pub(crate) roots: Vec<rustls_pki_types::CertificateDer<'static>>,
    pub(crate) proxies: Proxies,
    /// The `User-Agent` for requests to proxies.
    pub(crate) user_agent: HeaderValue,
    pub(crate) timeout: Duration,
    /// The minimum time of a TCP handshake. After a shorter handshake, the dial waits for the rest of this time.
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
            // Freight lanes use HTTP/1.1 if the server offers it. Each large body then has its own TCP window, and can use its own core.
            let only = (dial.role == Role::Freight).then_some(Protocol::H1);
            let dialed = match self.dial(dial, only, addresses, tried).await {
                // A server that supports only HTTP/2 rejects this handshake. Then offer both protocols.
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
    /// Opens a stream, and fails after the timeout. With `only`, ALPN offers only that protocol.
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

    /// Returns the TLS settings, or `None` if TLS isn't needed. The first call builds them on a blocking thread, because that takes some
    /// milliseconds.
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

    /// Returns the addresses to connect to for `origin`. If requests to this origin use a proxy, the result is the proxy's addresses.
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
        // The receive window is set before the first answer, so that the server never sends more bytes than the window allows.
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
        // Reading the system's certificates takes some milliseconds. For the first connection, this happens during the TCP handshake,
        // unless the server is nearby.
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
    /// The round trip, measured by the TLS handshake. Only the server itself can answer a TLS handshake, while a middlebox can answer a TCP
    /// handshake.
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
    // With TLS 1.3, the server checks a client certificate only after our side of the handshake has ended. An HTTP/2 server that accepts
    // the certificate sends its settings. If an HTTP/1.1 server stays silent, we assume that it has accepted the certificate.
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

/// Connects to the addresses one after another, with a short delay between the attempts. Returns the first connection that is established.
async fn connect_first(
    to: &str,
    addresses: &[SocketAddr],
    tried: &mut DialReport,
) -> Result<DialOutcome, Error> {
    // Until an address answers, all addresses count as failed. Store this at once, so that the report is right even if the caller drops
    // this future.
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
                    // The addresses that were tried before this one had enough time to answer, so they count as failed. Later attempts
                    // might still have succeeded, so their addresses don't count as failed.
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

/// An address, the connection to it, and the time that its handshake took.
type DialOutcome = (SocketAddr, TcpStream, Duration);

async fn connect_patiently(address: SocketAddr) -> Result<DialOutcome, (SocketAddr, io::Error)> {
    overlapping(NEXT_SYN_AFTER, || connect(address)).await
}

/// Starts another attempt after each `pause`. Only the two latest attempts keep running. Returns the result of the first one that ends.
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
        // We keep an idle connection until the server closes it. TCP keepalive detects a path that stops working meanwhile.
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
            let message = format!("{origin}: {}", trust::cause(why));
            match trust::details(why) {
                Some(details) => Error::because(Kind::Certificate, message, details),
                None => Error::new(Kind::Certificate, message),
            }
        }
        Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => Error::because(
            Kind::Scheme,
            format!(
                "{origin}: the server doesn't use TLS on this port; if that is intended, use http:// in the URL"
            ),
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
                "{origin}: the server supports neither TLS 1.2 nor 1.3, and Laneway accepts no older version"
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

    /// Runs attempts. Only the attempt with the number `answered` ends, and it takes the time `takes`. Returns the time until its end, and
    /// the number of attempts.
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
