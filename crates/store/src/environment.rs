//! The variables that settings and credentials are looked up in.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where variables are looked up: the process's own, or others that stand for them. With [`Environment::of`] a program
/// holds several identities side by side, none of which is the process's.
#[derive(Clone, Default)]
pub struct Environment(Option<Arc<BTreeMap<String, String>>>);

impl Environment {
    /// The variables of this process.
    pub fn process() -> Self {
        Self(None)
    }

    /// These variables and no others.
    pub fn of<N: Into<String>, V: Into<String>>(variables: impl IntoIterator<Item = (N, V)>) -> Self {
        let pair = |(name, value): (N, V)| (name.into(), value.into());
        Self(Some(Arc::new(variables.into_iter().map(pair).collect())))
    }

    /// A variable's value. An empty one counts as unset, as for the official SDKs.
    pub fn get(&self, name: &str) -> Option<String> {
        let value = match &self.0 {
            Some(variables) => variables.get(name).cloned(),
            // What is no UTF-8 shall not count as unset: it names a file that won't be found, and that is reported.
            None => std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()),
        };
        value.filter(|value| !value.is_empty())
    }

    /// The first of these variables that is set.
    pub(crate) fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Whether a variable says `true`, if it is set: as the SDKs read it, whatever isn't `true` is false.
    pub(crate) fn switch(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value.eq_ignore_ascii_case("true"))
    }

    /// The user's folder.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        let named = self.get("HOME").map(PathBuf::from);
        // A service without HOME has a folder in the user database all the same.
        named.or_else(|| if self.0.is_none() { std::env::home_dir() } else { None })
    }

    /// A path in which a leading `~` is the user's folder.
    pub(crate) fn path(&self, text: &str) -> PathBuf {
        let Some(rest) = text.strip_prefix('~') else { return PathBuf::from(text) };
        match (self.home(), rest.strip_prefix('/')) {
            (Some(home), Some(below)) => home.join(below),
            (Some(home), None) if rest.is_empty() => home,
            _ => Path::new(text).to_owned(),
        }
    }
}

impl fmt::Debug for Environment {
    /// Leaves the values out: some are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("Environment(process)"),
            Some(variables) => f.debug_list().entries(variables.keys()).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let environment = Environment::of([("A", ""), ("B", "b")]);
        assert_eq!(environment.get("A"), None);
        assert_eq!(environment.first(&["A", "B"]).as_deref(), Some("b"));
    }

    #[test]
    fn a_tilde_is_the_users_folder_at_the_beginning_only() {
        let environment = Environment::of([("HOME", "/home/u")]);
        assert_eq!(environment.path("~/.aws/config"), Path::new("/home/u/.aws/config"));
        assert_eq!(environment.path("~other/x"), Path::new("~other/x"));
        assert_eq!(environment.path("/a/~"), Path::new("/a/~"));
    }

    #[test]
    fn values_stay_out_of_debug_output() {
        let environment = Environment::of([("AWS_SECRET_ACCESS_KEY", "hush")]);
        assert_eq!(format!("{environment:?}"), r#"["AWS_SECRET_ACCESS_KEY"]"#);
    }
}
