//! The grammar of `--fault`.

use super::{Action, FaultRule, Glob, Selector, Verb};
use crate::Error;
use laneway_quantity::{parse_duration, parse_rate, parse_size};

const ACTIONS: &str = "status N [REASON] [retry-after D], reset[@SIZE], drop[@SIZE], cut[@SIZE], stall[@SIZE], \
                       truncate[@SIZE], corrupt[@SIZE], length none|+N|-N, range ignored|shifted, wrong-checksum, \
                       replace, error-in-200 [REASON], garble, malformed, lose-answer, slow RATE, rate N/s [burst N], delay D, goaway or refuse-stream";

/// Parses one rule: `[VERB][:N|:A-B|:P%] [key=GLOB] ACTION`.
///
/// # Errors
/// The error names the word that was not understood, and the alternatives.
pub fn parse_fault(rule: &str) -> Result<FaultRule, Error> {
    let refuse = |problem: String| Error::rule(rule, problem);
    let mut words = rule.split_whitespace().peekable();

    let mut verb = None;
    let mut selector = Selector::Always;
    let first = *words.peek().ok_or_else(|| refuse(format!("it is empty; expected {ACTIONS}")))?;
    if !is_action(first) && !first.starts_with("key=") {
        words.next();
        let (name, selected) = match first.split_once(':') {
            Some((name, selected)) => (name, Some(selected)),
            None => (first, None),
        };
        verb = match name {
            "" | "any" => None,
            name => Some(verb_named(name).ok_or_else(|| {
                let verbs: Vec<&str> = Verb::ALL.iter().map(|verb| verb.name()).collect();
                refuse(format!(
                    "`{name}` isn't a verb; expected any, {}, or an action: {ACTIONS}",
                    verbs.join(", ")
                ))
            })?),
        };
        if let Some(selected) = selected {
            selector = parse_selector(selected).ok_or_else(|| {
                refuse(format!(
                    "`:{selected}` selects nothing; expected :3 (the third), :1-3 (the first three) or :10% (a share)"
                ))
            })?;
        }
    }
    let key = words.next_if(|word| word.starts_with("key=")).map(|word| Glob::new(&word["key=".len()..]));
    let action = words.next().ok_or_else(|| refuse(format!("the action is missing; expected {ACTIONS}")))?;
    let rest: Vec<&str> = words.collect();
    let action = parse_action(action, &rest).map_err(|problem| refuse(problem.to_string()))?;
    Ok(FaultRule { verb, key, selector, action })
}

fn is_action(word: &str) -> bool {
    let name = word.split_once('@').map_or(word, |(name, _)| name);
    matches!(
        name,
        "status"
            | "reset"
            | "drop"
            | "cut"
            | "stall"
            | "truncate"
            | "corrupt"
            | "length"
            | "range"
            | "wrong-checksum"
            | "replace"
            | "error-in-200"
            | "garble"
            | "malformed"
            | "lose-answer"
            | "slow"
            | "rate"
            | "delay"
            | "goaway"
            | "refuse-stream"
    )
}

fn verb_named(name: &str) -> Option<Verb> {
    Verb::ALL.into_iter().find(|verb| verb.name() == name)
}

fn parse_selector(text: &str) -> Option<Selector> {
    if let Some(percent) = text.strip_suffix('%') {
        let percent: f64 = percent.parse().ok()?;
        return (0.0..=100.0).contains(&percent).then_some(Selector::Share(percent / 100.0));
    }
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (first.parse().ok()?, last.parse().ok()?),
        None => {
            let nth = text.parse().ok()?;
            (nth, nth)
        }
    };
    (1 <= first && first <= last).then_some(Selector::Between(first, last))
}

