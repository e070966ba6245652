//! One direction of the machine's link, as a fluid: bodies flow at rates, and something is computed only when a rate
//! changes.
//!
//! Connections share the link, their origin's path and, where they carry bulk, the valve by max-min fairness; the
//! streams of a connection share it equally. A connection sends a window a round trip, which doubles whenever it was
//! used up.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::network::{Nanos, Path};
use super::*;

const INITIAL_WINDOW: f64 = 10.0 * 1448.0;

/// Bytes that are taken for none: what rates are rounded by.
const NOTHING: f64 = 0.01;

#[derive(Debug)]
pub(super) struct Link {
    rate: f64,
    /// Rate, round trip and one stream's rate of each origin's path.
    paths: Vec<(f64, Nanos, f64)>,
    valve: Option<f64>,
    pipes: Vec<Pipe>,
    /// The windows of connections on which nothing flows.
    resting: FxHashMap<LaneId, f64>,
    at: Nanos,
    /// Whether the rates have to be found anew.
    stale: bool,
    next: Option<Nanos>,
    /// Bytes that have flowed, and how many of each origin's were bulk.
    pub(super) carried: f64,
    pub(super) bulk: Vec<f64>,
}

/// A connection on which something flows.
#[derive(Debug)]
struct Pipe {
    lane: LaneId,
    origin: usize,
    role: Role,
    /// The streams and the number of bytes each ends at, the first to end last.
    streams: Vec<(f64, AttemptId)>,
    /// Bytes that each stream present from the beginning would have had.
    served: f64,
    rate: f64,
    window: f64,
    /// What is left of the window in this round trip, and when that ends.
    credit: f64,
    round_ends: Nanos,
    /// Whether the window holds it back at its rate; where it doesn't, rounds go by unseen.
    is_held: bool,
}

impl Link {
    pub(super) fn new(rate: f64, paths: &[Path]) -> Self {
        Self {
            rate,
            paths: paths.iter().map(|p| (p.rate, super::network::nanos(p.rtt), p.stream_rate)).collect(),
            valve: None,
            pipes: Vec::new(),
            resting: FxHashMap::default(),
            at: 0,
            stale: false,
            next: None,
            carried: 0.0,
            bulk: vec![0.0; paths.len()],
        }
    }

    /// When a body ends or a rate changes by itself.
    pub(super) fn next(&mut self) -> Option<Nanos> {
        if std::mem::take(&mut self.stale) {
            self.share();
            self.foresee();
        }
        self.next
    }

    /// A body begins to flow. The link has been [advanced](Self::advance) to now.
    pub(super) fn begin(&mut self, lane: LaneId, origin: usize, role: Role, attempt: AttemptId, bytes: u64) {
        self.stale = true;
        let at = self.pipes.iter().position(|p| p.lane == lane).unwrap_or_else(|| {
            let window = self.resting.remove(&lane).unwrap_or(INITIAL_WINDOW);
            let round_ends = self.at + self.paths[origin].1;
            let (streams, served, rate) = (Vec::new(), 0.0, 0.0);
            self.pipes.push(Pipe {
                lane,
                origin,
                role,
                streams,
                served,
                rate,
                window,
                credit: window,
                round_ends,
                is_held: false,
            });
            self.pipes.len() - 1
        });
        let pipe = &mut self.pipes[at];
        let until = pipe.served + bytes as f64;
        let place = pipe.streams.partition_point(|(other, _)| *other > until);
        pipe.streams.insert(place, (until, attempt));
    }

    /// A body stops flowing before its end.
    pub(super) fn stop(&mut self, lane: LaneId, attempt: AttemptId) {
        if let Some(pipe) = self.pipes.iter_mut().find(|p| p.lane == lane) {
            pipe.streams.retain(|(_, other)| *other != attempt);
            self.rest();
        }
    }

    /// A connection is gone, and nothing flows on it.
    pub(super) fn close(&mut self, lane: LaneId) {
        self.resting.remove(&lane);
    }

    pub(super) fn set_valve(&mut self, rate: Option<u64>) {
        self.valve = rate.map(|r| r as f64);
        self.stale = true;
    }

    /// Lets everything flow until `now`; the attempts whose bodies have ended are added to `ended`.
    pub(super) fn advance(&mut self, now: Nanos, ended: &mut Vec<AttemptId>) {
        // With the rates that held until now.
        self.next();
        let seconds = (now - self.at) as f64 * 1e-9;
        self.at = now;
        let is_due = self.next.is_some_and(|at| at <= now);
        for pipe in &mut self.pipes {
            let moved = pipe.rate * seconds;
            self.carried += moved;
            if pipe.role == Role::Freight {
                self.bulk[pipe.origin] += moved;
            }
            pipe.credit -= moved;
            pipe.served += moved / pipe.streams.len() as f64;
            if pipe.round_ends <= now {
                if pipe.is_held && pipe.credit <= NOTHING {
                    pipe.window *= 2.0;
                }
                pipe.credit = pipe.window;
                pipe.round_ends = now + self.paths[pipe.origin].1;
                self.stale |= pipe.is_held;
            }
            while pipe.streams.last().is_some_and(|(until, _)| *until <= pipe.served + NOTHING) {
                ended.extend(pipe.streams.pop().map(|(_, attempt)| attempt));
            }
        }
        if is_due {
            self.rest();
        }
    }

