//! The server of credentials: a container's endpoint, which hangs each third time.

use std::fmt;
use std::thread;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use laneway_testkit::{Scripted, answer};

const LAST: Duration = Duration::from_secs(60);
const HANGS: Duration = Duration::from_secs(20);
const HANGS_EACH: usize = 3;

pub(super) struct Tokens {
    server: Scripted,
}

impl Tokens {
    pub(super) fn serve() -> Self {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let server = Scripted::serve(move |_| {
            let number = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            if number.is_multiple_of(HANGS_EACH) {
                thread::sleep(HANGS);
            }
            answer(200, &[], document(SystemTime::now() + LAST))
        });
        Self { server }
    }

    pub(super) fn url(&self) -> String {
        format!("{}/credentials", self.server.url())
    }

    /// The number of times it has hung.
    pub(super) fn hung(&self) -> usize {
        self.server.asked().len() / HANGS_EACH
    }
}

/// Keys that end then. The store refuses them from that time on too.
fn document(ends: SystemTime) -> String {
    let keys = laneway_server::S3Config::default();
    let ends = Timestamp::try_from(ends).expect("a time");
    let token = ends.strftime("until-%Y%m%dT%H%M%SZ");
    format!(
        r#"{{"AccessKeyId":"{}","SecretAccessKey":"{}","Token":"{token}","Expiration":"{}"}}"#,
        keys.access_key,
        keys.secret_key,
        ends.strftime("%Y-%m-%dT%H:%M:%SZ")
    )
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "credentials: asked for {} times, hung {}", self.server.asked().len(), self.hung())
    }
}
