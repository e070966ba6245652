//! Fuzzes the parser of HTTP/1.1 answers.

use http::Method;

use super::framing::{ChunkDecoder, Framing};
use super::head::{self, Heads};
use crate::ResponseHead;

/// The result of reading an answer.
#[derive(PartialEq, Eq, Debug)]
enum ReadOutcome {
    /// The bytes aren't valid HTTP/1.1.
    Broken,
    /// The answer isn't complete.
    Unfinished,
    Whole {
        status: u16,
        keep_alive: bool,
        body: Vec<u8>,
        /// The number of bytes that belong to the answer.
        used: usize,
    },
}

/// Parses an answer. The first byte selects the method of the request. Panics if the result depends on how the bytes are split into reads.
pub fn answer(input: &[u8]) {
    let Some((drawn, bytes)) = input.split_first() else { return };
    let method = if drawn.is_multiple_of(2) { Method::GET } else { Method::HEAD };
    let whole = read(&method, bytes, bytes.len().max(1));
    for step in [1, 2, 5, 1000] {
        assert_eq!(read(&method, bytes, step), whole, "in reads of {step} bytes");
    }
    if let ReadOutcome::Whole { body, used, .. } = whole {
        assert!(body.len() <= used && used <= bytes.len());
    }
}

fn read(method: &Method, bytes: &[u8], step: usize) -> ReadOutcome {
    let mut left = bytes;
    let next = |left: &[u8]| left.len().min(step);
    let mut heads = Heads::default();
    let answer = loop {
        if left.is_empty() {
            return ReadOutcome::Unfinished;
        }
        match heads.feed(&left[..next(left)]) {
            Ok((used, answer)) => {
                assert!(used > 0, "no byte of the head was consumed");
                left = &left[used..];
                match answer {
                    Some(answer) => break answer,
                    None => continue,
                }
            }
            Err(_) => return ReadOutcome::Broken,
        }
    };
    let ResponseHead { status, headers } = &answer.head;
    if let Some(value) = headers.get("keep-alive").and_then(|value| value.to_str().ok()) {
        let _ = head::keep_alive_timeout(value);
    }
    let body = match Framing::of(method, &answer.head) {
        Err(_) => return ReadOutcome::Broken,
        Ok(Framing::UntilClose) => std::mem::take(&mut left).to_vec(),
        Ok(Framing::Sized(length)) => {
            match usize::try_from(length).ok().and_then(|l| left.split_at_checked(l)) {
                Some((body, rest)) => {
                    left = rest;
                    body.to_vec()
                }
                None => return ReadOutcome::Unfinished,
            }
        }
        Ok(Framing::Chunked) => {
            let (mut chunked, mut body) = (ChunkDecoder::default(), Vec::new());
            loop {
                match chunked.left() {
                    Some(0) => break body,
                    _ if left.is_empty() => return ReadOutcome::Unfinished,
                    Some(data) => {
                        let taken = next(left).min(usize::try_from(data).unwrap_or(usize::MAX));
                        body.extend_from_slice(&left[..taken]);
                        chunked.took(taken as u64);
                        left = &left[taken..];
                    }
                    None => match chunked.feed(&left[..next(left)]) {
                        Ok(used) => left = &left[used..],
                        Err(_) => return ReadOutcome::Broken,
                    },
                }
            }
        }
    };
    let used = bytes.len() - left.len();
    ReadOutcome::Whole { status: status.as_u16(), keep_alive: answer.keep_alive, body, used }
}
