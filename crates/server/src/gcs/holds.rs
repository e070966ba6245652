//! Holds and retentions of objects in the JSON API.
//! <https://cloud.google.com/storage/docs/object-holds>, <https://cloud.google.com/storage/docs/object-lock>

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::answer::ApiError;
use crate::objects::object::{ObjectOptions, RetentionLock};

/// Applies the holds and the retention in a resource to a new or an existing object. `overrides` is true if the request
/// has `overrideUnlockedRetention=true`.
pub(super) fn apply(
    options: &mut ObjectOptions,
    resource: &Value,
    overrides: bool,
    now_us: u64,
) -> Result<(), ApiError> {
    let set = |hold: &mut Option<bool>, name: &str| match resource.get(name) {
        None => Ok(()),
        Some(Value::Bool(on)) => {
            *hold = Some(*on);
            Ok(())
        }
        Some(Value::Null) => {
            *hold = hold.map(|_| false);
            Ok(())
        }
        Some(_) => Err(ApiError::invalid(format!("Invalid value for {name}: a boolean was expected"))),
    };
    set(&mut options.temporary_hold, "temporaryHold")?;
    let was_held = options.event_hold == Some(true);
    set(&mut options.event_hold, "eventBasedHold")?;
    if was_held && options.event_hold == Some(false) {
        options.event_released_us = Some(now_us);
    }
    if let Some(value) = resource.get("retention") {
        options.retention = changed(options.retention, value, overrides, now_us)?;
    }
    if options.retention.is_some() && options.event_hold == Some(true) {
        return Err(ApiError::invalid("Retention and event based holds cannot be configured together."));
    }
    Ok(())
}

/// Returns the retention after a request whose resource has the field `retention`. An empty field changes nothing.
fn changed(
    present: Option<RetentionLock>,
    value: &Value,
    overrides: bool,
    now_us: u64,
) -> Result<Option<RetentionLock>, ApiError> {
    let field = |name: &str| value.get(name).filter(|value| !value.is_null());
    let wanted = match value {
        Value::Object(fields) if fields.is_empty() => return Ok(present),
        Value::Object(_) | Value::Null => match (field("mode"), field("retainUntilTime")) {
            (None, None) => None,
            (mode, until) => Some(read(mode, until, now_us)?),
        },
        _ => return Err(ApiError::invalid("Invalid value for retention: an object was expected")),
    };
    let Some(old) = present else { return Ok(wanted) };
    let loosens = wanted.is_none_or(|wanted| wanted.until_us < old.until_us);
    let locks = wanted.is_some_and(|wanted| wanted.strict);
    if old.strict && (loosens || !locks) {
        return Err(ApiError::forbidden(
            "The locked object retention cannot be removed. Its retention mode cannot be changed and its retention \
             period cannot be shortened.",
        ));
    }
    if !old.strict && (loosens || locks) && !overrides {
        return Err(ApiError::forbidden(
            "The unlocked object retention cannot be removed and its retention period cannot be shortened without \
             overriding unlocked retention intent and permission.",
        ));
    }
    Ok(wanted)
}

fn read(mode: Option<&Value>, until: Option<&Value>, now_us: u64) -> Result<RetentionLock, ApiError> {
    let both = "Both mode and retain until time are required.";
    let mode = mode.ok_or_else(|| ApiError::invalid(format!("Missing retention mode. {both}")))?;
    let until = until.ok_or_else(|| ApiError::invalid(format!("Missing retain until time. {both}")))?;
    let strict = match mode.as_str() {
        Some("Locked") => true,
        Some("Unlocked") => false,
        _ => return Err(ApiError::invalid(format!("Invalid value for: {mode} is not a valid value"))),
    };
    let time = until.as_str().and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok());
    let time = time.ok_or_else(|| {
        ApiError::invalid(
            "Illegal timestamp format; timestamps must end with 'Z' or have a valid timezone offset.",
        )
    })?;
    let until_us = u64::try_from(time.unix_timestamp_nanos() / 1000).unwrap_or_default();
    if until_us <= now_us {
        return Err(ApiError::invalid("Retain until time cannot be in the past."));
    }
    Ok(RetentionLock { strict, until_us })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LATER: &str = "2030-01-01T00:00:00Z";
    const LATEST: &str = "2031-01-01T00:00:00Z";

    fn after(before: &ObjectOptions, resource: Value, overrides: bool) -> Result<ObjectOptions, String> {
        let mut options = before.clone();
        apply(&mut options, &resource, overrides, 5).map(|()| options).map_err(|problem| problem.message)
    }

    #[test]
    fn holds_are_set_released_and_otherwise_left() {
        let held =
            after(&ObjectOptions::default(), json!({"temporaryHold": true, "eventBasedHold": true}), false);
        let held = held.unwrap();
        assert_eq!((held.temporary_hold, held.event_hold), (Some(true), Some(true)));
        assert_eq!(after(&held, json!({}), false).unwrap(), held);
        let released = after(&held, json!({"temporaryHold": false, "eventBasedHold": null}), false).unwrap();
        assert_eq!((released.temporary_hold, released.event_hold), (Some(false), Some(false)));
        assert_eq!(released.event_released_us, Some(5));
        assert!(after(&held, json!({"temporaryHold": "yes"}), false).is_err());
    }

    #[test]
    fn a_retention_is_extended_and_an_unlocked_one_overridden() {
        let of = |mode: &str, until: &str| json!({"retention": {"mode": mode, "retainUntilTime": until}});
        let unlocked = after(&ObjectOptions::default(), of("Unlocked", LATER), false).unwrap();
        let locked = after(&ObjectOptions::default(), of("Locked", LATER), false).unwrap();
        let removal = json!({"retention": {"mode": null, "retainUntilTime": null}});
        for (before, change, overrides, expected) in [
            (&unlocked, of("Unlocked", LATEST), false, true),
            (&unlocked, of("Unlocked", "2029-01-01T00:00:00Z"), false, false),
            (&unlocked, of("Unlocked", "2029-01-01T00:00:00Z"), true, true),
            (&unlocked, of("Locked", LATEST), false, false),
            (&unlocked, of("Locked", LATEST), true, true),
            (&unlocked, removal.clone(), false, false),
            (&unlocked, json!({"retention": null}), true, true),
            (&locked, of("Locked", LATEST), false, true),
            (&locked, of("Locked", "2029-01-01T00:00:00Z"), true, false),
            (&locked, of("Unlocked", LATEST), true, false),
            (&locked, removal, true, false),
            (&locked, json!({"retention": {}}), false, true),
        ] {
            assert_eq!(after(before, change.clone(), overrides).is_ok(), expected, "{change}");
        }
    }

    #[test]
    fn half_a_retention_and_one_beside_an_event_are_refused() {
        for resource in [
            json!({"retention": {"mode": "Locked"}}),
            json!({"retention": {"retainUntilTime": LATER}}),
            json!({"retention": {"mode": "locked", "retainUntilTime": LATER}}),
            json!({"retention": {"mode": "Locked", "retainUntilTime": "2030-01-01T00:00:00"}}),
            json!({"retention": {"mode": "Locked", "retainUntilTime": "1969-01-01T00:00:00Z"}}),
            json!({"retention": "Locked"}),
            json!({"eventBasedHold": true, "retention": {"mode": "Locked", "retainUntilTime": LATER}}),
        ] {
            assert!(after(&ObjectOptions::default(), resource.clone(), true).is_err(), "{resource}");
        }
    }
}
