//! A bucket's `cors` in the JSON API.
//! <https://cloud.google.com/storage/docs/cross-origin>

use serde_json::{Value, json};

use super::answer::ApiError;
use crate::objects::settings::CorsRule;

/// Reads the CORS rules in a bucket's resource.
pub(super) fn rules(value: &Value) -> Result<Vec<CorsRule>, ApiError> {
    let rules = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(rules) => rules,
        _ => return Err(ApiError::invalid("Invalid value for cors: a list was expected")),
    };
    rules.iter().map(rule).collect()
}

fn rule(rule: &Value) -> Result<CorsRule, ApiError> {
    let fields = rule.as_object().ok_or_else(|| ApiError::invalid("A CORS rule is no JSON object."))?;
    let mut read = CorsRule::default();
    for (name, value) in fields {
        let invalid = || ApiError::invalid(format!("Invalid value for cors.{name}"));
        let list = || {
            let items = value.as_array().ok_or_else(invalid)?.iter();
            items
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(invalid))
                .collect::<Result<Vec<_>, _>>()
        };
        match name.as_str() {
            "origin" => read.origins = list()?,
            "method" => read.methods = list()?,
            // In GCS, `responseHeader` lists both the headers that a page may read and those that it may
            // send.
            "responseHeader" => {
                read.exposed = list()?;
                read.headers.clone_from(&read.exposed);
            }
            "maxAgeSeconds" => {
                let seconds = value.as_u64().or_else(|| value.as_str()?.parse().ok());
                read.max_age_s =
                    Some(seconds.and_then(|seconds| seconds.try_into().ok()).ok_or_else(invalid)?);
            }
            _ => return Err(invalid()),
        }
    }
    Ok(read)
}

/// Returns the rules in the JSON format of the service.
pub(super) fn resource(rules: &[CorsRule]) -> Value {
    let rules = rules.iter().map(|rule| {
        let mut fields = json!({"origin": rule.origins, "method": rule.methods});
        if !rule.exposed.is_empty() {
            fields["responseHeader"] = json!(rule.exposed);
        }
        if let Some(seconds) = rule.max_age_s {
            fields["maxAgeSeconds"] = json!(seconds);
        }
        fields
    });
    Value::Array(rules.collect())
}
