//! Small objects that are moved at the same time as large ones, over many links. Laneway is compared with a plain pool
//! of connections. There are three courses: downloads over HTTP/1.1, downloads over HTTP/2, and uploads.
//!
//! Each course over a link is a [`mixed`] experiment, sized so that the link carries it in some seconds. Each figure is
//! also given as a multiple of the link's floor, which is the shortest possible time. This time is three round trips,
//! plus the time that the link needs for the bytes if the smallest objects come first.

use std::fmt;
use std::time::Duration;

use laneway::Provider;
use laneway_quantity::{InvalidQuantity, parse_duration, parse_loss, parse_rate, parse_size};

use crate::mixed::{self, Figures, Mixed, SMALL_SIZE};
use crate::place::Imitated;
use crate::table::{Line, Table, seconds};
use crate::turns::{Compared as _, Repeats};
use crate::verdict::times;
use crate::{Error, Event, Failure, Stop, Target, Workers};

/// There are as many small objects as the link carries in this many seconds.
const SMALL_S: f64 = 0.25;
/// Minimum and maximum number of small objects. With fewer objects, percentiles say little. More objects add no
/// information.
const SMALL: (f64, f64) = (60.0, 200.0);
/// The number of large objects.
const LARGE: usize = 4;
/// The link needs at least this many seconds for all large objects together.
const LARGE_S: f64 = 1.5;
/// The link also needs at least this many round trips for all large objects. With fewer round trips, the result would
/// only measure slow start.
const LARGE_ROUND_TRIPS: f64 = 25.0;
/// The minimum size of a large object in bytes. A transfer manager downloads a smaller object in a single range.
const LARGE_BYTES_MIN: f64 = (8 << 20) as f64;

/// The links, and the number of runs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The links.
    pub links: Vec<Link>,
    /// Runs of each method over each link. The methods take turns.
    pub runs: Repeats,
}

/// A direction and a protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Course {
    /// Downloads from a store with S3's API over HTTP/1.1 alone.
    DownH1,
    /// Downloads from a store with Google's API that offers HTTP/2.
    DownH2,
    /// Uploads to a store with S3's API over HTTP/1.1 alone.
    UpH1,
}

/// The results for all links.
#[derive(Debug)]
pub struct Links {
    /// The links, in their order.
    pub links: Vec<Link>,
    /// The result of each course over each link.
    pub found: Vec<Leg>,
}

/// The result of one course over one link.
#[derive(Debug)]
pub struct Leg {
    /// The link.
    pub link: Link,
    /// The direction and the protocol.
    pub course: Course,
    /// The figures of Laneway and of the pool.
    pub mixed: Mixed,
}

impl Course {
    /// All courses.
    pub const ALL: [Self; 3] = [Self::DownH1, Self::DownH2, Self::UpH1];

    /// Returns the course's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::DownH1 => "down-h1",
            Self::DownH2 => "down-h2",
            Self::UpH1 => "up-h1",
        }
    }

    /// Returns the course's name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::DownH1 => "download over HTTP/1.1",
            Self::DownH2 => "download over HTTP/2",
            Self::UpH1 => "upload over HTTP/1.1",
        }
    }

    /// Returns the options with which `laneway bench mixed` measures this course.
    fn options(self) -> &'static str {
        match self {
            Self::DownH1 => "--store s3 --h1-only",
            Self::DownH2 => "",
            Self::UpH1 => "--store s3 --h1-only --puts",
        }
    }

    fn plan(self, link: &Link, runs: Repeats) -> mixed::Plan {
        let (large_size, small) = link.load();
        let provider = if self == Self::DownH2 { Provider::Gcs } else { Provider::S3 };
        mixed::Plan {
            large: LARGE,
            large_size,
            small,
            small_size: SMALL_SIZE,
            arrivals: None,
            puts: self == Self::UpH1,
            seed: 1,
            runs,
            folder: None,
            programs: false,
            target: Target::Embedded(link.imitated(provider, self != Self::DownH2)),
        }
    }
}

impl Link {
    /// Returns the bytes of each large object, in whole MiB, and the number of small objects.
    fn load(&self) -> (u64, usize) {
        let rate = self.bandwidth as f64;
        let together = LARGE_S.max(LARGE_ROUND_TRIPS * self.rtt.as_secs_f64()) * rate;
        let large = (together / LARGE as f64).max(LARGE_BYTES_MIN) as u64;
        let small = SMALL_S * rate / ((SMALL_SIZE.0 + SMALL_SIZE.1) / 2) as f64;
        (large >> 20 << 20, small.clamp(SMALL.0, SMALL.1) as usize)
    }

