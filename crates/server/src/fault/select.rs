//! Selects the faults for a request. The code has no side effects: its state is the rules with their counters, and the
//! time is an argument.

use std::time::Duration;

use super::answer::{AnswerFault, RangeFault};
use super::{Action, Faults, Selector, Verb};

/// The combined faults of one request. If two rules set the same fault, the first wins.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Effects {
    pub(crate) status: Option<FaultStatus>,
    pub(crate) throttled: bool,
    pub(crate) delay: Option<Duration>,
    pub(crate) request: Option<BodyFault>,
    pub(crate) response: Option<BodyFault>,
    pub(crate) range: Option<RangeFault>,
    pub(crate) replace: bool,
    pub(crate) answer: Option<AnswerFault>,
    pub(crate) lose_answer: bool,
    pub(crate) goaway: bool,
    pub(crate) refuse_stream: bool,
    /// The number of rules that matched.
    pub(crate) fired: u64,
    /// The number of times that the rules had been replaced before this selection.
    pub(crate) drawn: u64,
}

/// A status that is returned instead of carrying out the request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FaultStatus {
    pub(crate) status: u16,
    pub(crate) reason: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    /// True if the status is 200, and only the document reports the error.
    pub(crate) in_200: bool,
}

impl FaultStatus {
    /// The refusal of a request without a length.
    pub(crate) const LENGTH_REQUIRED: Self = Self::status(411);

    pub(crate) const fn status(status: u16) -> Self {
        Self { status, reason: None, retry_after: None, in_200: false }
    }
}

/// A fault in the transfer of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFault {
    Reset(u64),
    Drop(u64),
    Cut(u64),
    Stall(u64),
    Truncate(Option<u64>),
    Corrupt(Option<u64>),
    Slow(u64),
}

/// The rules, with the number of requests that each has counted so far.
#[derive(Debug)]
pub(crate) struct Selection {
    rules: Faults,
    seen: Vec<u64>,
    buckets: Vec<RequestTokens>,
    random: u64,
}

impl Selection {
    pub(crate) fn new(rules: Faults, seed: u64) -> Selection {
        let buckets = rules
            .rules
            .iter()
            .map(|rule| match rule.action {
                Action::Rate { burst, .. } => RequestTokens { tokens: burst, at: Duration::ZERO },
                _ => RequestTokens { tokens: 0.0, at: Duration::ZERO },
            })
            .collect();
        Selection { seen: vec![0; rules.rules.len()], buckets, rules, random: seed }
    }

    /// Counts a request that arrived at `now`, measured from the server's start, and returns its faults.
    pub(crate) fn select(&mut self, now: Duration, verb: Verb, key: &str) -> Effects {
        let mut effects = Effects::default();
        for index in 0..self.rules.rules.len() {
            let rule = &self.rules.rules[index];
            let matches = rule.verb.is_none_or(|wanted| wanted == verb)
                && rule.key.as_ref().is_none_or(|glob| glob.matches(key));
            if !matches {
                continue;
            }
            self.seen[index] += 1;
            let hit = match rule.selector {
                Selector::Always => true,
                Selector::Between(first, last) => (first..=last).contains(&self.seen[index]),
                Selector::Share(share) => unit(&mut self.random) < share,
            };
            if hit && effects.add(&rule.action, verb, || self.buckets[index].take(now, &rule.action)) {
                effects.fired += 1;
            }
        }
        effects
    }
}

impl Effects {
    /// Adds an action to the effects. Returns true if it had an effect.
    fn add(&mut self, action: &Action, verb: Verb, token: impl FnOnce() -> bool) -> bool {
        let body = if verb.uploads() { &mut self.request } else { &mut self.response };
        match action {
            Action::Status { status, reason, retry_after } => {
                let (reason, retry_after) = (reason.clone(), *retry_after);
                let refusal = FaultStatus { reason, retry_after, ..FaultStatus::status(*status) };
                self.status.get_or_insert(refusal);
            }
            Action::Reset(at) => drop(body.get_or_insert(BodyFault::Reset(*at))),
            Action::Drop(at) => drop(body.get_or_insert(BodyFault::Drop(*at))),
            Action::Cut(at) => drop(body.get_or_insert(BodyFault::Cut(*at))),
            Action::Stall(at) => drop(body.get_or_insert(BodyFault::Stall(*at))),
            Action::Truncate(at) => drop(self.response.get_or_insert(BodyFault::Truncate(*at))),
            Action::Corrupt(at) => drop(body.get_or_insert(BodyFault::Corrupt(*at))),
            Action::Slow(rate) => drop(body.get_or_insert(BodyFault::Slow(*rate))),
            Action::IgnoreRange => drop(self.range.get_or_insert(RangeFault::Ignored)),
            Action::ShiftRange => drop(self.range.get_or_insert(RangeFault::Shifted)),
            Action::Replace => self.replace = true,
            Action::ErrorIn200 { reason } => {
                let refusal =
                    FaultStatus { reason: reason.clone(), in_200: true, ..FaultStatus::status(500) };
                self.status.get_or_insert(refusal);
            }
            Action::Length(by) => drop(self.answer.get_or_insert(AnswerFault::Length(*by))),
            Action::WrongChecksum => drop(self.answer.get_or_insert(AnswerFault::WrongChecksum)),
            Action::Garble => drop(self.answer.get_or_insert(AnswerFault::Garbled)),
            Action::Malformed => drop(self.answer.get_or_insert(AnswerFault::Malformed)),
            Action::LoseAnswer => self.lose_answer = true,
            Action::Rate { .. } => {
                if token() {
                    return false;
                }
                self.throttled = true;
            }
            Action::Delay(wait) => drop(self.delay.get_or_insert(*wait)),
            Action::GoAway => self.goaway = true,
            Action::RefuseStream => self.refuse_stream = true,
        }
        true
    }
}

