//! A bucket's `cors` in the JSON API.
//! <https://cloud.google.com/storage/docs/cross-origin>

use serde_json::Value;

use super::answer::Problem;

/// The fields of a rule, each a list of strings but the last.
const LISTS: [&str; 3] = ["origin", "method", "responseHeader"];

/// Refuses rules that aren't of the service's form.
pub(super) fn check(value: &Value) -> Result<(), Problem> {
    let rules = match value {
        Value::Null => return Ok(()),
        Value::Array(rules) => rules,
        _ => return Err(Problem::invalid("Invalid value for cors: a list was expected")),
    };
    for rule in rules {
        let fields = rule.as_object().ok_or_else(|| Problem::invalid("A CORS rule is no JSON object."))?;
        for (name, value) in fields {
            let is_list = || value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
            let fits = match name.as_str() {
                "maxAgeSeconds" => {
                    value.is_u64() || value.as_str().is_some_and(|text| text.parse::<u32>().is_ok())
                }
                name => LISTS.contains(&name) && is_list(),
            };
            if !fits {
                return Err(Problem::invalid(format!("Invalid value for cors.{name}")));
            }
        }
    }
    Ok(())
}
