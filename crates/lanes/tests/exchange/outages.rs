//! Servers that are away for a while, or that close idle connections.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use laneway_lanes::{Breaks, Call, Error, Kind, Lanes, LanesConfig, Origin, Request, Response, Verdict};
use socket2::SockRef;

use super::hedging::HedgedCall;
use super::support::{Script, get, lanes, read_target};

/// A call that is retried after every failure.
struct RetriedCall<'a> {
    origin: Origin,
    breaks: Option<&'a Breaks>,
}

impl Call for RetriedCall<'_> {
    type Refusal = std::convert::Infallible;

    async fn request(&self, _: u32) -> Result<Request, Self::Refusal> {
        Ok(get(&self.origin, "/"))
    }

    fn judge(&self, outcome: &Result<Response, Error>) -> Verdict {
        match outcome {
            Ok(response) if response.head.status.is_server_error() => Verdict::Retry,
            Err(_) if self.breaks.is_none() => Verdict::Retry,
            _ => Verdict::Done,
        }
    }

    fn throttle_key(&self) -> &str {
        "key"
    }

    fn breaks(&self) -> Option<(&Breaks, u64)> {
        self.breaks.map(|breaks| (breaks, 7))
    }
}

fn answer(stream: &mut TcpStream, status: &str) {
    let _ = stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok").as_bytes());
}

fn serve_one(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().unwrap();
    while read_target(&mut stream).is_some() {
        answer(&mut stream, "200 OK");
    }
}

#[tokio::test]
async fn a_server_that_is_restarted_costs_time_and_fails_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let origin = Origin::parse(&format!("http://{address}")).unwrap();
    let lanes = lanes();
    let asked = lanes.clone();
    let back = std::thread::spawn(move || {
        // No server listens until two more attempts have failed.
        while asked.counters().retries < 2 {
            std::thread::yield_now();
        }
        // Drop this handle, so that `drop(lanes)` below ends the engine and closes its connection.
        drop(asked);
        serve_one(&TcpListener::bind(address).unwrap());
    });
    let ended = lanes.run(&RetriedCall { origin, breaks: None }).await.unwrap();
    assert_eq!(ended.outcome.unwrap().head.status, 200);
    assert!(ended.attempts >= 3);
    drop(lanes);
    back.join().unwrap();
}

#[tokio::test]
async fn a_server_that_stays_away_is_given_up_after_the_time_that_is_set() {
    let config = LanesConfig { retry_for: Duration::from_millis(300), ..LanesConfig::default() };
    let lanes = Lanes::start(config).unwrap();
    let ended = lanes.run(&RetriedCall { origin: Script::closed(), breaks: None }).await.unwrap();
    // Unit tests in virtual time (`outage`, `retry`) check when a call ends.
    assert_eq!(ended.outcome.unwrap_err().kind(), Kind::Connect);
    assert!(ended.attempts >= 2);
    // Without retries, a call ends after its first attempt.
    let none = Lanes::start(LanesConfig { retry_for: Duration::ZERO, ..LanesConfig::default() }).unwrap();
    let ended = none.run(&RetriedCall { origin: Script::closed(), breaks: None }).await.unwrap();
    assert_eq!((ended.outcome.unwrap_err().kind(), ended.attempts), (Kind::Connect, 1));
}

#[tokio::test]
async fn a_server_that_has_never_answered_is_given_up_sooner() {
    let retry_unanswered_for = Duration::from_millis(300);
    let lanes = Lanes::start(LanesConfig { retry_unanswered_for, ..LanesConfig::default() }).unwrap();
    let ended = lanes.run(&RetriedCall { origin: Script::closed(), breaks: None }).await.unwrap();
    assert!(ended.is_origin_away && ended.attempts >= 2, "{ended:?}");
    assert!(ended.away_for >= retry_unanswered_for, "{ended:?}");
}

