//! Requests to token and metadata servers, over our lanes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use laneway_lanes::{Body, Call, ClientCertificate, Lanes, Origin, Request, Response, Verdict};
use percent_encoding::percent_decode_str;

use crate::judge::retry_after;
use crate::secrets::{LEFT_OUT, Secrets};

/// If a server sends nothing for this long, Laneway tries the request again. The time limit is at most half of
/// `--retry-for`.
const NO_PROGRESS: Duration = Duration::from_secs(20);

/// The secret fields of forms and JSON documents.
const SECRET_FIELDS: [&str; 9] = [
    "assertion",
    "client_assertion",
    "client_secret",
    "clientSecret",
    "refresh_token",
    "refreshToken",
    "subject_token",
    "TokenCode",
    "WebIdentityToken",
];

/// A request that is retried while the server fails temporarily.
#[derive(Clone)]
pub(super) struct CredentialRequest {
    origin: Origin,
    method: Method,
    target: Uri,
    headers: HeaderMap,
    body: Bytes,
    no_progress: Duration,
}

/// An answer with any status.
#[derive(Clone)]
pub(super) struct CredentialResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl CredentialRequest {
    /// Returns a request to an `http://` or `https://` URL.
    ///
    /// # Errors
    /// Fails if the text isn't such a URL. The error doesn't repeat its query.
    pub(super) fn new(method: Method, url: &str) -> Result<Self, String> {
        let named = || url.split('?').next().unwrap_or_default().to_owned();
        let origin = Origin::parse(url).map_err(|_| format!("{:?} isn't a URL", named()))?;
        let uri: Uri = url.parse().map_err(|_| format!("{:?} isn't a URL", named()))?;
        // A URL may have a query without a path. A request always needs a path, so add one.
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let target = format!("{}{query}", if uri.path().is_empty() { "/" } else { uri.path() });
        let target = target.parse().map_err(|_| format!("{:?} isn't a URL", named()))?;
        let (headers, body) = (HeaderMap::new(), Bytes::new());
        Ok(Self { origin, method, target, headers, body, no_progress: NO_PROGRESS })
    }

    pub(super) fn get(url: &str) -> Result<Self, String> {
        Self::new(Method::GET, url)
    }

    /// Returns a POST of a form.
    pub(super) fn form(url: &str, fields: &[(&str, &str)]) -> Result<Self, String> {
        let pairs: Vec<_> = fields
            .iter()
            .map(|(name, value)| format!("{name}={}", crate::encode::component(value)))
            .collect();
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        Self::new(Method::POST, url)?.with_body(form, pairs.join("&"))
    }

    /// Returns a POST of a JSON document.
    pub(super) fn json(url: &str, document: &serde_json::Value) -> Result<Self, String> {
        Self::new(Method::POST, url)?.with_body("application/json", document.to_string())
    }

    fn with_body(mut self, content_type: &'static str, body: String) -> Result<Self, String> {
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        self.body = Bytes::from(body);
        Ok(self)
    }

    /// Adds a header whose value may be a secret.
    ///
    /// # Errors
    /// Fails for a value with characters that a header can't carry. The error doesn't repeat the value.
    pub(super) fn header(mut self, name: &str, value: &str) -> Result<Self, String> {
        let name = HeaderName::try_from(name).map_err(|_| format!("{name:?} isn't a header name"))?;
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            format!("the value of the header {name} holds characters that no header can carry")
        })?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Returns the same request. Its connection presents this client certificate if the server asks for one.
    pub(super) fn showing(mut self, certificate: Option<&Arc<ClientCertificate>>) -> Self {
        self.origin.client_certificate = certificate.cloned();
        self
    }

    /// Returns the request's method, URI and headers, which the caller signs.
    pub(super) fn parts(&self) -> Result<http::request::Parts, String> {
        let uri = format!("{}{}", self.origin, self.target);
        let request = http::Request::builder().method(self.method.clone()).uri(uri).body(());
        let (mut parts, ()) = request.map_err(|e| e.to_string())?.into_parts();
        parts.headers = self.headers.clone();
        Ok(parts)
    }

    /// Returns the same request with these headers.
    pub(super) fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers = headers;
        self
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Returns the URL without its query.
    pub(super) fn place(&self) -> String {
        format!("{}{}", self.origin, self.target.path())
    }

    pub(super) fn host(&self) -> (&str, u16) {
        (&self.origin.host, self.origin.port)
    }

    /// Sends the request, and repeats it while the server is silent or fails temporarily.
    ///
    /// # Errors
    /// Returns the reason why there is no answer.
    pub(super) async fn send(&self, lanes: &Lanes) -> Result<CredentialResponse, String> {
        let ask = Self { no_progress: lanes.silence_max(NO_PROGRESS), ..self.clone() };
        let Ok(mut ended) = lanes.run(&ask).await;
        let mut attempts = ended.attempts;
        // The server exists, because it accepted the connection, but it sent no answer. This first wait may have used
        // up the whole time limit for an origin that has never answered, so allow another attempt.
        if let Some(lanes) = lanes.for_silent_origin(&ended) {
            let Ok(again) = lanes.run(&ask).await;
            (attempts, ended) = (attempts + again.attempts, again);
        }
        let response = ended.outcome.map_err(|e| {
            let times = if attempts == 1 { "" } else { &format!(", {attempts} attempts") };
            format!("{}: {e}{times}", self.place())
        })?;
        let status = response.head.status;
        // Report the server's own error text, unless it repeats one of the secrets that we sent.
        let body = match status.is_success() || !self.is_repeated(&response.body) {
            true => response.body,
            false => Bytes::from_static(LEFT_OUT.as_bytes()),
        };
        Ok(CredentialResponse { status, headers: response.head.headers, body })
    }

    /// Returns true if `text` contains one of the request's secrets.
    fn is_repeated(&self, text: &[u8]) -> bool {
        Secrets::of(&self.headers).are_repeated(self.secrets(), &String::from_utf8_lossy(text))
    }

    /// Returns the values of all secret fields in the request's body.
    fn secrets(&self) -> Vec<String> {
        let body = String::from_utf8_lossy(&self.body);
        let form = body.split('&').filter_map(|pair| pair.split_once('='));
        let form = form.filter(|(name, _)| SECRET_FIELDS.contains(name));
        let form = form.map(|(_, value)| percent_decode_str(value).decode_utf8_lossy().into_owned());
        let document: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let members = SECRET_FIELDS.iter().filter_map(|name| Some(document.get(name)?.as_str()?.to_owned()));
        form.chain(members).collect()
    }
}

