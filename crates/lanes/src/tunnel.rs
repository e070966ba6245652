//! A tunnel through a proxy (RFC 9110, section 9.3.6), for what goes over TLS to its origin.

use std::io;

use http::HeaderValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::Origin;
use crate::error::{Error, Kind};
use crate::proxy::Proxy;

/// Asks a proxy for a tunnel to the origin.
///
/// # Errors
/// [`Kind::Connect`], naming the proxy and its status.
pub(crate) async fn tunnel(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    origin: &Origin,
    proxy: &Proxy,
    user_agent: &HeaderValue,
) -> Result<(), Error> {
    let failed = |e: io::Error| Error::because(Kind::Connect, format!("proxy {} broke off", proxy.origin), e);
    let target = match origin.host.contains(':') {
        true => format!("[{}]:{}", origin.host, origin.port),
        false => format!("{}:{}", origin.host, origin.port),
    };
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Ok(user_agent) = user_agent.to_str() {
        request += &format!("User-Agent: {user_agent}\r\n");
    }
    if let Some(authorization) = &proxy.authorization {
        request += &format!("Proxy-Authorization: {authorization}\r\n");
    }
    request += "\r\n";
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    stream.flush().await.map_err(failed)?;
    // One byte at a time: what follows the head belongs to TLS. A head is some hundred bytes, once a connection.
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > 8192 {
            return Err(Error::new(Kind::Connect, format!("proxy {} sent an endless head", proxy.origin)));
        }
        head.push(stream.read_u8().await.map_err(failed)?);
    }
    let status = head.split(|b| *b == b' ').nth(1).unwrap_or_default();
    match status {
        [b'2', ..] => Ok(()),
        _ => Err(Error::new(
            Kind::Connect,
            format!(
                "proxy {} refused a tunnel to {target} ({})",
                proxy.origin,
                String::from_utf8_lossy(status)
            ),
        )),
    }
}