    /// What flows, and how many bytes of it are still to come.
    pub(super) fn flowing(&self) -> Vec<(AttemptId, u64)> {
        let of_pipe = |pipe: &Pipe| -> Vec<_> {
            pipe.streams
                .iter()
                .map(|(until, attempt)| (*attempt, (until - pipe.served).ceil() as u64))
                .collect()
        };
        self.pipes.iter().flat_map(of_pipe).collect()
    }

    fn rest(&mut self) {
        self.stale = true;
        let resting = &mut self.resting;
        self.pipes.retain(|pipe| {
            if pipe.streams.is_empty() {
                resting.insert(pipe.lane, pipe.window);
            }
            !pipe.streams.is_empty()
        });
    }

    /// Fills all connections evenly; each stops at its own cap or where something that it shares is full.
    fn share(&mut self) {
        // The link, the valve, what express lanes have in its place, and the paths: what is left, and for how many.
        let mut limits =
            vec![(self.rate, 0_u32), (self.valve.unwrap_or(f64::INFINITY), 0), (f64::INFINITY, 0)];
        limits.extend(self.paths.iter().map(|(rate, _, _)| (*rate, 0)));
        let of = |pipe: &Pipe| [0, if pipe.role == Role::Freight { 1 } else { 2 }, 3 + pipe.origin];
        let mut filling: Vec<(f64, usize)> = Vec::with_capacity(self.pipes.len());
        for (i, pipe) in self.pipes.iter_mut().enumerate() {
            pipe.rate = 0.0;
            let (_, rtt, stream_rate) = self.paths[pipe.origin];
            if pipe.credit > NOTHING || is_wide(self.rate, pipe.window, rtt) {
                filling.push((stream_rate * pipe.streams.len() as f64, i));
                for limit in of(pipe) {
                    limits[limit].1 += 1;
                }
            }
        }
        let mut level = 0.0;
        while !filling.is_empty() {
            let shares = limits.iter().filter(|l| l.1 > 0).map(|l| l.0 / f64::from(l.1));
            let caps = filling.iter().map(|(cap, _)| cap - level);
            let step = shares.chain(caps).fold(f64::INFINITY, f64::min).max(0.0);
            level += step;
            for limit in limits.iter_mut().filter(|l| l.1 > 0) {
                limit.0 -= step * f64::from(limit.1);
            }
            filling.retain(|(cap, i)| {
                let pipe = &mut self.pipes[*i];
                let is_full = *cap <= level * (1.0 + 1e-9) || of(pipe).iter().any(|l| limits[*l].0 <= 1e-3);
                if is_full {
                    pipe.rate = level;
                    for limit in of(pipe) {
                        limits[limit].1 -= 1;
                    }
                }
                !is_full
            });
        }
    }

    fn foresee(&mut self) {
        let (mut soonest, mut round) = (f64::INFINITY, Nanos::MAX);
        for pipe in &mut self.pipes {
            let each = pipe.rate / pipe.streams.len() as f64;
            if let Some((until, _)) = pipe.streams.last().filter(|_| each > 0.0) {
                soonest = soonest.min((until - pipe.served) / each);
            }
            let rtt = self.paths[pipe.origin].1;
            let left = pipe.round_ends.saturating_sub(self.at) as f64 * 1e-9;
            let lasts = pipe.credit > pipe.rate * left && pipe.window > pipe.rate * rtt as f64 * 1e-9;
            pipe.is_held = !(is_wide(self.rate, pipe.window, rtt) || lasts && pipe.rate > 0.0);
            if pipe.is_held {
                round = round.min(pipe.round_ends);
                if pipe.rate > 0.0 {
                    soonest = soonest.min(pipe.credit / pipe.rate);
                }
            }
        }
        let flows = soonest.partial_cmp(&1e9) == Some(Ordering::Less);
        let flow = if flows { self.at + (soonest * 1e9).max(0.0).ceil() as Nanos } else { Nanos::MAX };
        self.next = Some(flow.min(round)).filter(|at| *at < Nanos::MAX);
    }
}

/// Whether a window is more than the link carries in a round trip: then it holds nothing back.
fn is_wide(rate: f64, window: f64, rtt: Nanos) -> bool {
    window >= rate * rtt as f64 * 1e-9
}