impl Call for CredentialRequest {
    type Refusal = std::convert::Infallible;

    async fn request(&self, _attempt: u32) -> Result<Request, Self::Refusal> {
        let mut request = Request::new(self.origin.clone(), self.method.clone(), self.target.clone());
        request.headers = self.headers.clone();
        request.body = Body::from(self.body.clone());
        request.no_progress = Some(self.no_progress);
        Ok(request)
    }

    fn judge(&self, outcome: &Result<Response, laneway_lanes::Error>) -> Verdict {
        match outcome {
            Err(error) if error.is_transient() => Verdict::Retry,
            Err(_) => Verdict::Done,
            Ok(response) => match response.head.status.as_u16() {
                429 => {
                    let after = retry_after(response.head.header("retry-after"), SystemTime::now());
                    Verdict::Throttled { after }
                }
                408 | 500 | 502 | 503 | 504 => Verdict::Retry,
                _ => Verdict::Done,
            },
        }
    }

    fn throttle_key(&self) -> &str {
        &self.origin.host
    }
}

impl CredentialResponse {
    /// Reads a JSON document. If it can't be parsed, the error names only the position, because the text may be a
    /// secret.
    ///
    /// # Errors
    /// Fails for any other document.
    pub(super) fn json<T: for<'de> serde::Deserialize<'de>>(&self) -> Result<T, String> {
        serde_json::from_slice(&self.body).map_err(|e| malformed(&e))
    }

    /// Returns the body as a text that is short enough for an error message.
    pub(super) fn text(&self) -> String {
        short(&String::from_utf8_lossy(&self.body))
    }
}

/// Describes an error in parsing a document, without repeating the document's content.
pub(super) fn malformed(error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    match error.classify() {
        Category::Data if error.to_string().starts_with("missing field") => {
            // A missing field's name comes from our code and not from the document, so the message may repeat it.
            error.to_string()
        }
        Category::Data => {
            format!("the document isn't as expected at line {}, column {}", error.line(), error.column())
        }
        _ => format!("it isn't a JSON document (line {}, column {})", error.line(), error.column()),
    }
}