fn parse_action(word: &str, rest: &[&str]) -> Result<Action, String> {
    let (name, at) = match word.split_once('@') {
        Some((name, at)) => (name, Some(parse_size(at).map_err(|error| error.to_string())?)),
        None => (word, None),
    };
    let takes_at = matches!(name, "reset" | "drop" | "cut" | "stall" | "truncate" | "corrupt");
    if at.is_some() && !takes_at {
        return Err(format!("`{name}` takes no @SIZE"));
    }
    let action = match (name, rest) {
        ("status", rest) => return parse_status(rest),
        ("slow", [rate]) => Action::Slow(parse_rate(rate).map_err(|error| error.to_string())?),
        ("slow", _) => return Err("`slow` takes one rate, as in slow 100KB/s".to_owned()),
        ("delay", [wait]) => Action::Delay(parse_duration(wait).map_err(|error| error.to_string())?),
        ("delay", _) => return Err("`delay` takes one duration, as in delay 300ms".to_owned()),
        ("rate", rest) => return parse_bucket(rest),
        ("length", [by]) => parse_length(by)?,
        ("length", _) => return Err(LENGTHS.to_owned()),
        ("range", ["ignored"]) => Action::IgnoreRange,
        ("range", ["shifted"]) => Action::ShiftRange,
        ("range", _) => return Err("`range` must be followed by ignored or shifted".to_owned()),
        ("error-in-200", []) => Action::ErrorIn200 { reason: None },
        ("error-in-200", [reason]) => Action::ErrorIn200 { reason: Some((*reason).to_owned()) },
        (_, [extra, ..]) => return Err(format!("`{extra}` is unexpected; the rule must end after `{name}`")),
        ("reset", []) => Action::Reset(at.unwrap_or(0)),
        ("drop", []) => Action::Drop(at.unwrap_or(0)),
        ("cut", []) => Action::Cut(at.unwrap_or(0)),
        ("stall", []) => Action::Stall(at.unwrap_or(0)),
        ("truncate", []) => Action::Truncate(at),
        ("corrupt", []) => Action::Corrupt(at),
        ("wrong-checksum", []) => Action::WrongChecksum,
        ("replace", []) => Action::Replace,
        ("garble", []) => Action::Garble,
        ("malformed", []) => Action::Malformed,
        ("lose-answer", []) => Action::LoseAnswer,
        ("goaway", []) => Action::GoAway,
        ("refuse-stream", []) => Action::RefuseStream,
        (unknown, []) => return Err(format!("`{unknown}` isn't an action; expected {ACTIONS}")),
    };
    Ok(action)
}

const LENGTHS: &str = "`length` takes none, or by how many bytes it is wrong, as in length -1";

fn parse_length(by: &str) -> Result<Action, String> {
    if by == "none" {
        return Ok(Action::Length(None));
    }
    let by = by.starts_with(['+', '-']).then(|| by.parse().ok()).flatten().filter(|by| *by != 0);
    by.map(|by| Action::Length(Some(by))).ok_or_else(|| LENGTHS.to_owned())
}

fn parse_status(rest: &[&str]) -> Result<Action, String> {
    const EXPECTED: &str = "`status` takes a number from 400 to 599, then optionally a reason and `retry-after D`, \
                            as in status 503 SlowDown retry-after 2s";
    let (number, mut rest) = rest.split_first().ok_or(EXPECTED)?;
    let status = number.parse().ok().filter(|status| (400..=599).contains(status)).ok_or(EXPECTED)?;
    let mut reason = None;
    if let [word, more @ ..] = rest
        && *word != "retry-after"
    {
        reason = Some((*word).to_owned());
        rest = more;
    }
    let retry_after = match rest {
        [] => None,
        ["retry-after", wait] => Some(parse_duration(wait).map_err(|error| error.to_string())?),
        _ => return Err(EXPECTED.to_owned()),
    };
    Ok(Action::Status { status, reason, retry_after })
}