    /// Returns the command that repeats a course over this link, with more rivals.
    pub fn command(&self, course: Course) -> String {
        let (large_size, small) = self.load();
        let options = [course.options().to_owned(), self.options()];
        let options =
            options.iter().filter(|options| !options.is_empty()).map(|options| format!(" {options}"));
        format!(
            "laneway bench mixed{} --large-size {}MiB --small {small}",
            options.collect::<String>(),
            large_size >> 20
        )
    }
}

/// Moves the objects over every link. Blocks the thread, so don't call this on a thread that runs async tasks.
///
/// # Errors
/// Returns an error that prevents the whole experiment. If only one method fails, its row holds the failure.
pub fn run(
    plan: &Plan,
    workers: &Workers,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Links, Error> {
    if plan.links.is_empty() || plan.runs.least == 0 {
        return Err(Error::Plan("the plan needs at least one link and one run".to_owned()));
    }
    let mut found = Vec::new();
    for link in &plan.links {
        for course in Course::ALL {
            let place = format!("{link}, {}", course.title());
            let mixed = course.plan(link, plan.runs);
            let mixed = mixed::run_beside_a_pool(&mixed, workers, stop, &mut |event| match event {
                Event::Begun { rtt, .. } => tell(Event::Begun { bench: "links", store: &place, rtt }),
                event => tell(event),
            })?;
            found.push(Leg { link: *link, course, mixed });
        }
    }
    Ok(Links { links: plan.links.clone(), found })
}

impl Leg {
    /// Returns the shortest possible time for each measure, in seconds, in the order of the measures.
    fn floors_s(&self) -> [f64; 3] {
        let Mixed { floor_s, floors, total_floor_s, .. } = &self.mixed;
        [*floor_s, floors.percentile(99.0), *total_floor_s]
    }

    /// Formats each measure: Laneway's median, its ratio to the floor, and its ratio to the pool. The last cell has
    /// the connections of both.
    fn line(&self) -> Line {
        let rows = &self.mixed.together;
        let failure = rows.iter().find_map(|row| Some((row.description, row.result.as_ref().err()?)));
        let failure = failure.map(|(who, failure)| format!("{who} {}", Failure::remark(failure)));
        let mut cells = Vec::new();
        for (measure, floor_s) in Figures::MEASURES.iter().zip(self.floors_s()) {
            let ours = rows.iter().find(|row| row.is_ours()).and_then(|row| row.spread(measure.value));
            let beside = rows.iter().find_map(|row| row.compared(rows, measure.value));
            if let (Some(ours), Some(beside)) = (ours, beside) {
                let floors = ours.median / floor_s.max(f64::MIN_POSITIVE);
                cells.extend([seconds(ours.median), times(floors), beside.text()]);
            }
        }
        let connections = rows.iter().filter_map(|row| Some(row.figures()?.connections.to_string()));
        cells.push(connections.collect::<Vec<_>>().join(" / "));
        if failure.is_some() {
            cells.clear();
        }
        Line { name: self.link.to_string(), cells, failure }
    }
}

impl Links {
    /// Returns a course's human-readable table, with a line for each link.
    pub fn table(&self, course: Course) -> Table {
        let head = vec![
            course.title(),
            "small p50 s",
            "p50 / shortest",
            "p50 against a pool",
            "small p99 s",
            "p99 / shortest",
            "p99 against a pool",
            "total s",
            "total / shortest",
            "total against a pool",
            "connections, pool / Laneway",
        ];
        let legs = self.found.iter().filter(|leg| leg.course == course);
        Table { head, rows: legs.map(Leg::line).collect() }
    }

    /// Returns a table with a command for each link. The command repeats the link's measurement.
    pub fn commands(&self) -> Table {
        let line =
            |link: &Link| Line { name: link.command(Course::DownH2), cells: Vec::new(), failure: None };
        let head = "commands that measure one link (add --store s3 --h1-only for HTTP/1.1, and also --puts for uploads)";
        Table { head: vec![head], rows: self.links.iter().map(line).collect() }
    }
}

/// A link's delay, rate, queue and loss.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// The round-trip time.
    pub rtt: Duration,
    /// Bytes per second that all connections share in each direction.
    pub bandwidth: u64,
    /// Bytes that may wait in the queue before the link.
    pub queue: u64,
    /// Share of packets that are lost at random, from 0 to 0.5.
    pub loss: f64,
}

impl Link {
    /// The links that Laneway's rules are tested on: near and far, fast and slow, with deep and shallow queues, with
    /// and without loss.
    pub const USUAL: [Self; 8] = [
        link(500, 1000, 1024, 0.0),
        link(2000, 1000, 1024, 0.0),
        link(20_000, 1000, 1024, 0.0),
        link(20_000, 1000, 256, 0.001),
        link(50_000, 500, 1024, 0.0),
        link(120_000, 200, 2048, 0.0),
        link(20_000, 100, 256, 0.0),
        link(20_000, 1000, 1024, 0.005),
    ];

