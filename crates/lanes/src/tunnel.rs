//! A tunnel through a proxy: by CONNECT (RFC 9110, section 9.3.6) for what goes over TLS to its origin, and by SOCKS5
//! (RFC 1928) for everything.

use std::io;

use http::HeaderValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_socks::tcp::Socks5Stream;

use crate::Origin;
use crate::error::{Error, Kind};
use crate::proxy::{Proxy, ProxyProtocol};

/// Asks a proxy for a tunnel to the origin.
///
/// # Errors
/// [`Kind::Connect`], naming the proxy and its answer.
pub(crate) async fn tunnel(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    origin: &Origin,
    proxy: &Proxy,
    user_agent: &HeaderValue,
) -> Result<(), Error> {
    match &proxy.protocol {
        ProxyProtocol::Http { authorization } => {
            by_connect(stream, origin, proxy, authorization.as_deref(), user_agent).await
        }
        ProxyProtocol::Socks5 { login } => by_socks(stream, origin, proxy, login.as_ref()).await,
    }
}

/// The name of the host goes to the proxy, so that no other resolver hears it.
async fn by_socks(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    origin: &Origin,
    proxy: &Proxy,
    login: Option<&(String, String)>,
) -> Result<(), Error> {
    let target = (&*origin.host, origin.port);
    let opened = match login {
        Some((user, password)) => {
            Socks5Stream::connect_with_password_and_socket(stream, target, user, password).await
        }
        None => Socks5Stream::connect_with_socket(stream, target).await,
    };
    match opened {
        Ok(_) => Ok(()),
        Err(tokio_socks::Error::Io(e)) => {
            Err(Error::because(Kind::Connect, format!("proxy {proxy} broke off"), e))
        }
        Err(e) => {
            let target = format!("{}:{}", origin.host, origin.port);
            Err(Error::because(Kind::Connect, format!("proxy {proxy} refused a tunnel to {target}"), e))
        }
    }
}

async fn by_connect(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    origin: &Origin,
    proxy: &Proxy,
    authorization: Option<&str>,
    user_agent: &HeaderValue,
) -> Result<(), Error> {
    let failed = |e: io::Error| Error::because(Kind::Connect, format!("proxy {proxy} broke off"), e);
    let target = match origin.host.contains(':') {
        true => format!("[{}]:{}", origin.host, origin.port),
        false => format!("{}:{}", origin.host, origin.port),
    };
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Ok(user_agent) = user_agent.to_str() {
        request += &format!("User-Agent: {user_agent}\r\n");
    }
    if let Some(authorization) = authorization {
        request += &format!("Proxy-Authorization: {authorization}\r\n");
    }
    request += "\r\n";
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    stream.flush().await.map_err(failed)?;
    // One byte at a time: what follows the head belongs to TLS. A head is some hundred bytes, once a connection.
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > 8192 {
            return Err(Error::new(Kind::Connect, format!("proxy {proxy} sent an endless head")));
        }
        head.push(stream.read_u8().await.map_err(failed)?);
    }
    let status = head.split(|b| *b == b' ').nth(1).unwrap_or_default();
    match status {
        [b'2', ..] => Ok(()),
        _ => Err(Error::new(
            Kind::Connect,
            format!("proxy {proxy} refused a tunnel to {target} ({})", String::from_utf8_lossy(status)),
        )),
    }
}
