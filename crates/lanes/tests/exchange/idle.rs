//! Connections that servers close while nobody uses them.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use socket2::SockRef;

use super::hedging::Ask;
use super::support::{Script, get, lanes, read_target};

fn answer(stream: &mut TcpStream, headers: &str) {
    let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n{headers}content-length: 2\r\n\r\nok").as_bytes());
}

/// A server whose connections answer until they are told how to end.
struct Ending {
    script: Script,
    ends: Arc<Mutex<Vec<Sender<End>>>>,
    came: Receiver<usize>,
}

#[derive(Clone, Copy)]
enum End {
    Fin,
    Reset,
}

impl Ending {
    fn serve() -> Self {
        let ends = Arc::<Mutex<Vec<Sender<End>>>>::default();
        let (tell, came) = channel();
        let opened = Arc::clone(&ends);
        let script = Script::serve(move |number, mut stream| {
            let (end, ending) = channel();
            opened.lock().unwrap().push(end);
            let other = stream.try_clone().unwrap();
            std::thread::spawn(move || {
                let Ok(end) = ending.recv() else { return };
                if let End::Reset = end {
                    SockRef::from(&other).set_linger(Some(std::time::Duration::ZERO)).unwrap();
                }
                let _ = match end {
                    End::Fin => other.shutdown(std::net::Shutdown::Both),
                    // Waits for no reader: the descriptor that the other thread holds keeps it open until it notices.
                    End::Reset => SockRef::from(&other).shutdown(std::net::Shutdown::Read),
                };
            });
            while read_target(&mut stream).is_some() {
                let _ = tell.send(number);
                answer(&mut stream, "");
            }
        });
        Self { script, ends, came }
    }

    fn end_all(&self, how: End) {
        self.ends.lock().unwrap().drain(..).for_each(|end| end.send(how).unwrap());
    }
}

/// Resolves when the engine has so many connections open.
async fn open(lanes: &laneway_lanes::Lanes, wanted: u64) {
    let come = async {
        while lanes.counters().connections_open != wanted {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(120), come).await.expect("it stays otherwise");
}

#[tokio::test]
async fn the_end_of_an_idle_connection_is_seen_when_it_comes() {
    for how in [End::Fin, End::Reset] {
        let server = Ending::serve();
        let (lanes, origin) = (lanes(), &server.script.origin);
        for (expected, target) in [(None, "/a"), (Some(8 << 20), "/b")] {
            let mut ask = get(origin, target);
            ask.expected = expected;
            lanes.exchange(ask).await.unwrap();
        }
        let before = lanes.counters();
        assert!(before.connections_open >= 2, "one of each role: {before:?}");
        server.end_all(how);
        // Without another request.
        open(&lanes, 0).await;
        lanes.exchange(get(origin, "/c")).await.unwrap();
        assert_eq!(lanes.counters().requests, before.requests + 1);
        drop(server.came);
    }
}

#[tokio::test]
async fn a_used_connection_that_ends_in_a_request_costs_an_attempt_and_a_pause() {
    let script = Script::serve(|number, mut stream| {
        while let Some(target) = read_target(&mut stream) {
            // The first connection's second request, which follows at once, gets nothing.
            if number == 0 && target == "/ends" {
                return;
            }
            answer(&mut stream, "");
        }
    });
    let lanes = lanes();
    let ask = |target| {
        let (lanes, call) = (&lanes, Ask { origin: script.origin.clone(), target });
        async move { lanes.run(&call).await.unwrap() }
    };
    ask("/a").await.outcome.unwrap();
    let ended = ask("/ends").await;
    ended.outcome.unwrap();
    assert_eq!((ended.attempts, lanes.counters().retries, lanes.counters().connections), (2, 1, 2));
}

#[tokio::test]
async fn a_server_without_keep_alive_gets_a_new_connection_per_request() {
    let script = Script::serve(|_, mut stream| {
        while read_target(&mut stream).is_some() {
            answer(&mut stream, "keep-alive: timeout=0\r\n");
        }
    });
    let lanes = lanes();
    for turn in 1..=3 {
        lanes.exchange(get(&script.origin, "/a")).await.unwrap();
        open(&lanes, 0).await;
        assert_eq!(lanes.counters().connections, turn);
    }
}
