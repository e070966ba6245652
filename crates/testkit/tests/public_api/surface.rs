//! The public items of a crate, including re-exports from the crates below it.

use serde_json::Value;

/// A crate, as rustdoc describes it.
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) json: Value,
}

/// Returns a line for each public item of the first crate, in the order of their names.
pub(crate) fn surface(crates: &[Described]) -> Vec<String> {
    let mut shown = Shown { crates, lines: Vec::new() };
    let root = &crates[0];
    let at = root.name.clone();
    shown.members(root, root.item(&root.json["root"]), &at);
    let mut lines = shown.lines;
    let named = |line: &String| line.find(&at).map(|from| line[from..].to_owned());
    lines.sort_by_cached_key(|line| (named(line), line.clone()));
    lines.dedup();
    lines
}

impl Described {
    fn item(&self, id: &Value) -> &Value {
        &self.json["index"][id.to_string()]
    }

    /// Returns an item of this crate by the path of its definition.
    fn defined_at(&self, path: &Value) -> Option<&Value> {
        let paths = self.json["paths"].as_object()?;
        let (id, _) = paths.iter().find(|(_, known)| known["crate_id"] == 0 && known["path"] == *path)?;
        self.json["index"].get(id)
    }
}

struct Shown<'a> {
    crates: &'a [Described],
    lines: Vec<String>,
}

impl<'a> Shown<'a> {
    /// Adds the items of a module.
    fn members(&mut self, of: &'a Described, module: &'a Value, at: &str) {
        for id in list(&module["inner"]["module"]["items"]) {
            let item = of.item(id);
            if item["visibility"] == "public" {
                self.item(of, item, &format!("{at}::{}", text(&item["name"])), at);
            }
        }
    }

    fn item(&mut self, of: &'a Described, item: &'a Value, name: &str, parent: &str) {
        let Some((kind, inner)) = only(&item["inner"]) else { return };
        match kind {
            "use" => self.used(of, inner, parent),
            "module" => {
                self.lines.push(format!("pub mod {name}"));
                self.members(of, item, name);
            }
            "struct" => self.structure(of, item, inner, name),
            "enum" => self.enumeration(of, item, inner, name),
            "trait" => {
                let (parameters, conditions) = generics(&inner["generics"]);
                let supertraits = match bounds(&inner["bounds"]) {
                    bounds if bounds.is_empty() => bounds,
                    bounds => format!(": {bounds}"),
                };
                self.lines.push(format!("pub trait {name}{parameters}{supertraits}{conditions}"));
                list(&inner["items"]).iter().for_each(|id| self.associated(of.item(id), name, true));
            }
            "function" => {
                let (before, after) = function(inner);
                self.lines.push(format!("pub {before}{name}{after}"));
            }
            "type_alias" => self.lines.push(format!("pub type {name} = {}", ty(&inner["type"]))),
            "constant" => self.lines.push(format!("pub const {name}: {}", ty(&inner["type"]))),
            _ => self.lines.push(format!("pub {kind} {name}")),
        }
    }

    /// Adds a re-export: the item itself, if it is from one of our crates.
    fn used(&mut self, of: &'a Described, inner: &'a Value, parent: &str) {
        let name = format!("{parent}::{}", text(&inner["name"]));
        let own = of.item(&inner["id"]);
        if !own.is_null() {
            return self.item(of, own, &name, parent);
        }
        let known = &of.json["paths"][inner["id"].to_string()];
        let crates: &'a [Described] = self.crates;
        let found = crates.iter().find_map(|one| match text(&known["path"][0]) == one.name {
            true => one.defined_at(&known["path"]).map(|item| (one, item)),
            false => None,
        });
        match found {
            Some((of, item)) => self.item(of, item, &name, parent),
            None => self.lines.push(format!("pub use {name} = {}", text(&inner["source"]))),
        }
    }

    fn structure(&mut self, of: &'a Described, item: &Value, inner: &'a Value, name: &str) {
        let (parameters, conditions) = generics(&inner["generics"]);
        let kind = &inner["kind"];
        let (fields, has_more) = match only(kind) {
            Some(("plain", plain)) => (list(&plain["fields"]), plain["has_stripped_fields"] == true),
            Some(("tuple", fields)) => (list(fields), list(fields).iter().any(Value::is_null)),
            _ => (&[][..], false),
        };
        let rest = if has_more { " { .. }" } else { "" };
        self.lines.push(format!("{}pub struct {name}{parameters}{conditions}{rest}", attributes(item)));
        fields.iter().for_each(|id| self.field(of.item(id), name, "pub "));
        self.implementations(of, &inner["impls"], name);
    }