fn parse_bucket(rest: &[&str]) -> Result<Action, String> {
    const EXPECTED: &str =
        "`rate` takes requests per second and optionally a burst, as in rate 200/s burst 20";
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    let per_second = |text: &str| text.strip_suffix("/s").and_then(number).ok_or(EXPECTED);
    Ok(match rest {
        [rate] => Action::Rate { per_second: per_second(rate)?, burst: 1.0 },
        [rate, "burst", burst] => {
            let burst = number(burst).filter(|burst| *burst >= 1.0).ok_or(EXPECTED)?;
            Action::Rate { per_second: per_second(rate)?, burst }
        }
        _ => return Err(EXPECTED.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn rule(text: &str) -> FaultRule {
        parse_fault(text).unwrap()
    }

    #[test]
    fn a_rule_names_verb_selector_key_and_action() {
        let read = rule("get:3 key=a/* reset@256KiB");
        assert_eq!(read.verb, Some(Verb::Get));
        assert_eq!(read.selector, Selector::Between(3, 3));
        assert!(read.key.unwrap().matches("a/b"));
        assert_eq!(read.action, Action::Reset(256 << 10));
    }

    #[test]
    fn the_verb_may_be_any_or_left_out() {
        assert_eq!(rule("goaway"), rule("any goaway"));
        assert_eq!(rule(":1-3 refuse-stream").selector, Selector::Between(1, 3));
        assert_eq!(rule("key=x corrupt").action, Action::Corrupt(None));
    }

    #[test]
    fn a_status_has_an_optional_reason_and_wait() {
        let read = rule("put:10% status 503 retry-after 2s");
        assert_eq!(read.selector, Selector::Share(0.1));
        let wait = Some(Duration::from_secs(2));
        assert_eq!(read.action, Action::Status { status: 503, reason: None, retry_after: wait });
        let reason = Some("rateLimitExceeded".to_owned());
        assert_eq!(
            rule("status 403 rateLimitExceeded").action,
            Action::Status { status: 403, reason, retry_after: None }
        );
    }

    #[test]
    fn every_action_can_be_written() {
        assert_eq!(rule("any stall@1MiB").action, Action::Stall(1 << 20));
        assert_eq!(rule("get truncate").action, Action::Truncate(None));
        assert_eq!(rule("put lose-answer").action, Action::LoseAnswer);
        assert_eq!(rule("get slow 100KB/s").action, Action::Slow(100_000));
        assert_eq!(rule("rate 200/s burst 20").action, Action::Rate { per_second: 200.0, burst: 20.0 });
        assert_eq!(rule("head delay 300ms").action, Action::Delay(Duration::from_millis(300)));
        assert_eq!(rule("drop@1MB").action, Action::Drop(1_000_000));
        assert_eq!(rule("get cut@5").action, Action::Cut(5));
        assert_eq!(rule("get length none").action, Action::Length(None));
        assert_eq!(rule("get length +7").action, Action::Length(Some(7)));
        assert_eq!(rule("get length -1").action, Action::Length(Some(-1)));
        assert_eq!(rule("range ignored").action, Action::IgnoreRange);
        assert_eq!(rule("range shifted").action, Action::ShiftRange);
        assert_eq!(rule("wrong-checksum").action, Action::WrongChecksum);
        assert_eq!(rule("get:2 replace").action, Action::Replace);
        assert_eq!(rule("copy error-in-200").action, Action::ErrorIn200 { reason: None });
        let reason = Some("SlowDown".to_owned());
        assert_eq!(rule("copy error-in-200 SlowDown").action, Action::ErrorIn200 { reason });
        assert_eq!(rule("list garble").action, Action::Garble);
        assert_eq!(rule("list malformed").action, Action::Malformed);
    }

    #[test]
    fn what_is_no_rule_is_refused_with_what_was_expected() {
        for (text, expected) in [
            ("", "lose-answer"),
            ("fetch reset", "delete-many"),
            ("get", "the action is missing"),
            ("get:0 reset", ":1-3"),
            ("get:5-2 reset", ":1-3"),
            ("get:101% reset", ":10%"),
            ("get explode", "`explode` isn't an action"),
            ("get reset@much", "256KiB"),
            ("get status", "400 to 599"),
            ("get status 200", "400 to 599"),
            ("get status 503 a b", "400 to 599"),
            ("get slow", "100KB/s"),
            ("rate fast", "200/s"),
            ("goaway now", "`now` is unexpected"),
            ("goaway@3", "takes no @SIZE"),
            ("length", "length -1"),
            ("length 7", "length -1"),
            ("length +0", "length -1"),
            ("range wrong", "ignored or shifted"),
        ] {
            let message = parse_fault(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