/// Returns a server's message in one line of at most 300 characters.
pub(super) fn short(text: &str) -> String {
    const MAX: usize = 300;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use laneway_lanes::LanesConfig;
    use laneway_testkit::{Scripted, answer};

    use super::*;

    #[test]
    fn an_answer_that_repeats_a_secret_is_known_however_it_escapes_it() {
        let url = "https://sts/";
        let form = CredentialRequest::form(
            url,
            &[("grant_type", "refresh_token"), ("refresh_token", "1//0g+Ab/Cd=Efgh")],
        );
        let header =
            CredentialRequest::get(url).and_then(|ask| ask.header("authorization", "Bearer eyJhbGci.abc"));
        let json = CredentialRequest::json(
            url,
            &serde_json::json!({"clientSecret": "s-e-c-r-e-t-42", "grantType": "refresh_token"}),
        );
        let basic = CredentialRequest::get(url)
            .and_then(|ask| ask.header("authorization", "Basic aWQ6aHVudGVyMmh1bnRlcjI="));
        let short = CredentialRequest::form(url, &[("TokenCode", "123456")]);
        for (ask, text) in [
            (&basic, r#"{"error_description":"bad secret hunter2hunter2 for client id"}"#),
            (&basic, "no such client: aWQ6aHVudGVyMmh1bnRlcjI="),
            (&basic, "authorization: Basic aWQ6aHVudGVyMmh1bnRlcjI="),
            (&short, "MultiFactorAuthentication failed: 123456 is no code"),
            (&form, "refresh token 1//0g+Ab/Cd=Efgh is unknown"),
            (&form, "POST / grant_type=refresh_token&refresh_token=1%2F%2F0g%2BAb%2FCd%3DEfgh"),
            (&form, r#"{"token":"1\/\/0g+Ab\/Cd=E..."}"#),
            (&header, "no such token: eyJhbGci..."),
            (&json, "{\"sent\":{\"clientSecret\":\"s-e-c-r-e-t-42\"}}"),
        ] {
            assert!(ask.as_ref().expect("a question").is_repeated(text.as_bytes()), "{text}");
        }
        let telling = [
            "Token has been expired or revoked.",
            "Basic authorization failed for client id, code 12345",
            r#"{"error":"invalid_grant","field":"refresh_token"}"#,
            "",
        ];
        for text in telling {
            for ask in [&form, &header, &json, &basic, &short] {
                assert!(!ask.as_ref().expect("a question").is_repeated(text.as_bytes()), "{text}");
            }
        }
    }

    #[tokio::test]
    async fn a_server_that_hangs_once_is_asked_again_within_the_time() {
        let asked = AtomicU32::new(0);
        let hangs = Scripted::serve(move |_| {
            if asked.fetch_add(1, Ordering::Relaxed) == 0 {
                // Sleep until the client has given up.
                std::thread::sleep(Duration::from_secs(4));
            }
            answer(200, &[], "here")
        });
        let retry_for = Duration::from_secs(3);
        let lanes = Lanes::start(LanesConfig { retry_for, ..LanesConfig::default() }).expect("lanes");
        let answered = CredentialRequest::get(&hangs.url()).expect("a question").send(&lanes).await;
        assert_eq!(answered.expect("an answer").text(), "here");
    }

    #[tokio::test]
    async fn waits_for_a_server_that_hangs_at_first_as_for_a_known_one() {
        let (retry_for, retry_unanswered_for) = (Duration::from_secs(3), Duration::from_millis(300));
        let config = || LanesConfig { retry_for, retry_unanswered_for, ..LanesConfig::default() };
        let asked = AtomicU32::new(0);
        let hangs = Scripted::serve(move |_| {
            if asked.fetch_add(1, Ordering::Relaxed) == 0 {
                std::thread::sleep(Duration::from_secs(4));
            }
            answer(200, &[], "here")
        });
        let ask = |url: &str| CredentialRequest::get(url).expect("a question");
        let lanes = Lanes::start(config()).expect("lanes");
        assert_eq!(ask(&hangs.url()).send(&lanes).await.expect("an answer").text(), "here");
        // A server that accepts no connection may not exist, so Laneway doesn't try it for the whole minute.
        let retry_for = Duration::from_secs(60);
        let lanes = Lanes::start(LanesConfig { retry_for, ..config() }).expect("lanes");
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it");
        let began = std::time::Instant::now();
        let error = ask(&format!("http://{nobody}/")).send(&lanes).await.err().expect("nobody is there");
        assert!(began.elapsed() < retry_for / 2 && error.contains(&nobody.to_string()), "{error}");
    }

    #[test]
    fn a_url_that_is_none_is_told_without_its_query() {
        let error = CredentialRequest::get("ftp://h/x?token=hush").err().expect("no URL");
        assert!(error.contains("ftp://h/x") && !error.contains("hush"), "{error}");
    }

    #[test]
    fn a_url_may_have_a_query_and_no_path() {
        for url in ["https://h?a=b", "https://h/?a=b"] {
            assert_eq!(CredentialRequest::get(url).expect("a question").target.to_string(), "/?a=b");
        }
        assert_eq!(CredentialRequest::get("https://h").expect("a question").target.to_string(), "/");
    }

    #[test]
    fn a_form_is_encoded() {
        let ask = CredentialRequest::form("http://h/", &[("a", "b c&d"), ("e", "f")]).expect("a question");
        assert_eq!(ask.body(), b"a=b%20c%26d&e=f");
    }

    #[test]
    fn a_document_that_is_none_is_not_repeated() {
        let error =
            serde_json::from_str::<u32>("\"hush\"").map_err(|e| malformed(&e)).expect_err("no number");
        assert!(!error.contains("hush") && error.contains("line 1"), "{error}");
    }

    #[test]
    fn foreign_messages_are_one_short_line() {
        assert_eq!(short(" a\n b "), "a b");
        assert_eq!(short(&"x".repeat(1000)).len(), 303);
    }
}
