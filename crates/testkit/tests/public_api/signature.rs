//! Writes types, bounds and functions of rustdoc's JSON as source code. An unknown shape is written as its JSON, so
//! that nothing is left out.

use serde_json::Value;

/// Writes a type.
pub(crate) fn ty(value: &Value) -> String {
    let Some((kind, of)) = only(value) else { return value.to_string() };
    match kind {
        "primitive" if of == "never" => "!".to_owned(),
        "primitive" | "generic" => text(of).to_owned(),
        "resolved_path" => path(of),
        "borrowed_ref" => {
            let lifetime = of["lifetime"].as_str().map(|name| format!("{name} ")).unwrap_or_default();
            let is_mutable = if of["is_mutable"] == true { "mut " } else { "" };
            format!("&{lifetime}{is_mutable}{}", ty(&of["type"]))
        }
        "tuple" => format!("({})", each(of, ty)),
        "slice" => format!("[{}]", ty(of)),
        "array" => format!("[{}; {}]", ty(&of["type"]), text(&of["len"])),
        "impl_trait" => format!("impl {}", bounds(of)),
        "dyn_trait" => {
            let traits = list(&of["traits"]).iter().map(|one| path(&one["trait"])).collect::<Vec<_>>();
            let lifetime = of["lifetime"].as_str().map(|name| format!(" + {name}")).unwrap_or_default();
            format!("dyn {}{lifetime}", traits.join(" + "))
        }
        "qualified_path" => match of["trait"]["path"].as_str() {
            Some("") | None => format!("{}::{}", ty(&of["self_type"]), text(&of["name"])),
            Some(_) => format!("<{} as {}>::{}", ty(&of["self_type"]), path(&of["trait"]), text(&of["name"])),
        },
        _ => value.to_string(),
    }
}

/// Writes the path of a type or trait as it is used, with its arguments.
pub(crate) fn path(value: &Value) -> String {
    let name = text(&value["path"]);
    let name = name.trim_start_matches("$crate::").trim_start_matches("crate::").trim_start_matches("::");
    format!("{name}{}", arguments(&value["args"]))
}

/// Writes the bounds of a type, joined by `+`.
pub(crate) fn bounds(value: &Value) -> String {
    let bound = |bound: &Value| match only(bound) {
        Some(("trait_bound", of)) => {
            let modifier = if of["modifier"] == "maybe" { "?" } else { "" };
            format!("{modifier}{}", path(&of["trait"]))
        }
        Some(("outlives", of)) => text(of).to_owned(),
        _ => bound.to_string(),
    };
    list(value).iter().map(bound).collect::<Vec<_>>().join(" + ")
}

/// Returns the text before and after a function's name: `pub async fn ` and `(&self) -> u64`.
pub(crate) fn function(value: &Value) -> (String, String) {
    let header = &value["header"];
    let words = [("is_const", "const "), ("is_async", "async "), ("is_unsafe", "unsafe ")];
    let before: String =
        words.iter().filter(|(flag, _)| header[*flag] == true).map(|(_, word)| *word).collect();
    let input = |input: &Value| match (text(&input[0]), ty(&input[1])) {
        ("self", of) if of == "Self" => "self".to_owned(),
        ("self", of) if of == "&Self" => "&self".to_owned(),
        ("self", of) if of == "&mut Self" => "&mut self".to_owned(),
        (name, of) => format!("{name}: {of}"),
    };
    let output = match &value["sig"]["output"] {
        Value::Null => String::new(),
        output => format!(" -> {}", ty(output)),
    };
    let (parameters, conditions) = generics(&value["generics"]);
    (
        format!("{before}fn "),
        format!("{parameters}({}){output}{conditions}", each(&value["sig"]["inputs"], input)),
    )
}

/// Returns generic parameters, and the conditions after a signature.
pub(crate) fn generics(value: &Value) -> (String, String) {
    let parameter = |parameter: &Value| {
        let name = text(&parameter["name"]);
        match only(&parameter["kind"]) {
            Some(("lifetime", _)) => Some(name.to_owned()),
            // This is written as `impl Trait` in the argument.
            Some(("type", of)) if of["is_synthetic"] == true => None,
            Some(("type", of)) => Some(match bounds(&of["bounds"]) {
                bounds if bounds.is_empty() => name.to_owned(),
                bounds => format!("{name}: {bounds}"),
            }),
            Some(("const", of)) => Some(format!("const {name}: {}", ty(&of["type"]))),
            _ => Some(parameter.to_string()),
        }
    };
    let parameters: Vec<_> = list(&value["params"]).iter().filter_map(parameter).collect();
    let condition = |condition: &Value| match only(condition) {
        Some(("bound_predicate", of)) => format!("{}: {}", ty(&of["type"]), bounds(&of["bounds"])),
        _ => condition.to_string(),
    };
    let conditions = each(&value["where_predicates"], condition);
    (
        if parameters.is_empty() { String::new() } else { format!("<{}>", parameters.join(", ")) },
        if conditions.is_empty() { conditions } else { format!(" where {conditions}") },
    )
}

fn arguments(value: &Value) -> String {
    match only(value) {
        Some(("angle_bracketed", of)) => {
            let argument = |argument: &Value| match only(argument) {
                Some(("type", of)) => ty(of),
                Some(("lifetime", of)) => text(of).to_owned(),
                Some(("const", of)) => text(&of["expr"]).to_owned(),
                _ => argument.to_string(),
            };
            let constraint = |constraint: &Value| {
                let name = text(&constraint["name"]);
                match only(&constraint["binding"]) {
                    Some(("equality", of)) => format!("{name} = {}", ty(&of["type"])),
                    Some(("constraint", of)) => format!("{name}: {}", bounds(of)),
                    _ => constraint.to_string(),
                }
            };
            let all = list(&of["args"]).iter().map(argument);
            let all: Vec<_> = all.chain(list(&of["constraints"]).iter().map(constraint)).collect();
            if all.is_empty() { String::new() } else { format!("<{}>", all.join(", ")) }
        }
        Some(("parenthesized", of)) => {
            let output = match &of["output"] {
                Value::Null => String::new(),
                output => format!(" -> {}", ty(output)),
            };
            format!("({}){output}", each(&of["inputs"], ty))
        }
        _ => String::new(),
    }
}

/// Returns the only key of an object, and its value. rustdoc writes the variants of an enum so.
pub(crate) fn only(value: &Value) -> Option<(&str, &Value)> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.iter().next().map(|(key, of)| (key.as_str(), of))
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn each(value: &Value, shown: impl Fn(&Value) -> String) -> String {
    list(value).iter().map(shown).collect::<Vec<_>>().join(", ")
}