#[derive(Debug)]
struct RequestTokens {
    tokens: f64,
    at: Duration,
}

impl RequestTokens {
    fn take(&mut self, now: Duration, action: &Action) -> bool {
        let Action::Rate { per_second, burst } = action else { return true };
        let elapsed = now.saturating_sub(self.at).as_secs_f64();
        self.tokens = (self.tokens + elapsed * per_second).min(*burst);
        self.at = self.at.max(now);
        let granted = self.tokens >= 1.0;
        if granted {
            self.tokens -= 1.0;
        }
        granted
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014), scaled to 0..1. It is reproducible from the seed, and needs no dependency.
fn unit(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(rules: &[&str]) -> Selection {
        Selection::new(Faults::parse(rules.iter().copied()).unwrap(), 7)
    }

    fn hits(selection: &mut Selection, count: usize, verb: Verb) -> Vec<bool> {
        (0..count).map(|_| selection.select(Duration::ZERO, verb, "k").fired > 0).collect()
    }

    #[test]
    fn only_the_third_matching_request_is_hit() {
        let mut selection = selection(&["get:3 reset"]);
        assert!(!hits(&mut selection, 5, Verb::Put).contains(&true));
        assert_eq!(hits(&mut selection, 4, Verb::Get), [false, false, true, false]);
    }

    #[test]
    fn a_range_of_requests_is_hit() {
        assert_eq!(hits(&mut selection(&[":1-2 status 503"]), 3, Verb::Get), [true, true, false]);
    }

    #[test]
    fn a_share_is_drawn_from_the_seed() {
        let drawn =
            hits(&mut selection(&["10% status 503".replace("10%", ":10%").as_str()]), 2000, Verb::Get);
        let count = drawn.iter().filter(|hit| **hit).count();
        assert!((150..250).contains(&count), "{count}");
        assert_eq!(drawn, hits(&mut selection(&[":10% status 503"]), 2000, Verb::Get));
    }

    #[test]
    fn keys_that_do_not_match_are_not_counted() {
        let mut selection = selection(&["get:1 key=b* stall"]);
        assert_eq!(selection.select(Duration::ZERO, Verb::Get, "a").fired, 0);
        assert_eq!(selection.select(Duration::ZERO, Verb::Get, "b").response, Some(BodyFault::Stall(0)));
    }

    #[test]
    fn body_faults_hit_the_body_that_matters() {
        let mut selection = selection(&["corrupt@4"]);
        assert_eq!(
            selection.select(Duration::ZERO, Verb::Put, "").request,
            Some(BodyFault::Corrupt(Some(4)))
        );
        assert_eq!(
            selection.select(Duration::ZERO, Verb::Get, "").response,
            Some(BodyFault::Corrupt(Some(4)))
        );
    }

    #[test]
    fn a_rate_lets_the_burst_pass_and_refills_with_time() {
        let mut selection = selection(&["rate 10/s burst 3"]);
        assert_eq!(hits(&mut selection, 5, Verb::Get), [false, false, false, true, true]);
        assert!(!selection.select(Duration::from_millis(100), Verb::Get, "").throttled);
        assert!(selection.select(Duration::from_millis(110), Verb::Get, "").throttled);
    }

    #[test]
    fn effects_of_several_rules_add_up_and_the_first_of_a_kind_wins() {
        let mut selection = selection(&["status 503", "status 429", "goaway", "delay 1s"]);
        let effects = selection.select(Duration::ZERO, Verb::Get, "");
        assert_eq!(effects.status.map(|refusal| refusal.status), Some(503));
        assert!(effects.goaway);
        assert_eq!(effects.delay, Some(Duration::from_secs(1)));
        assert_eq!(effects.fired, 4);
    }
}