    fn imitated(&self, provider: Provider, h1_only: bool) -> Imitated {
        let Self { rtt, bandwidth, queue, loss } = *self;
        Imitated {
            rtt,
            bandwidth: Some(bandwidth),
            queue: Some(queue),
            loss,
            connection_bandwidth: None,
            h1_only,
            provider,
        }
    }

    /// Returns the options that describe this link to the other benchmarks.
    fn options(&self) -> String {
        let words = ["--rtt", "--bandwidth", "--queue", "--loss"];
        let options = words.into_iter().zip(self.words()).map(|(option, value)| format!("{option} {value}"));
        options.collect::<Vec<_>>().join(" ")
    }

    fn words(&self) -> Vec<String> {
        let mut words = vec![
            format!("{}ms", self.rtt.as_micros() as f64 / 1e3),
            format!("{}Mbit/s", self.bandwidth as f64 / 125e3),
        ];
        words.push(match self.queue % 1024 {
            0 => format!("{}KiB", self.queue / 1024),
            _ => format!("{}B", self.queue),
        });
        if self.loss > 0.0 {
            words.push(format!("{}%", (self.loss * 1e6).round() / 1e4));
        }
        words
    }
}

const fn link(rtt_us: u64, mbit_s: u64, queue_kib: u64, loss: f64) -> Link {
    Link { rtt: Duration::from_micros(rtt_us), bandwidth: mbit_s * 125_000, queue: queue_kib << 10, loss }
}

/// Formats a link as [`parse_link`] parses it.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().join(","))
    }
}

/// Parses a link: its round trip, rate, queue, and optionally its loss, as in `20ms,1Gbit/s,256KiB,0.1%`.
///
/// # Errors
/// The error names the part that is missing or can't be parsed.
pub fn parse_link(text: &str) -> Result<Link, InvalidQuantity> {
    let mut parts = text.split(',');
    let mut part = || parts.next();
    let link = Link {
        rtt: parse_duration(part().unwrap_or_default())?,
        bandwidth: parse_rate(part().unwrap_or_default())?,
        queue: parse_size(part().unwrap_or_default())?,
        loss: part().map_or(Ok(0.0), parse_loss)?,
    };
    // A link has four fields, so a fifth one is an error. `parse_loss` reports the error, because a text with a comma
    // isn't a loss.
    part().map_or(Ok(link), |more| parse_loss(&format!(",{more}")).map(|_| link))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_moved_takes_some_seconds_on_every_link() {
        for link in Link::USUAL {
            let (large_size, small) = link.load();
            let small_bytes = small as u64 * (SMALL_SIZE.0 + SMALL_SIZE.1) / 2;
            let seconds = (LARGE as u64 * large_size + small_bytes) as f64 / link.bandwidth as f64;
            assert!((1.5..4.5).contains(&seconds), "{link}: the link needs {seconds} s for the bytes");
            let round_trips = seconds / link.rtt.as_secs_f64();
            assert!(round_trips > 25.0, "{link}: the bytes take only {round_trips} round trips");
        }
    }

    #[test]
    fn a_line_can_be_measured_again() {
        let link = parse_link("20ms,1Gbit/s,256KiB,0.1%").unwrap();
        assert_eq!(
            link.command(Course::UpH1),
            "laneway bench mixed --store s3 --h1-only --puts --rtt 20ms --bandwidth 1000Mbit/s --queue 256KiB --loss 0.1% \
             --large-size 44MiB --small 112"
        );
        assert!(link.command(Course::DownH2).starts_with("laneway bench mixed --rtt 20ms"));
    }

    #[test]
    fn a_link_is_shown_as_it_is_read() {
        let shown = Link::USUAL.map(|link| link.to_string());
        assert_eq!(shown[0], "0.5ms,1000Mbit/s,1024KiB");
        assert_eq!(shown[7], "20ms,1000Mbit/s,1024KiB,0.5%");
        assert_eq!(shown.map(|text| parse_link(&text).unwrap()), Link::USUAL);
        assert_eq!(parse_link("20ms,1Gbit/s,1MiB,0%").unwrap(), Link::USUAL[2]);
    }

    #[test]
    fn what_is_no_link_is_refused_with_what_is_wrong() {
        for (text, wrong) in [
            ("", "a duration"),
            ("20ms", "a rate"),
            ("20ms,fast", "`fast` is not a rate"),
            ("20ms,1Gbit/s", "a size"),
            ("20ms,1Gbit/s,deep", "a size"),
            ("20ms,1Gbit/s,1MiB,few", "a share"),
            ("20ms,1Gbit/s,1MiB,1%,more", "`,more` is not a share"),
        ] {
            let message = parse_link(text).unwrap_err().to_string();
            assert!(message.contains(wrong), "the message about {text:?} lacks {wrong:?}: {message}");
        }
    }
}
