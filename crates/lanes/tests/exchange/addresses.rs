//! Origins whose name has two addresses.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use laneway_lanes::{Kind, Lanes, LanesConfig, Origin};

use super::hedging::HedgedCall;
use super::support::{get, read_target};

/// A server with one front end per address. The script gets the front end's number with each connection.
fn serve(addresses: &[Ipv4Addr], script: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> u16 {
    let listeners = (0..100).find_map(|_| {
        // The port must be free at every address, so try several ports.
        let first = TcpListener::bind((addresses[0], 0)).unwrap();
        let port = first.local_addr().unwrap().port();
        let others = addresses[1..].iter().map(|address| TcpListener::bind((*address, port)));
        let all = std::iter::once(Ok(first)).chain(others).collect::<Result<Vec<_>, _>>();
        all.ok().map(|all| (port, all))
    });
    let (port, listeners) = listeners.expect("a port that is free at each address");
    let script = Arc::new(script);
    for (number, listener) in listeners.into_iter().enumerate() {
        let script = Arc::clone(&script);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, stream) = (Arc::clone(&script), stream.unwrap());
                thread::spawn(move || script(number, stream));
            }
        });
    }
    port
}

const FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Returns an engine that knows both addresses of `store.test`, and the origin `store.test`.
fn lanes(port: u16, config: LanesConfig) -> (Lanes, Origin) {
    let both = vec![IpAddr::V4(FIRST), IpAddr::V4(SECOND)];
    let resolve = [("store.test".to_owned(), both)].into();
    let lanes = Lanes::start(LanesConfig { resolve, ..config }).unwrap();
    (lanes, Origin::parse(&format!("http://store.test:{port}")).unwrap())
}

fn answer(stream: &mut TcpStream) {
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
}

#[tokio::test]
async fn connections_go_round_the_addresses() {
    let came = Arc::<Mutex<[usize; 2]>>::default();
    let (all, counted) = (Arc::new(Barrier::new(2)), Arc::clone(&came));
    let port = serve(&[FIRST, SECOND], move |number, mut stream| {
        while read_target(&mut stream).is_some() {
            counted.lock().unwrap()[number] += 1;
            // The server answers no request before both requests have come, each on its own connection.
            all.wait();
            answer(&mut stream);
        }
    });
    let (lanes, origin) = lanes(port, LanesConfig::default());
    let ask = || lanes.exchange(get(&origin, "/"));
    let (one, other) = tokio::join!(ask(), ask());
    assert!(one.is_ok() && other.is_ok());
    assert_eq!(*came.lock().unwrap(), [1, 1]);
}

#[tokio::test]
async fn an_address_that_refuses_connections_stops_nobody() {
    for listening in [FIRST, SECOND] {
        let port = serve(&[listening], |_, mut stream| {
            while read_target(&mut stream).is_some() {
                answer(&mut stream);
            }
        });
        let (lanes, origin) = lanes(port, LanesConfig::default());
        for _ in 0..5 {
            lanes.exchange(get(&origin, "/")).await.unwrap();
        }
    }
}

#[tokio::test]
async fn an_address_that_closes_a_used_connection_is_not_left_out() {
    for was_used in [true, false] {
        let came = Arc::<Mutex<[usize; 2]>>::default();
        let (all, counted) = (Barrier::new(2), Arc::clone(&came));
        let port = serve(&[FIRST, SECOND], move |number, mut stream| {
            while let Some(target) = read_target(&mut stream) {
                match target.as_str() {
                    // Some servers close a connection after a number of requests.
                    "/close" => return,
                    "/both" => {
                        counted.lock().unwrap()[number] += 1;
                        all.wait();
                    }
                    _ => {}
                }
                answer(&mut stream);
            }
        });
        let (lanes, origin) = lanes(port, LanesConfig::default());
        if was_used {
            lanes.exchange(get(&origin, "/")).await.unwrap();
        }
        let closed = lanes.exchange(get(&origin, "/close")).await.unwrap_err();
        assert_eq!(closed.kind(), Kind::Interrupted, "{closed}");
        let both = || lanes.exchange(get(&origin, "/both"));
        let (one, other) = tokio::join!(both(), both());
        assert!(one.is_ok() && other.is_ok());
        // If a connection breaks at its first request, Laneway avoids its address.
        assert_eq!(*came.lock().unwrap(), if was_used { [1, 1] } else { [0, 2] });
    }
}

#[tokio::test]
async fn a_hedge_goes_to_another_address() {
    let odds = Arc::<Mutex<Vec<usize>>>::default();
    let (all, came) = (Arc::new(Barrier::new(2)), Arc::clone(&odds));
    let port = serve(&[FIRST, SECOND], move |number, mut stream| {
        while let Some(target) = read_target(&mut stream) {
            match target.as_str() {
                "/all" => drop(all.wait()),
                "/odd" => {
                    let is_first = {
                        let mut came = came.lock().unwrap();
                        came.push(number);
                        came.len() == 1
                    };
                    if is_first {
                        let _ = read_target(&mut stream);
                        return;
                    }
                }
                _ => {}
            }
            answer(&mut stream);
        }
    });
    let (lanes, origin) = lanes(port, LanesConfig::default());
    let ask = |target| {
        let (lanes, call) = (&lanes, HedgedCall { origin: origin.clone(), target });
        async move { lanes.run(&call).await.unwrap().outcome.unwrap() }
    };
    // The first two requests open a connection to each address. From the third answer on, Laneway knows the usual time.
    // Before that, it hedges no request.
    tokio::join!(ask("/all"), ask("/all"));
    ask("/").await;
    ask("/odd").await;
    let came = odds.lock().unwrap().clone();
    assert!(came.len() == 2 && came[0] != came[1], "{came:?}");
    assert_eq!(lanes.counters().hedges, 1);
}
