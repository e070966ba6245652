//! Response heads made from a fuzzer's input.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use laneway_lanes::ResponseHead;

/// Makes a head from lines of the form `name: value`. The first byte selects the status.
pub(crate) fn drawn_head(input: &[u8]) -> ResponseHead {
    let (status, lines) = input.split_first().unwrap_or((&0, &[]));
    let status = [200, 206, 204, 308, 404][usize::from(*status) % 5];
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n').take(64) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii())) {
            headers.append(name, value);
        }
    }
    ResponseHead { status: StatusCode::from_u16(status).expect("a status"), headers }
}
