//! The public items of a crate, including re-exports from the crates below it.

use serde_json::Value;

use crate::signature::{bounds, function, generics, list, only, path, text, ty};

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
