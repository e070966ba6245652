//! An invented protocol for these tests. The tests show which parts a new protocol must provide: a connection, and a transport that opens
//! it.
//!
//! A request consists of its path and a newline. An answer consists of one byte for the body's length, and the body.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Dial, DialReport, NewConnection, Transport};
use crate::connection::{BodyEnd, ClientConnection, ConnectionFate, PendingBody};
use crate::error::{Error, Kind};
use crate::incoming::ResponseReceiver;
use crate::shared::{SharedState, with_timeout};
use crate::stream::IoProgress;
use crate::{Lanes, LanesConfig, Origin, Protocol, Request, ResponseHead, Route};

/// The server closes a connection after this many answers.
const ANSWERS: usize = 2;

struct Lines {
    tcp: TcpStream,
    progress: Arc<IoProgress>,
    asked: usize,
}

impl ClientConnection for Lines {
    const PROTOCOL: Protocol = Protocol::new("lines", false);

    /// The body's length.
    type Rest = usize;

    fn progress(&self) -> &Arc<IoProgress> {
        &self.progress
    }

    fn is_unused(&self) -> bool {
        self.asked == 0
    }

    fn is_first(&self) -> bool {
        self.asked == 1
    }

    async fn ask(
        &mut self,
        request: &mut Request,
        incoming: &mut ResponseReceiver,
        shared: &SharedState,
    ) -> Result<PendingBody<usize>, Error> {
        self.asked += 1;
        let line = format!("{}\n", request.target.path());
        let timeout = shared.no_progress;
        with_timeout(self.tcp.write_all(line.as_bytes()), &self.progress, timeout, "asking").await?;
        let rest = with_timeout(self.tcp.read_u8(), &self.progress, timeout, "waiting").await?.into();
        let route = incoming.begin(ResponseHead { status: StatusCode::OK, headers: HeaderMap::new() })?;
        Ok(PendingBody { rest, route, is_last: false, keeps_idle: None })
    }

    async fn receive(
        &mut self,
        pending: PendingBody<usize>,
        incoming: &mut ResponseReceiver,
        timeout: Duration,
        shared: &SharedState,
    ) -> Result<BodyEnd, Error> {
        let mut body = vec![0; pending.rest];
        with_timeout(self.tcp.read_exact(&mut body), &self.progress, timeout, "receiving").await?;
        self.progress.note_at(Instant::now());
        let route = incoming.take(&body)?;
        shared.received(body.len(), incoming.is_bulk(), incoming.tally()).await;
        Ok(BodyEnd { is_stopped: route == Route::Stop, is_reusable: true })
    }

    fn failed(&self, error: Error, _is_hedged: bool, _timeout: Duration) -> (Error, ConnectionFate) {
        (error, ConnectionFate::Spent)
    }
}

/// Opens connections of this protocol. The connections don't report measurements of their path.
struct PlainTcp;

impl Transport for PlainTcp {
    fn resolve<'a>(&'a self, origin: &'a Origin) -> BoxFuture<'a, Result<Vec<SocketAddr>, Error>> {
        Box::pin(async { Ok(vec![SocketAddr::new(origin.host.parse().unwrap(), origin.port)]) })
    }

    fn open<'a>(
        &'a self,
        dial: &'a Dial,
        addresses: &'a [SocketAddr],
        _tried: &'a mut DialReport,
    ) -> BoxFuture<'a, Result<NewConnection, Error>> {
        Box::pin(async move {
            let (address, begun) = (addresses[0], Instant::now());
            let tcp = TcpStream::connect(address).await;
            let tcp = tcp.map_err(|e| Error::because(Kind::Connect, "nobody listens", e))?;
            let rtt = begun.elapsed();
            dial.reached(rtt);
            dial.connected();
            let progress = Arc::new(IoProgress::new(Arc::clone(&dial.traffic)));
            Ok(NewConnection { connection: Box::new(Lines { tcp, progress, asked: 0 }), rtt, address })
        })
    }
}

/// Starts a server of this protocol, which answers with the request's path.
fn serve() -> Origin {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = Origin::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    thread::spawn(move || {
        for tcp in listener.incoming().map(Result::unwrap) {
            let lines = BufReader::new(tcp.try_clone().unwrap()).lines();
            for line in lines.map_while(Result::ok).take(ANSWERS) {
                let head = [u8::try_from(line.len()).unwrap()];
                (&tcp).write_all(&[&head, line.as_bytes()].concat()).unwrap();
            }
        }
    });
    origin
}

#[tokio::test]
async fn a_protocol_of_its_own_is_carried_by_the_real_driver() {
    let (lanes, origin) = (Lanes::start_over(Arc::new(PlainTcp), LanesConfig::default()).unwrap(), serve());
    let get = |path: &str| {
        let request = Request::new(origin.clone(), Method::GET, path.parse().unwrap());
        lanes.exchange(Request { expected: Some(100), ..request })
    };
    for path in ["/one", "/two"] {
        let response = get(path).await.unwrap();
        assert_eq!((&*response.body, response.protocol.name()), (path.as_bytes(), "lines"));
    }
    assert_eq!(lanes.counters().connections, 1, "the second request came after the first");
    let lost = get("/three").await.unwrap_err();
    assert_eq!(lost.kind(), Kind::Interrupted, "the server had closed the connection: {lost}");
    assert_eq!(get("/four").await.unwrap().body, "/four");
    assert_eq!(lanes.counters().connections, 2, "a failed connection is not used again");
}
