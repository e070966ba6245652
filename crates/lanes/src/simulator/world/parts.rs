//! Large objects. Uploads go in parts, of which a program has a few under way. A download is one stream, whose end others take over where
//! the dispatcher has lanes to spare.

use super::*;

/// Bytes of an upload's usual part, and the parts that a program sends at once.
const USUAL: u64 = 16 << 20;
const UP_AT_ONCE: u64 = 16;

/// Bytes that aren't worth another request.
const CLAIM: u64 = 1 << 20;

/// The shortest range that another stream takes over first, in bytes, but for what 1 Gbit/s carries in a round trip.
const FIRST_SPLIT: u64 = 8 << 20;

/// A large object, and of an upload what hasn't been sent yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    origin: usize,
    left: u64,
    /// Bytes that other streams have taken over so far.
    taken_over: u64,
}

impl World {
    /// A program sends a file.
    pub(crate) fn put_in_parts(&mut self, bytes: u64, origin: usize) {
        self.objects.push(Object { origin, left: bytes, taken_over: 0 });
        (0..UP_AT_ONCE).for_each(|_| self.next_part(self.objects.len() - 1));
    }

    /// The size of an object is known, which an opener brings.
    pub(super) fn opened(&mut self, opener: AttemptId, origin: usize) {
        self.request(opener).want.part_of = Some(self.objects.len());
        self.objects.push(Object { origin, left: 0, taken_over: 0 });
        self.take_over(origin, self.spare[origin]);
    }

    /// Another stream asks for the bytes that its opener can't bring.
    pub(super) fn get_all(&mut self, bytes: u64, origin: usize) {
        self.objects.push(Object { origin, left: 0, taken_over: 0 });
        self.submit(Duration::ZERO, Want::get(bytes).of(origin).part_of(self.objects.len() - 1));
    }

    /// The next part of an upload is sent, if there is one.
    pub(super) fn next_part(&mut self, number: usize) {
        let object = &mut self.objects[number];
        let part = if object.left < USUAL + USUAL / 4 { object.left } else { USUAL };
        if part > 0 {
            object.left -= part;
            let want = Want::put(part).of(object.origin).part_of(number);
            self.submit(Duration::ZERO, want);
        }
    }

    /// So many lanes are to spare: other streams take over the ends of what is longest, of what hasn't left its server yet.
    pub(super) fn take_over(&mut self, origin: usize, lanes: usize) {
        let rtt = self.servers[origin].paths[0].rtt.as_secs_f64();
        let first = FIRST_SPLIT.max((125e6 * rtt) as u64);
        for more in (1..=lanes).rev() {
            let of_an_object =
                |request: &Request| request.running && request.want.origin == origin && request.want.up == 0;
            let running = self.requests.iter().enumerate().filter(|(_, request)| of_an_object(request));
            let unwritten: Vec<_> = running
                .filter_map(|(number, request)| {
                    let (attempt, lane) = (AttemptId(number as u64), *request.lanes.last()?);
                    Some((self.network.down.unwritten(lane, attempt), attempt, lane, request.want.part_of?))
                })
                .collect();
            let Some((left, attempt, lane, number)) = unwritten.iter().copied().max() else { return };
            let of_object = || unwritten.iter().filter(|(.., of)| *of == number);
            let share = of_object().map(|(left, ..)| left).sum::<u64>() / (of_object().count() + more) as u64;
            let bytes = (left / 2).min(share).min(first.max(self.objects[number].taken_over));
            if bytes <= CLAIM {
                return;
            }
            self.objects[number].taken_over += bytes;
            self.network.down.cut(lane, attempt, bytes);
            self.request(attempt).is_cut = true;
            self.submit(Duration::ZERO, Want::get(bytes).of(origin).part_of(number));
        }
    }
}