    fn enumeration(&mut self, of: &'a Described, item: &Value, inner: &'a Value, name: &str) {
        let (parameters, conditions) = generics(&inner["generics"]);
        self.lines.push(format!("{}pub enum {name}{parameters}{conditions}", attributes(item)));
        for id in list(&inner["variants"]) {
            let variant = of.item(id);
            let at = format!("{name}::{}", text(&variant["name"]));
            let kind = &variant["inner"]["variant"]["kind"];
            let value = &variant["inner"]["variant"]["discriminant"]["expr"];
            let value = value.as_str().map(|value| format!(" = {value}")).unwrap_or_default();
            let holds = match only(kind) {
                Some(("tuple", fields)) => {
                    let types = list(fields).iter().map(|id| ty(&of.item(id)["inner"]["struct_field"]));
                    format!("({})", types.collect::<Vec<_>>().join(", "))
                }
                Some(("struct", fields)) => {
                    list(&fields["fields"]).iter().for_each(|id| self.field(of.item(id), &at, ""));
                    " {}".to_owned()
                }
                _ => String::new(),
            };
            self.lines.push(format!("{}{at}{holds}{value}", attributes(variant)));
        }
        self.implementations(of, &inner["impls"], name);
    }

    fn field(&mut self, field: &Value, of: &str, visibility: &str) {
        if !field.is_null() {
            let (name, ty) = (text(&field["name"]), ty(&field["inner"]["struct_field"]));
            self.lines.push(format!("{visibility}{of}::{name}: {ty}"));
        }
    }

    /// Adds methods and implemented traits. Traits that the compiler derives (`Send`) and blanket implementations are
    /// left out.
    fn implementations(&mut self, of: &'a Described, impls: &'a Value, name: &str) {
        let mut plain = Vec::new();
        for implementation in list(impls).iter().map(|id| &of.item(id)["inner"]["impl"]) {
            let is_own = implementation["blanket_impl"].is_null() && implementation["is_synthetic"] == false;
            if !is_own {
                continue;
            }
            let items = || list(&implementation["items"]).iter().map(|id| of.item(id));
            if implementation["trait"].is_null() {
                items()
                    .filter(|item| item["visibility"] == "public")
                    .for_each(|item| self.associated(item, name, false));
                continue;
            }
            let (parameters, conditions) = generics(&implementation["generics"]);
            let implemented = path(&implementation["trait"]);
            if implemented.starts_with("StructuralPartialEq") {
                continue;
            }
            match parameters.is_empty() && conditions.is_empty() {
                true => plain.push(implemented.clone()),
                false => self.lines.push(format!("impl{parameters} {implemented} for {name}{conditions}")),
            }
            let associated = items().filter(|item| !item["inner"]["assoc_type"].is_null());
            associated.for_each(|item| self.associated(item, &format!("<{name} as {implemented}>"), true));
        }
        plain.sort();
        if !plain.is_empty() {
            self.lines.push(format!("impl {} for {name}", plain.join(" + ")));
        }
    }

    /// Adds a member of a type or trait.
    fn associated(&mut self, item: &Value, of: &str, in_trait: bool) {
        let at = format!("{of}::{}", text(&item["name"]));
        let visibility = if in_trait { "" } else { "pub " };
        let line = match only(&item["inner"]) {
            Some(("function", inner)) => {
                let (before, after) = function(inner);
                let is_given = if in_trait && inner["has_body"] == true { " { .. }" } else { "" };
                format!("{visibility}{before}{at}{after}{is_given}")
            }
            Some(("assoc_type", inner)) => match &inner["type"] {
                Value::Null => format!("type {at}: {}", bounds(&inner["bounds"])),
                of => format!("type {at} = {}", ty(of)),
            },
            Some(("assoc_const", inner)) => format!("{visibility}const {at}: {}", ty(&inner["type"])),
            _ => format!("{visibility}{at} {}", item["inner"]),
        };
        self.lines.push(line);
    }
}

/// Returns the attributes of an item that matter to a caller's code.
fn attributes(item: &Value) -> &'static str {
    match item["attrs"].to_string().contains("non_exhaustive") {
        true => "#[non_exhaustive] ",
        false => "",
    }
}

// Writes types, bounds and functions of rustdoc's JSON as source code. An unknown shape is written as its JSON, so
// that nothing is left out.

/// Writes a type.
fn ty(value: &Value) -> String {
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
fn path(value: &Value) -> String {
    let name = text(&value["path"]);
    let name = name.trim_start_matches("$crate::").trim_start_matches("crate::").trim_start_matches("::");
    format!("{name}{}", arguments(&value["args"]))
}

/// Writes the bounds of a type, joined by `+`.
fn bounds(value: &Value) -> String {
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
fn function(value: &Value) -> (String, String) {
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
fn generics(value: &Value) -> (String, String) {
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

/// Returns the only key of an object, and its value. rustdoc writes the variants of an enum in this form.
fn only(value: &Value) -> Option<(&str, &Value)> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.iter().next().map(|(key, of)| (key.as_str(), of))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn each(value: &Value, shown: impl Fn(&Value) -> String) -> String {
    list(value).iter().map(shown).collect::<Vec<_>>().join(", ")
}
