//! Encodes HTTP/2 frames and headers byte by byte (RFC 9113, RFC 7541), for peers that break the protocol's rules.

/// The first bytes that a client sends on a connection.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame type: data.
pub const DATA: u8 = 0;
/// A frame type: the headers of a message, or their beginning.
pub const HEADERS: u8 = 1;
/// A frame type: the reset of a stream.
pub const RST_STREAM: u8 = 3;
/// A frame type: settings, or their acknowledgement.
pub const SETTINGS: u8 = 4;
/// A frame type: a request for an acknowledgement.
pub const PING: u8 = 6;
/// A frame type: an increase of a flow-control window.
pub const WINDOW_UPDATE: u8 = 8;
/// A frame type: more headers of the same message.
pub const CONTINUATION: u8 = 9;

/// A flag: no more frames follow on the stream.
pub const END_STREAM: u8 = 1;
/// A flag: the headers are complete.
pub const END_HEADERS: u8 = 4;
/// A flag: this frame acknowledges another frame.
pub const ACK: u8 = 1;

/// A setting: the initial flow-control window of each stream.
pub const INITIAL_WINDOW_SIZE: u16 = 4;

/// Returns a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame's payload").to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Returns a frame of settings, given by number and value.
pub fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = values
        .iter()
        .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
        .collect();
    frame(SETTINGS, 0, 0, &payload)
}

/// Returns a frame that increases the flow-control window of a stream, or of the whole connection if `stream` is 0.
pub fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

/// Encodes a literal header that the peer doesn't add to its table.
pub fn header(name: &str, value: &str) -> Vec<u8> {
    [&[0], &text(name)[..], &text(value)].concat()
}

/// Encodes a literal header that the peer adds to its table, at index 62.
pub fn remembered_header(name: &str, value: &str) -> Vec<u8> {
    [&[0x40], &text(name)[..], &text(value)].concat()
}

/// Encodes a header by its index in the tables.
pub fn indexed_header(index: u8) -> u8 {
    assert!((1..127).contains(&index), "an index of one byte");
    0x80 | index
}

/// Encodes the first headers of a request: method, scheme, authority and path.
pub fn request(method: &str, path: &str) -> Vec<u8> {
    let of = |name, value| header(name, value);
    [of(":method", method), of(":scheme", "https"), of(":authority", "localhost"), of(":path", path)].concat()
}

/// Encodes the first header of an answer: its status.
pub fn status(status: u16) -> Vec<u8> {
    header(":status", &status.to_string())
}

/// Encodes an uncompressed string, with its length in front.
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
