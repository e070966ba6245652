//! The environment variables that configure settings and credentials.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The variables of this process, or a set that replaces them. With [`Environment::of`], a program can use several
/// identities at the same time, independent of the process's own variables.
#[derive(Clone, Default)]
pub struct Environment(Option<Arc<BTreeMap<String, String>>>);

impl Environment {
    /// Returns the variables of this process.
    pub fn process() -> Self {
        Self(None)
    }

    /// Returns exactly these variables.
    pub fn of<N: Into<String>, V: Into<String>>(variables: impl IntoIterator<Item = (N, V)>) -> Self {
        let pair = |(name, value): (N, V)| (name.into(), value.into());
        Self(Some(Arc::new(variables.into_iter().map(pair).collect())))
    }

    /// Returns a variable's value. An empty one counts as unset, as in the official SDKs.
    pub fn get(&self, name: &str) -> Option<String> {
        let value = match &self.0 {
            Some(variables) => variables.get(name).cloned(),
            // A value that isn't UTF-8 must not count as unset. With replacement characters, it usually names a file
            // that doesn't exist. The user then gets an error that contains the value.
            None => std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()),
        };
        value.filter(|value| !value.is_empty())
    }

    /// Returns the first of these variables that is set.
    pub(crate) fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Returns true if a variable is `true`, and `None` if it is unset. As in the SDKs, any other value is false.
    pub(crate) fn switch(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Sets the environment of a child process. If a set of variables replaces this process's own, the child gets only
    /// that set. If the set has no `PATH`, the child also gets this process's `PATH`, because it needs one to find
    /// programs.
    pub(crate) fn pass_to(&self, command: &mut Command) {
        if let Some(variables) = &self.0 {
            command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).envs(&**variables);
        }
    }

    /// Returns the user's home folder.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        let named = self.get("HOME").map(PathBuf::from);
        // A system service may run without `HOME`, but the user database still names its home folder.
        named.or_else(|| if self.0.is_none() { std::env::home_dir() } else { None })
    }

    /// Returns a path, with a leading `~` replaced by the user's folder.
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
