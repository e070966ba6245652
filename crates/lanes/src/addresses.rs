//! An origin's addresses, and the order in which new connections try them.
//!
//! New connections take turns among all addresses that the resolver returned, so that they don't all reach the same front end of the store.
//! If an address fails or is slow, new connections avoid it for a while, unless there is no other address. The next dial then asks the
//! resolver again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A resolver's answer is used for this time. Stores change their addresses within minutes. A burst of new connections needs only one
/// lookup.
const FRESH: Duration = Duration::from_secs(30);

/// An address is avoided for this time after it accepted no connection, or after a connection to it failed. Within about a minute, a
/// failed front end has restarted, or the resolver no longer returns its address.
pub(crate) const FAILED_FOR: Duration = Duration::from_secs(60);

/// An address is avoided for this time after one slow response. Most addresses are slow only briefly.
pub(crate) const SLOW_FOR: Duration = Duration::from_secs(10);

/// The known addresses of an origin, and those to avoid.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// The addresses of the resolver's last answer, with IPv6 and IPv4 alternating.
    found: Vec<SocketAddr>,
    looked_up: Option<Instant>,
    turn: usize,
    /// Addresses to avoid, each with the time until which it is avoided.
    avoided: Vec<(SocketAddr, Instant)>,
}

impl Addresses {
    /// Returns whether the resolver's last answer is still recent enough to be used.
    pub(crate) fn are_fresh(&self, now: Instant) -> bool {
        self.looked_up.is_some_and(|at| now.saturating_duration_since(at) < FRESH)
    }

    /// Stores the resolver's answer. An answer without any address changes nothing.
    pub(crate) fn learn(&mut self, now: Instant, found: Vec<SocketAddr>) {
        if !found.is_empty() {
            self.found = interleaved(found);
            self.looked_up = Some(now);
        }
    }

    /// Returns the order in which a new connection tries the addresses. Each call puts another address of the preferred family (IPv6 or
    /// IPv4) first. The other family is only a fallback. If both families took turns, half of the connections would use the fallback.
    /// Avoided addresses come last.
    pub(crate) fn order(&mut self, now: Instant) -> Vec<SocketAddr> {
        self.avoided.retain(|(_, until)| *until > now);
        let is_avoided = |address: &SocketAddr| self.avoided.iter().any(|(avoided, _)| avoided == address);
        let (avoided, good): (Vec<_>, Vec<_>) = self.found.iter().copied().partition(is_avoided);
        let (first, then) = if good.is_empty() { (avoided, good) } else { (good, avoided) };
        let mut order = rotated(first, self.turn);
        self.turn = self.turn.wrapping_add(1);
        order.extend(then);
        order
    }

    /// Avoids an address for a while. The next dial asks the resolver again, since its answer may have changed.
    pub(crate) fn avoid(&mut self, now: Instant, address: SocketAddr, time: Duration) {
        let until = now + time;
        self.looked_up = None;
        match self.avoided.iter_mut().find(|(avoided, _)| *avoided == address) {
            Some((_, before)) => *before = until.max(*before),
            None => self.avoided.push((address, until)),
        }
    }
}

/// Moves one address to the front. Each turn selects another address of the first address's family.
fn rotated(mut addresses: Vec<SocketAddr>, turn: usize) -> Vec<SocketAddr> {
    let Some(first) = addresses.first() else { return addresses };
    let alike: Vec<_> = (0..addresses.len()).filter(|i| addresses[*i].is_ipv6() == first.is_ipv6()).collect();
    let chosen = addresses.remove(alike[turn % alike.len()]);
    addresses.insert(0, chosen);
    addresses
}

/// Alternates IPv6 and IPv4, and otherwise keeps the resolver's order (RFC 8305, section 4).
fn interleaved(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (a, b): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|x| x.is_ipv6() == first_is_v6);
    let mut out = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.into_iter(), b.into_iter());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return out,
            (x, y) => out.extend(x.into_iter().chain(y)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn list(addresses: &[&str]) -> Vec<SocketAddr> {
        addresses.iter().map(|address| address.parse().unwrap()).collect()
    }

    fn known(found: &[&str]) -> (Addresses, Instant) {
        let (mut addresses, now) = (Addresses::default(), Instant::now());
        addresses.learn(now, list(found));
        (addresses, now)
    }

    const THREE: [&str; 3] = ["1.0.0.1:1", "1.0.0.2:1", "1.0.0.3:1"];

    #[test]
    fn families_alternate_from_the_one_the_resolver_prefers() {
        let (mut addresses, now) = known(&["[::1]:1", "[::2]:1", "1.0.0.1:1", "1.0.0.2:1"]);
        assert_eq!(addresses.order(now), list(&["[::1]:1", "1.0.0.1:1", "[::2]:1", "1.0.0.2:1"]));
    }

    #[test]
    fn connections_rotate_in_the_preferred_family_and_fall_back_to_the_other() {
        let (mut addresses, now) = known(&["1.0.0.1:1", "[::1]:1", "1.0.0.2:1"]);
        let firsts: Vec<_> = (0..4).map(|_| addresses.order(now)[0]).collect();
        assert_eq!(firsts, list(&["1.0.0.1:1", "1.0.0.2:1", "1.0.0.1:1", "1.0.0.2:1"]));
        assert_eq!(addresses.order(now).len(), 3);
    }

    #[test]
    fn what_failed_comes_last_until_its_time_is_over() {
        let (mut addresses, now) = known(&THREE);
        let bad = list(&THREE)[1];
        addresses.avoid(now, bad, FAILED_FOR);
        for _ in 0..6 {
            let order = addresses.order(now);
            assert_eq!((order.len(), order[2]), (3, bad));
        }
        let later = now + FAILED_FOR;
        assert!((0..3).any(|_| addresses.order(later)[0] == bad));
    }

    #[test]
    fn where_all_have_failed_they_go_round_as_before() {
        let (mut addresses, now) = known(&THREE);
        list(&THREE).into_iter().for_each(|address| addresses.avoid(now, address, SLOW_FOR));
        let mut firsts: Vec<_> = (0..3).map(|_| addresses.order(now)[0]).collect();
        firsts.sort();
        assert_eq!(firsts, list(&THREE));
    }

    #[test]
    fn a_short_time_does_not_end_a_longer_one() {
        let (mut addresses, now) = known(&THREE);
        let bad = list(&THREE)[0];
        addresses.avoid(now, bad, FAILED_FOR);
        addresses.avoid(now, bad, SLOW_FOR);
        assert_eq!(addresses.order(now + SLOW_FOR)[2], bad);
    }

    #[test]
    fn the_resolver_is_asked_again_after_a_while_and_after_a_failure() {
        let (mut addresses, now) = known(&THREE);
        assert!(addresses.are_fresh(now + FRESH / 2) && !addresses.are_fresh(now + FRESH));
        addresses.avoid(now, list(&THREE)[0], FAILED_FOR);
        assert!(!addresses.are_fresh(now));
        // The resolver now returns another address, without the failed one.
        addresses.learn(now, list(&["1.0.0.9:1"]));
        assert!(addresses.are_fresh(now));
        assert_eq!(addresses.order(now), list(&["1.0.0.9:1"]));
    }

    #[test]
    fn a_resolver_that_says_nothing_changes_nothing() {
        let (mut addresses, now) = known(&THREE);
        addresses.learn(now + FRESH, Vec::new());
        assert_eq!(addresses.order(now).len(), 3);
        assert!(!addresses.are_fresh(now + FRESH), "and is asked again");
        assert_eq!(Addresses::default().order(now), []);
    }
}
