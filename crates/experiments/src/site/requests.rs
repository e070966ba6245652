//! The rivals' requests to a store, in the store's own API.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, IF_MATCH, RANGE};
use http::{HeaderValue, Method, Request};
use laneway::Provider;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::Site;
use crate::rival::{Answer, Error};

/// The boundary between metadata and content in an upload that consists of one request. The content consists of random bytes, so it can't
/// contain the boundary.
const BOUNDARY: &str = "ladder-part";
const BATCH_BOUNDARY: &str = "===clean-batch===";
/// Characters that S3 doesn't encode in a signed path.
const S3_KEY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// A page of a GCS listing.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GcsPage {
    items: Vec<GcsItem>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct GcsItem {
    name: String,
}

impl Site {
    /// Builds a request to read an object or a range of it.
    ///
    /// # Errors
    /// Fails if the request can't be built.
    pub(crate) async fn get(&self, key: &str, range: Option<&Range<u64>>) -> Result<Request<Bytes>, Error> {
        let target = match self.provider {
            Provider::Gcs => format!("{}?alt=media", self.object_target(key)),
            _ => self.object_target(key),
        };
        let mut request = self.request(Method::GET, &target, Bytes::new())?;
        match range {
            Some(range) => {
                let bytes = format!("bytes={}-{}", range.start, range.end.saturating_sub(1));
                request.headers_mut().insert(RANGE, HeaderValue::try_from(bytes).map_err(http::Error::from)?);
            }
            // S3 returns a checksum only if it is requested, and only for a whole object.
            None if self.provider == Provider::S3 => {
                request.headers_mut().insert("x-amz-checksum-mode", HeaderValue::from_static("ENABLED"));
            }
            None => {}
        }
        self.signed(request).await
    }

    /// Builds a request for an object's size and checksum.
    ///
    /// # Errors
    /// Fails if the request can't be built.
    pub(crate) async fn head(&self, key: &str) -> Result<Request<Bytes>, Error> {
        let (method, target) = match self.provider {
            Provider::Gcs => (Method::GET, format!("{}?fields=crc32c,size", self.object_target(key))),
            _ => (Method::HEAD, self.object_target(key)),
        };
        let mut request = self.request(method, &target, Bytes::new())?;
        if self.provider == Provider::S3 {
            request.headers_mut().insert("x-amz-checksum-mode", HeaderValue::from_static("ENABLED"));
        }
        self.signed(request).await
    }

    /// Builds a request to write a small object. If `version` is given, the object must still have this version. For
    /// GCS it uses `uploadType=multipart`, because servers support it better than `media`.
    ///
    /// # Errors
    /// Fails if the request can't be built.
    pub(crate) async fn put(
        &self,
        key: &str,
        content: &[u8],
        version: Option<&str>,
    ) -> Result<Request<Bytes>, Error> {
        let request = match self.provider {
            Provider::Gcs => self.multipart(key, content, version)?,
            _ => {
                let content = Bytes::copy_from_slice(content);
                let mut request = self.request(Method::PUT, &self.object_target(key), content)?;
                if let Some(version) = version {
                    let version = HeaderValue::try_from(version).map_err(http::Error::from)?;
                    request.headers_mut().insert(IF_MATCH, version);
                }
                request
            }
        };
        self.signed(request).await
    }

    /// Builds a request to write an object. The caller sends the object's bytes as a stream.
    ///
    /// # Errors
    /// Fails if the request can't be built.
    pub(crate) async fn put_stream(&self, key: &str) -> Result<Request<()>, Error> {
        let request = match self.provider {
            Provider::Gcs => {
                let key = utf8_percent_encode(key, NON_ALPHANUMERIC);
                let target = format!("{}&name={key}&fields=name", self.upload_target("media"));
                self.request(Method::POST, &target, Bytes::new())?
            }
            _ => self.request(Method::PUT, &self.object_target(key), Bytes::new())?,
        };
        Ok(self.signed(request).await?.map(|_| ()))
    }

    /// Builds a request to delete an object.
    ///
    /// # Errors
    /// Fails if the request can't be built.
    pub(crate) async fn delete(&self, key: &str) -> Result<Request<Bytes>, Error> {
        self.signed(self.request(Method::DELETE, &self.object_target(key), Bytes::new())?).await
    }

