//! One direction of a connection, with both its ends.

use std::collections::VecDeque;

use super::receiver::Receiver;
use super::sender::Sender;
use super::{CHUNK, Place};
use crate::dispatch::{AttemptId, Role};
use crate::simulator::wire::Nanos;

#[derive(Debug)]
pub(super) struct Flow {
    pub(super) place: Place,
    /// Bodies that still have bytes to be written, in turns.
    bodies: VecDeque<(AttemptId, u64)>,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// When something arrived last.
    pub(super) arrived_at: Nanos,
}

impl Flow {
    pub(super) fn new(place: Place, sender: Sender, receiver: Receiver) -> Self {
        Self { place, bodies: VecDeque::new(), sender, receiver, arrived_at: 0 }
    }

    pub(super) fn is_bulk(&self) -> bool {
        self.place.role == Role::Freight
    }

    pub(super) fn begin(&mut self, attempt: AttemptId, bytes: u64) {
        self.bodies.push_back((attempt, bytes));
    }

    pub(super) fn stop(&mut self, attempt: AttemptId) {
        self.bodies.retain(|(other, _)| *other != attempt);
    }

    /// Returns what of a body is still to be written.
    pub(super) fn unwritten(&self, attempt: AttemptId) -> u64 {
        self.bodies.iter().find(|(other, _)| *other == attempt).map_or(0, |(_, left)| *left)
    }

    /// A body ends so many bytes sooner, if more than those are still to be written.
    pub(super) fn cut(&mut self, attempt: AttemptId, bytes: u64) -> bool {
        let body = self.bodies.iter_mut().find(|(other, left)| *other == attempt && *left > bytes);
        if let Some((_, left)) = body {
            *left -= bytes;
            return true;
        }
        false
    }

    pub(super) fn bodies(&self) -> usize {
        self.bodies.len()
    }

    /// Writes so many bytes at most into the connection, a chunk of each body in turn.
    pub(super) fn write(&mut self, mut most: u64) -> u64 {
        let before = self.sender.written;
        while most > 0
            && let Some((attempt, left)) = self.bodies.pop_front()
        {
            let bytes = left.min(CHUNK).min(most);
            most -= bytes;
            self.sender.written += bytes;
            self.receiver.is_to_come(attempt, self.sender.written);
            if left > bytes {
                self.bodies.push_back((attempt, left - bytes));
            }
        }
        self.sender.written - before
    }
}
