//! HTTP/2 byte by byte (RFC 9113, RFC 7541), for peers that keep to no rule.

/// What a client begins with.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames.
pub const DATA: u8 = 0;
/// A head, or its beginning.
pub const HEADERS: u8 = 1;
/// Ends a stream.
pub const RST_STREAM: u8 = 3;
/// Settings, or that they were taken.
pub const SETTINGS: u8 = 4;
/// Wants an answer.
pub const PING: u8 = 6;
/// Gives window.
pub const WINDOW_UPDATE: u8 = 8;
/// More of a head.
pub const CONTINUATION: u8 = 9;

/// Flags of frames: nothing follows on the stream.
pub const END_STREAM: u8 = 1;
/// The head is whole.
pub const END_HEADERS: u8 = 4;
/// It answers another.
pub const ACK: u8 = 1;

/// Names of settings: what the sender lets each stream have under way.
pub const INITIAL_WINDOW_SIZE: u16 = 4;

/// A frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame's payload").to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Settings by number and value.
pub fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = values
        .iter()
        .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
        .collect();
    frame(SETTINGS, 0, 0, &payload)
}

/// Window for a stream, or for the connection as stream 0.
pub fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

/// A header that is written out, and not remembered.
pub fn header(name: &str, value: &str) -> Vec<u8> {
    [&[0], &text(name)[..], &text(value)].concat()
}

/// A header that is written out, and remembered under the index 62.
pub fn remembered_header(name: &str, value: &str) -> Vec<u8> {
    [&[0x40], &text(name)[..], &text(value)].concat()
}

/// A header by its index in the tables.
pub fn indexed_header(index: u8) -> u8 {
    assert!((1..127).contains(&index), "an index of one byte");
    0x80 | index
}

/// What every request's head begins with.
pub fn request(method: &str, path: &str) -> Vec<u8> {
    let of = |name, value| header(name, value);
    [of(":method", method), of(":scheme", "https"), of(":authority", "localhost"), of(":path", path)].concat()
}

/// What every answer's head begins with.
pub fn status(status: u16) -> Vec<u8> {
    header(":status", &status.to_string())
}

/// A string that isn't compressed, with its length in front.
fn text(text: &str) -> Vec<u8> {
    const PREFIX_MAX: usize = 127;
    let mut out = Vec::new();
    if text.len() < PREFIX_MAX {
        out.push(text.len() as u8);
    } else {
        out.push(PREFIX_MAX as u8);
        let mut rest = text.len() - PREFIX_MAX;
        while rest >= 128 {
            out.push((rest % 128) as u8 | 128);
            rest /= 128;
        }
        out.push(rest as u8);
    }
    out.extend(text.as_bytes());
    out
}