    /// Builds a request to delete at most a thousand objects with S3's DeleteObjects, or at most a hundred with a GCS batch. Doesn't escape
    /// the keys, because keys of an experiment have no special characters.
    ///
    /// # Errors
    /// Fails if the request can't be built.
    pub(crate) async fn delete_many(&self, keys: &[String]) -> Result<Request<Bytes>, Error> {
        let request = match self.provider {
            Provider::Gcs => self.batch(keys)?,
            _ => {
                let keys: String =
                    keys.iter().map(|key| format!("<Object><Key>{key}</Key></Object>")).collect();
                let document = format!("<Delete><Quiet>true</Quiet>{keys}</Delete>");
                let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, document.as_bytes()) as u32;
                let sum =
                    HeaderValue::try_from(STANDARD.encode(sum.to_be_bytes())).map_err(http::Error::from)?;
                let bucket = utf8_percent_encode(&self.bucket, S3_KEY);
                let target = format!("{}/{bucket}?delete=", self.base());
                let mut request = self.request(Method::POST, &target, document.into())?;
                request.headers_mut().insert("x-amz-checksum-crc32c", sum);
                request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
                request
            }
        };
        self.signed(request).await
    }

    /// Builds a request for a page of the keys under a prefix: the first page, or the page that `token` refers to.
    ///
    /// # Errors
    /// Fails if the request can't be built.
    pub(crate) async fn list(&self, prefix: &str, token: Option<&str>) -> Result<Request<Bytes>, Error> {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let (prefix, token) = (encode(prefix), token.map(encode));
        let target = match self.provider {
            Provider::Gcs => {
                let token = token.map(|token| format!("&pageToken={token}")).unwrap_or_default();
                let fields = "fields=items(name),nextPageToken";
                format!("{}/o?{fields}&prefix={prefix}{token}", self.bucket_target())
            }
            _ => {
                let bucket = utf8_percent_encode(&self.bucket, S3_KEY);
                let token = token.map(|token| format!("continuation-token={token}&")).unwrap_or_default();
                format!("{}/{bucket}?{token}list-type=2&prefix={prefix}", self.base())
            }
        };
        self.signed(self.request(Method::GET, &target, Bytes::new())?).await
    }

    /// Returns the keys in the answer to a [`list`](Self::list), and the token of the next page. Doesn't unescape the keys, because keys of
    /// an experiment have no special characters.
    ///
    /// # Errors
    /// Returns [`Error::Answer`] if the answer can't be parsed.
    pub(crate) fn listed(&self, answer: &Answer) -> Result<(Vec<String>, Option<String>), Error> {
        if self.provider == Provider::Gcs {
            let page: GcsPage =
                serde_json::from_slice(&answer.body).map_err(|e| Error::Answer(Box::new(e)))?;
            return Ok((page.items.into_iter().map(|item| item.name).collect(), page.next_page_token));
        }
        let text = String::from_utf8_lossy(&answer.body);
        let within = |text: &str, close: &str| text.split_once(close).map(|(inside, _)| inside.to_owned());
        let keys = text.split("<Key>").skip(1).filter_map(|rest| within(rest, "</Key>"));
        let token = text.split_once("<NextContinuationToken>");
        Ok((keys.collect(), token.and_then(|(_, rest)| within(rest, "</NextContinuationToken>"))))
    }

    /// Returns the next page's token from the answer to a [`list`](Self::list), without parsing its keys.
    ///
    /// # Errors
    /// Returns [`Error::Answer`] if the answer can't be parsed.
    pub(crate) fn next_page(&self, answer: &Answer) -> Result<Option<String>, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Next {
            next_page_token: Option<String>,
        }
        if self.provider == Provider::Gcs {
            let next: Next = serde_json::from_slice(&answer.body).map_err(|e| Error::Answer(Box::new(e)))?;
            return Ok(next.next_page_token);
        }
        let text = String::from_utf8_lossy(&answer.body);
        let after = text.split_once("<NextContinuationToken>").map(|(_, rest)| rest);
        Ok(after.and_then(|rest| rest.split_once('<')).map(|(token, _)| token.to_owned()))
    }

    /// Builds a request for S3's unfinished multipart uploads under a prefix.
    ///
    /// # Errors
    /// Fails if the request can't be built.
    pub(crate) async fn uploads(&self, prefix: &str) -> Result<Request<Bytes>, Error> {
        let bucket = utf8_percent_encode(&self.bucket, S3_KEY);
        let prefix = utf8_percent_encode(prefix, NON_ALPHANUMERIC);
        let target = format!("{}/{bucket}?prefix={prefix}&uploads=", self.base());
        self.signed(self.request(Method::GET, &target, Bytes::new())?).await
    }

    /// Builds a request to abort one of S3's multipart uploads.
    ///
    /// # Errors
    /// Fails if the request can't be built.
    pub(crate) async fn abandon(&self, key: &str, upload: &str) -> Result<Request<Bytes>, Error> {
        let upload = utf8_percent_encode(upload, NON_ALPHANUMERIC);
        let target = format!("{}?uploadId={upload}", self.object_target(key));
        self.signed(self.request(Method::DELETE, &target, Bytes::new())?).await
    }

    /// Returns the maximum number of objects for one call of [`delete_many`](Self::delete_many).
    pub(crate) fn delete_many_max(&self) -> usize {
        match self.provider {
            Provider::Gcs => 100,
            _ => 1000,
        }
    }

    /// Returns the version in an answer: a GCS generation, or an S3 ETag with its quotes.
    ///
    /// # Errors
    /// Returns [`Error::NoVersion`] if the answer has no version.
    pub(crate) fn version(&self, answer: &Answer) -> Result<String, Error> {
        let version = match self.provider {
            Provider::Gcs => answer.headers.get("x-goog-generation"),
            _ => answer.headers.get(ETAG),
        };
        version.and_then(|value| value.to_str().ok()).map(str::to_owned).ok_or(Error::NoVersion)
    }

    /// Returns the CRC32C in an answer to [`head`](Self::head), if it has one.
    pub(crate) fn crc32c(&self, answer: &Answer) -> Option<u32> {
        let text = match self.provider {
            Provider::Gcs => {
                let resource: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
                resource.get("crc32c")?.as_str()?.to_owned()
            }
            _ => answer.headers.get("x-amz-checksum-crc32c")?.to_str().ok()?.to_owned(),
        };
        Some(u32::from_be_bytes(STANDARD.decode(text).ok()?.try_into().ok()?))
    }

    /// Builds an upload to GCS whose body contains the object's metadata, followed by its content.
    pub(crate) fn multipart(
        &self,
        key: &str,
        content: &[u8],
        version: Option<&str>,
    ) -> Result<Request<Bytes>, Error> {
        let metadata = serde_json::json!({ "name": key });
        let mut body = Vec::with_capacity(content.len() + 512);
        body.extend_from_slice(
            format!(
                "--{BOUNDARY}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{metadata}\r\n\
                 --{BOUNDARY}\r\nContent-Type: application/octet-stream\r\n\r\n"
            )
            .as_bytes(),
        );
        body.extend_from_slice(content);
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        // Without `fields`, the answer would be four times as long. On a real path, this would slow the rivals down
        // unfairly.
        let mut target = format!("{}&fields=name", self.upload_target("multipart"));
        if let Some(version) = version {
            target += &format!("&ifGenerationMatch={version}");
        }
        let mut request = self.request(Method::POST, &target, body.into())?;
        let content_type = HeaderValue::from_static("multipart/related; boundary=ladder-part");
        request.headers_mut().insert(CONTENT_TYPE, content_type);
        Ok(request)
    }

    fn batch(&self, keys: &[String]) -> Result<Request<Bytes>, Error> {
        let mut body = String::new();
        for (index, key) in keys.iter().enumerate() {
            let target = self.object_target(key);
            body += &format!(
                "--{BATCH_BOUNDARY}\r\nContent-Type: application/http\r\nContent-ID: <{index}>\r\n\r\n\
                 DELETE {target} HTTP/1.1\r\n\r\n\r\n"
            );
        }
        body += &format!("--{BATCH_BOUNDARY}--\r\n");
        let target = format!("{}/batch/storage/v1", self.base());
        let mut request = self.request(Method::POST, &target, body.into())?;
        let content_type = HeaderValue::from_static("multipart/mixed; boundary=\"===clean-batch===\"");
        request.headers_mut().insert(CONTENT_TYPE, content_type);
        Ok(request)
    }

    fn object_target(&self, key: &str) -> String {
        match self.provider {
            Provider::Gcs => {
                format!("{}/o/{}", self.bucket_target(), utf8_percent_encode(key, NON_ALPHANUMERIC))
            }
            _ => {
                let bucket = utf8_percent_encode(&self.bucket, S3_KEY);
                format!("{}/{bucket}/{}", self.base(), utf8_percent_encode(key, S3_KEY))
            }
        }
    }

    async fn signed(&self, mut request: Request<Bytes>) -> Result<Request<Bytes>, Error> {
        self.access.sign(&mut request).await?;
        Ok(request)
    }
}
