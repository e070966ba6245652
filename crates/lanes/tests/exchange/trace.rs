//! What a recorder sees.

use std::io::Write as _;

use http::Method;
use laneway_lanes::Role;
use laneway_lanes::trace::{Trace, What};
use laneway_lanes::{Body, Config, Lanes, Protocol};

use super::support::{Script, read_request, request};

#[tokio::test]
async fn a_recorder_hears_of_each_lane_and_each_request_on_it() {
    let script = Script::serve(|_, mut stream| {
        while !read_request(&mut stream).is_empty() {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour").unwrap();
        }
    });
    let trace = Trace::default();
    let lanes = Lanes::start(Config { trace: Some(trace.clone()), ..Config::default() }).unwrap();
    for _ in 0..2 {
        let mut put = request(&script.origin, Method::PUT, "/key?signature=secret");
        put.body = Body::from(bytes::Bytes::from_static(b"123"));
        lanes.exchange(put).await.unwrap();
    }

    let moments = trace.moments();
    assert!(moments.is_sorted_by_key(|moment| moment.at));
    let of_the_first_lane: Vec<What> = moments
        .into_iter()
        .map(|moment| moment.what)
        .filter(|what| !matches!(what, What::Dialled { lane: 1.., .. } | What::Opened { lane: 1.., .. }))
        .collect();
    let sent = |attempt| What::Sent {
        attempt,
        lane: 0,
        role: Role::Express,
        label: "PUT /key".to_owned(),
        bytes: 3,
    };
    let expected = [
        What::Dialled { lane: 0, role: Role::Express },
        What::Opened { lane: 0, protocol: Protocol::H1 },
        sent(0),
        What::Finished { attempt: 0, bytes: 4 },
        sent(1),
        What::Finished { attempt: 1, bytes: 4 },
    ];
    assert_eq!(of_the_first_lane, expected);
}
