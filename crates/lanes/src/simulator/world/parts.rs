//! Large objects go in parts, of which a program has a few under way.

use super::*;

/// What a large object is usually cut into, in bytes, and how short the last slices of a download become.
const USUAL: u64 = 16 << 20;
const LEAST: u64 = 4 << 20;

/// What isn't worth another request, in bytes.
const CLAIM: u64 = 1 << 20;

/// How many a program asks for at once, and sends at once.
const DOWN_AT_ONCE: u64 = 32;
const UP_AT_ONCE: u64 = 16;

/// A large object and what nobody has asked for yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    origin: usize,
    is_up: bool,
    left: u64,
}

impl World {
    /// A program sends a file.
    pub(crate) fn put_in_parts(&mut self, bytes: u64, origin: usize) {
        self.objects.push(Object { origin, is_up: true, left: bytes });
        (0..UP_AT_ONCE).for_each(|_| self.next_part(self.objects.len() - 1));
    }

    /// The size of an object is known, of which an opener brings the first part itself.
    pub(super) fn get_the_rest(&mut self, opener: AttemptId, bytes: u64, origin: usize) {
        let object = self.objects.len();
        self.objects.push(Object { origin, is_up: false, left: bytes });
        self.request(opener).want.part_of = Some(object);
        (1..DOWN_AT_ONCE).for_each(|_| self.next_part(object));
    }

    /// The next part of an object is asked for, if there is one.
    pub(super) fn next_part(&mut self, number: usize) {
        let object = &mut self.objects[number];
        let usual =
            if object.is_up { USUAL } else { object.left.div_ceil(DOWN_AT_ONCE / 4).clamp(LEAST, USUAL) };
        let part = if object.left < usual + usual / 4 { object.left } else { usual };
        if part == 0 {
            return;
        }
        object.left -= part;
        let want = if object.is_up { Want::put(part) } else { Want::get(part) };
        let want = want.of(object.origin).part_of(number);
        self.submit(Duration::ZERO, want);
    }

    /// At the end of downloads whoever is free takes over the later half of what is longest, of what hasn't left its server yet.
    pub(super) fn halve(&mut self) {
        let of_an_object = |request: &Request| request.ended.is_none() && request.want.part_of.is_some();
        let waits = |request: &Request| of_an_object(request) && request.lanes.is_empty();
        if self.objects.iter().any(|object| object.is_up || object.left > 0)
            || self.requests.iter().any(waits)
        {
            return;
        }
        let running =
            self.requests.iter().enumerate().filter(|(_, request)| of_an_object(request) && request.running);
        let unwritten = running.filter_map(|(number, request)| {
            let (attempt, lane) = (AttemptId(number as u64), *request.lanes.last()?);
            Some((self.network.down.unwritten(lane, attempt), attempt, lane))
        });
        let Some((left, attempt, lane)) = unwritten.max().filter(|(left, ..)| *left >= 2 * CLAIM) else {
            return;
        };
        self.network.down.cut(lane, attempt, left / 2);
        let Want { origin, part_of, .. } = self.request(attempt).want;
        self.request(attempt).is_cut = true;
        self.submit(Duration::ZERO, Want { part_of, ..Want::get(left / 2).of(origin) });
    }
}
