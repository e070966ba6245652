//! AWS Signature Version 4, from the client's side.

use ring::{digest, hmac};

pub(crate) struct Key {
    pub(crate) access: &'static str,
    pub(crate) secret: &'static str,
    pub(crate) region: &'static str,
}

pub(crate) const DEFAULT: Key = Key { access: "laneway", secret: "lanewaysecret", region: "us-east-1" };

/// Returns the headers of a signed request. `payload` becomes `x-amz-content-sha256`, and `extra` is signed too. If
/// `extra` has a `date`, it takes the place of `x-amz-date`.
pub(crate) fn sign(
    key: &Key,
    method: &str,
    host: &str,
    path: &str,
    payload: &str,
    extra: &[(&str, &str)],
) -> Vec<(String, String)> {
    let sent = extra.iter().find(|(name, _)| *name == "date");
    let now = sent.map_or_else(time::OffsetDateTime::now_utc, |(_, date)| {
        httpdate::parse_http_date(date).unwrap().into()
    });
    let date = format!("{:04}{:02}{:02}", now.year(), u8::from(now.month()), now.day());
    let moment = format!("{date}T{:02}{:02}{:02}Z", now.hour(), now.minute(), now.second());
    let mut headers: Vec<(String, String)> =
        extra.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    headers.push(("x-amz-content-sha256".to_owned(), payload.to_owned()));
    if sent.is_none() {
        headers.push(("x-amz-date".to_owned(), moment.clone()));
    }
    let mut signed = headers.clone();
    signed.push(("host".to_owned(), host.to_owned()));
    signed.sort();
    let canonical: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let names: Vec<&str> = signed.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(";");
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let request = format!("{method}\n{path}\n{query}\n{canonical}\n{names}\n{payload}");
    let scope = format!("{date}/{}/s3/aws4_request", key.region);
    let hash = hex(digest::digest(&digest::SHA256, request.as_bytes()).as_ref());
    let text = format!("AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hash}");
    let mut derived = format!("AWS4{}", key.secret).into_bytes();
    for step in [&date, key.region, "s3", "aws4_request"] {
        derived = mac(&derived, step);
    }
    let signature = hex(&mac(&derived, &text));
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
        key.access
    );
    headers.push(("authorization".to_owned(), authorization));
    headers
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