/// The caller may run under an executor other than tokio's, or on a runtime that ends while its calls pause.
#[test]
fn a_call_is_tried_again_by_the_engines_clock_where_its_caller_has_none() {
    let asked = AtomicUsize::new(0);
    let script = Script::serve(move |_, mut stream| {
        while read_target(&mut stream).is_some() {
            let is_first = asked.fetch_add(1, Ordering::Relaxed) == 0;
            answer(&mut stream, if is_first { "503 Service Unavailable" } else { "200 OK" });
        }
    });
    let lanes = Lanes::start(LanesConfig::default()).unwrap();
    let without_timers = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ended =
        without_timers.block_on(lanes.run(&RetriedCall { origin: script.origin, breaks: None })).unwrap();
    assert_eq!((ended.outcome.unwrap().head.status.as_u16(), ended.attempts), (200, 2));
}

#[tokio::test]
async fn a_body_that_breaks_off_again_and_again_is_waited_for_and_then_given_up() {
    let asked = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&asked);
    let script = Script::serve(move |_, mut stream| {
        if read_target(&mut stream).is_some() {
            counted.fetch_add(1, Ordering::Relaxed);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\nseven b");
        }
    });
    let lanes =
        Lanes::start(LanesConfig { retry_for: Duration::from_millis(1500), ..LanesConfig::default() })
            .unwrap();
    let breaks = Breaks::default();
    let last = loop {
        let call = RetriedCall { origin: script.origin.clone(), breaks: Some(&breaks) };
        let error = lanes.run(&call).await.unwrap().outcome.unwrap_err();
        if error.is_last() {
            break error;
        }
    };
    assert!(last.is_transient(), "{last}");
    let (asked, counters) = (asked.load(Ordering::Relaxed), lanes.counters());
    assert!((2..=12).contains(&asked), "{asked} requests");
    assert_eq!(counters.retries as usize, asked - 1);
}

fn answer_with(stream: &mut TcpStream, headers: &str) {
    let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n{headers}content-length: 2\r\n\r\nok").as_bytes());
}

/// A server whose connections answer until the test tells them how to end.
struct EndingServer {
    script: Script,
    ends: Arc<Mutex<Vec<Sender<End>>>>,
    came: Receiver<usize>,
}

#[derive(Clone, Copy)]
enum End {
    Fin,
    Reset,
}

impl EndingServer {
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
                    // This only ends the other thread's read. The connection is reset when both threads have dropped their descriptors.
                    End::Reset => SockRef::from(&other).shutdown(std::net::Shutdown::Read),
                };
            });
            while read_target(&mut stream).is_some() {
                let _ = tell.send(number);
                answer_with(&mut stream, "");
            }
        });
        Self { script, ends, came }
    }

    fn end_all(&self, how: End) {
        self.ends.lock().unwrap().drain(..).for_each(|end| end.send(how).unwrap());
    }
}

/// Resolves when the engine has `wanted` connections open.
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
        let server = EndingServer::serve();
        let (lanes, origin) = (lanes(), &server.script.origin);
        for (expected, target) in [(None, "/a"), (Some(8 << 20), "/b")] {
            let mut ask = get(origin, target);
            ask.expected = expected;
            lanes.exchange(ask).await.unwrap();
        }
        let before = lanes.counters();
        assert!(before.connections_open >= 2, "one of each role: {before:?}");
        server.end_all(how);
        // The client sends no other request meanwhile.
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
            // The second request of the first connection follows at once, and gets no answer.
            if number == 0 && target == "/ends" {
                return;
            }
            answer_with(&mut stream, "");
        }
    });
    let lanes = lanes();
    let ask = |target| {
        let (lanes, call) = (&lanes, HedgedCall { origin: script.origin.clone(), target });
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
            answer_with(&mut stream, "keep-alive: timeout=0\r\n");
        }
    });
    let lanes = lanes();
    for turn in 1..=3 {
        lanes.exchange(get(&script.origin, "/a")).await.unwrap();
        open(&lanes, 0).await;
        assert_eq!(lanes.counters().connections, turn);
    }
}
