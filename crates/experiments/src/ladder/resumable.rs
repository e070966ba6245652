//! Makes a resumable upload for each file, one file after another, with both requests on new connections. Google's Ruby
//! gem does this.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Method};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::work::Work;
use crate::Failure;
use crate::rival::Tally;
use crate::rival::{Error, Protocol, Rival};

pub(super) async fn upload(work: &Work) -> Result<Tally, Failure> {
    let rival = Rival::new(&work.site, Protocol::H1);
    for name in work.files.names() {
        let session = begin(work, &rival, name).await?;
        let content = work.files.read(name)?;
        // `session` is only a path and query. Use the endpoint's address, which is known to work. The session
        // URL of an emulator may contain a different address.
        let request = work.site.request(Method::PUT, &session, content)?;
        rival.connect_h1().await?.send(request).await?.succeeded()?;
    }
    Ok(rival.tally())
}

/// Begins a session and returns its path and query.
async fn begin(work: &Work, rival: &Rival, name: &str) -> Result<String, Failure> {
    let key = work.key(name);
    let key = utf8_percent_encode(&key, NON_ALPHANUMERIC);
    let target = format!("{}&name={key}", work.site.upload_target("resumable"));
    let mut request = work.site.request(Method::POST, &target, Bytes::from_static(b"{}"))?;
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=UTF-8"));
    headers.insert("x-upload-content-type", HeaderValue::from_static("application/octet-stream"));
    headers.insert("x-upload-content-length", work.files.size().into());
    let answer = rival.connect_h1().await?.send(request).await?.succeeded()?;
    let location = answer.headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let location = location.and_then(|url| url.parse::<http::Uri>().ok()).ok_or(Error::NoSession)?;
    Ok(location.path_and_query().map_or("/", |target| target.as_str()).to_owned())
}
