//! Entry points for the fuzzers in `crates/fuzz`, and compiled only for them. Each accepts any bytes and panics if a
//! property doesn't hold.

pub use crate::body::fuzzing::aws_chunked;
pub use crate::gcs::fuzzing::{batch, related};
use crate::parse_fault;
use crate::query::Query;
use crate::route::RequestRoute;

/// Parses a rule of `--fault`.
pub fn fault(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Err(error) = parse_fault(text) {
        assert!(!error.to_string().is_empty());
    }
}

/// Routes a request. The input's first line is the method and the URI, and the other lines are headers.
pub fn route(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut lines = text.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let mut request = http::Request::builder().method(words.next().unwrap_or_default());
    request = request.uri(words.next().unwrap_or_default());
    for (name, value) in lines.filter_map(|line| line.split_once(':')).take(32) {
        request = request.header(name, value.trim());
    }
    let Ok(request) = request.body(()) else { return };
    let head = request.into_parts().0;
    let query = Query::parse(head.uri.query());
    let route = RequestRoute::of(&head, &query, "devstoreaccount1");
    let _ = route.fault_key(&query);
}
