//! Networks that drop all packets for a while, as after the loss of a route. Neither end is notified, so no fault of a server can
//! imitate this.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use laneway_testkit::{Changes, Program, Running, random_bytes};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const NET: &str = "10.77.0.0/24";
const SERVER: &str = "10.77.0.1";
const CLIENT: &str = "10.77.0.2";

/// Two hosts on a wire. The hosts are network namespaces, which end when this value is dropped.
struct Wire {
    server: String,
    client: String,
}

impl Wire {
    /// Returns `None` if only root may create the namespaces. The test of that name is then skipped.
    fn lay(test: &str) -> Option<Self> {
        let host = |end: &str| format!("laneway-{}-{test:.8}-{end}", std::process::id());
        let wire = Self { server: host("s"), client: host("c") };
        if !succeeds(&["netns", "add", &wire.server]) {
            eprintln!("skipped: {test} needs root and network namespaces");
            return None;
        }
        ip(&["netns", "add", &wire.client]);
        // Use fixed hardware addresses, because the server answers no ARP request while it has no route.
        let [server, client] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];
        let peer = ["peer", "name", "wire", "address", client, "netns", &wire.client];
        let link = ["link", "add", "wire", "address", server, "netns", &wire.server, "type", "veth"];
        ip(&[&link[..], &peer[..]].concat());
        for (host, own, other, address) in
            [(&wire.server, SERVER, CLIENT, client), (&wire.client, CLIENT, SERVER, server)]
        {
            ip(&["-n", host, "address", "add", &format!("{own}/24"), "dev", "wire"]);
            ip(&["-n", host, "link", "set", "wire", "up"]);
            ip(&["-n", host, "neighbour", "replace", other, "lladdr", address, "dev", "wire"]);
        }
        Some(wire)
    }

    /// Starts the program on one of the hosts.
    fn start(&self, host: &str, laneway: &Program, arguments: &[&str]) -> Running {
        laneway.start([&["netns", "exec", host, LANEWAY][..], arguments].concat())
    }

    /// Drops the server's packets for this time. The client's packets still arrive.
    fn cut_for(&self, time: Duration) {
        ip(&["-n", &self.server, "route", "delete", NET]);
        sleep(time);
        ip(&["-n", &self.server, "route", "add", NET, "dev", "wire"]);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for host in [&self.server, &self.client] {
            succeeds(&["netns", "delete", host]);
        }
    }
}

fn succeeds(arguments: &[&str]) -> bool {
    Command::new("ip").args(arguments).output().is_ok_and(|ended| ended.status.success())
}

fn ip(arguments: &[&str]) {
    assert!(succeeds(arguments), "ip {arguments:?}");
}

#[test]
fn a_network_that_is_cut_for_less_than_retry_for_fails_nothing() {
    let Some(wire) = Wire::lay("a_network_that_is_cut_for_less_than_retry_for_fails_nothing") else { return };
    let home = tempfile::tempdir().expect("a folder");
    let laneway = Program::new("ip", home.path()).in_folder(home.path());
    let (up, bucket) = (home.path().join("up"), home.path().join("root/buckets/bucket"));
    fs::create_dir(&up).expect("made");
    for i in 0..40 {
        fs::write(up.join(i.to_string()), random_bytes(i, 512 << 10)).expect("written");
    }
    let url = format!("http://{SERVER}:9010");
    let listen = ["--listen", &url["http://".len()..], "--root", "root", "--bucket", "bucket"];
    let mut served =
        wire.start(&wire.server, &laneway, &[&["serve", "--bandwidth", "4MB/s"], &listen[..]].concat());
    BufReader::new(served.stdout()).read_line(&mut String::new()).expect("the server's first line");
    let changes = Changes::of(&bucket);
    let options = ["--anonymous", "--gcs-endpoint", &url, "--retry-for", "16s"];
    let copy = [&["cp", "-r"], &options[..], &["up", "gs://bucket"]].concat();
    let running = wire.start(&wire.client, &laneway, &copy);
    // The folder first gets a file that describes the bucket, and then a file that describes the first object.
    assert!(changes.wait_while_runs(&running, || fs::read_dir(&bucket).expect("read").count() > 1));
    // The kernel retransmits unacknowledged data after about 6, 13 and 25 s, and a socket's SYN after 3, 7 and 15 s.
    wire.cut_for(Duration::from_secs(14));
    let run = running.end().succeeds();
    assert!(run.stderr.contains("answers again"), "{}", run.stderr);
}
