//! Hedges of slow requests.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};

use laneway_lanes::{Alike, Call, Error, Hedge, Lanes, LanesConfig, Origin, Request, Response, Verdict};

use super::support::{Script, get, read_target};

/// A read that may be sent twice at once. Any answer except 200 is retried.
pub(crate) struct HedgedCall {
    pub(crate) origin: Origin,
    pub(crate) target: &'static str,
}

impl Call for HedgedCall {
    type Refusal = std::convert::Infallible;

    async fn request(&self, _: u32) -> Result<Request, Self::Refusal> {
        Ok(get(&self.origin, self.target))
    }

    fn judge(&self, outcome: &Result<Response, Error>) -> Verdict {
        match outcome {
            Ok(response) if response.head.status == 200 => Verdict::Done,
            _ => Verdict::Retry,
        }
    }

    fn throttle_key(&self) -> &str {
        "key"
    }

    fn hedged_among(&self) -> Option<Alike> {
        Some(Alike(0))
    }

    async fn hedge(&self) -> Hedge {
        Hedge::Send(Box::new(get(&self.origin, self.target)))
    }
}

/// The number of answers after which Laneway knows the usual time.
const USUAL: u64 = 3;

fn answer(stream: &mut TcpStream, status: &str, body: &str) {
    let length = body.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
}

/// A server that answers all requests except those for `/odd` at once. `first` handles the first request for
/// `/odd`, and `hedge` handles its hedge.
fn odd(
    first: impl Fn(TcpStream) + Send + Sync + 'static,
    hedge: impl Fn(TcpStream) + Send + Sync + 'static,
) -> Script {
    let odds = Mutex::new(0);
    Script::serve(move |_, mut stream| {
        while let Some(target) = read_target(&mut stream) {
            if target != "/odd" {
                answer(&mut stream, "200 OK", "usual");
                continue;
            }
            let number = {
                let mut odds = odds.lock().unwrap();
                *odds += 1;
                *odds
            };
            return if number == 1 { first(stream) } else { hedge(stream) };
        }
    })
}

async fn ask(lanes: &Lanes, origin: &Origin, target: &'static str) -> String {
    let ended = lanes.run(&HedgedCall { origin: origin.clone(), target }).await.unwrap();
    assert_eq!(ended.attempts, 1, "a hedge is no other attempt");
    String::from_utf8(ended.outcome.unwrap().body.to_vec()).unwrap()
}

/// Sends just enough requests for Laneway to know the usual time. Before that, it hedges no request.
async fn usual(lanes: &Lanes, origin: &Origin) {
    for _ in 0..USUAL {
        assert_eq!(ask(lanes, origin, "/").await, "usual");
    }
}

/// Returns both ends of a signal that a test waits for.
fn moment() -> (Sender<()>, Mutex<Receiver<()>>) {
    let (tell, announced) = channel();
    (tell, Mutex::new(announced))
}

#[tokio::test]
async fn the_first_whole_answer_wins_and_the_other_connection_is_given_up() {
    let (tell, announced) = moment();
    let stalls = move |mut stream: TcpStream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nfir").unwrap();
        // Wait until the client closes the connection.
        let _ = stream.read(&mut [0]);
        tell.send(()).unwrap();
    };
    let script = odd(stalls, |mut stream| answer(&mut stream, "200 OK", "second"));
    let lanes = Lanes::start(LanesConfig::default()).unwrap();
    usual(&lanes, &script.origin).await;
    assert_eq!(ask(&lanes, &script.origin, "/odd").await, "second");
    let given_up = tokio::task::spawn_blocking(move || announced.lock().unwrap().recv());
    given_up.await.unwrap().unwrap();
    let counters = lanes.counters();
    assert_eq!((counters.hedges, counters.retries, counters.requests), (1, 0, USUAL + 2));
    assert_eq!(counters.bytes_received, USUAL * 5 + 3 + 6, "the bytes of a hedge are counted");
}

#[tokio::test]
async fn where_one_of_two_fails_the_other_decides() {
    for first_fails in [true, false] {
        let ((tell, announced), (tell_end, ended)) = (moment(), moment());
        // One request fails once both are under way. Only then does the server answer the other one.
        let fails = move |mut stream: TcpStream| {
            if first_fails {
                announced.lock().unwrap().recv().unwrap();
            }
            answer(&mut stream, "500 Internal Server Error", "");
            tell_end.send(()).unwrap();
        };
        let answers = move |mut stream: TcpStream| {
            if first_fails {
                tell.send(()).unwrap();
            }
            ended.lock().unwrap().recv().unwrap();
            answer(&mut stream, "200 OK", "well");
        };
        let script = if first_fails { odd(fails, answers) } else { odd(answers, fails) };
        let lanes = Lanes::start(LanesConfig::default()).unwrap();
        usual(&lanes, &script.origin).await;
        assert_eq!(ask(&lanes, &script.origin, "/odd").await, "well");
        assert_eq!((lanes.counters().hedges, lanes.counters().retries), (1, 0));
    }
}

/// A read that ends with the first error, and reports its retries.
struct Final {
    ask: HedgedCall,
    tried_again: Sender<()>,
}

impl Call for Final {
    type Refusal = std::convert::Infallible;

    async fn request(&self, attempt: u32) -> Result<Request, Self::Refusal> {
        self.ask.request(attempt).await
    }

    fn judge(&self, outcome: &Result<Response, Error>) -> Verdict {
        let verdict = if outcome.is_err() { Verdict::Done } else { self.ask.judge(outcome) };
        if verdict == Verdict::Retry {
            self.tried_again.send(()).unwrap();
        }
        verdict
    }

    fn throttle_key(&self) -> &str {
        self.ask.throttle_key()
    }

    fn hedged_among(&self) -> Option<Alike> {
        self.ask.hedged_among()
    }

    async fn hedge(&self) -> Hedge {
        self.ask.hedge().await
    }
}

#[tokio::test]
async fn where_both_fail_and_one_may_be_tried_again_it_is() {
    for first_fails_for_good in [true, false] {
        let ((tried_again, judged), (tell, announced)) = (moment(), moment());
        let odds = Mutex::new(0);
        let script = Script::serve(move |_, mut stream| {
            while let Some(target) = read_target(&mut stream) {
                let number = {
                    let mut odds = odds.lock().unwrap();
                    *odds += u32::from(target == "/odd");
                    if target == "/odd" { *odds } else { 0 }
                };
                match number {
                    0 => answer(&mut stream, "200 OK", "usual"),
                    1 | 2 => {
                        // Neither request fails before both are under way.
                        if number == 1 {
                            announced.lock().unwrap().recv().unwrap()
                        } else {
                            tell.send(()).unwrap()
                        }
                        if first_fails_for_good == (number == 1) {
                            judged.lock().unwrap().recv().unwrap();
                            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbro").unwrap();
                        } else {
                            answer(&mut stream, "500 Internal Server Error", "");
                        }
                        return;
                    }
                    _ => answer(&mut stream, "200 OK", "well"),
                }
            }
        });
        let lanes = Lanes::start(LanesConfig::default()).unwrap();
        usual(&lanes, &script.origin).await;
        let call = Final { ask: HedgedCall { origin: script.origin.clone(), target: "/odd" }, tried_again };
        let ended = lanes.run(&call).await.unwrap();
        assert_eq!((ended.attempts, &ended.outcome.unwrap().body[..]), (2, &b"well"[..]));
    }
}

#[tokio::test]
async fn the_slot_of_the_one_that_lost_is_free() {
    let both = Arc::new(Barrier::new(2));
    let odds = Mutex::new(0);
    let script = Script::serve(move |_, mut stream| {
        while let Some(target) = read_target(&mut stream) {
            match target.as_str() {
                "/odd" => {
                    let first = std::mem::replace(&mut *odds.lock().unwrap(), 1) == 0;
                    if first {
                        let _ = stream.read(&mut [0]);
                        return;
                    }
                }
                "/both" => drop(both.wait()),
                _ => {}
            }
            answer(&mut stream, "200 OK", "usual");
        }
    });
    let lanes = Lanes::start(LanesConfig { connections_max: Some(2), ..LanesConfig::default() }).unwrap();
    usual(&lanes, &script.origin).await;
    ask(&lanes, &script.origin, "/odd").await;
    // The server answers only when both requests have come, so the requests need both of the allowed connections.
    let both = tokio::join!(ask(&lanes, &script.origin, "/both"), ask(&lanes, &script.origin, "/both"));
    assert_eq!(both, ("usual".to_owned(), "usual".to_owned()));
    assert!(lanes.counters().connections_peak <= 2);
}
