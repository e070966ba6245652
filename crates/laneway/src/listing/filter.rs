//! Chooses the names in a tree that a job works on.
//!
//! The first rule that matches a name decides, as in rsync. A rule matches the name itself, or a folder that
//! contains it. So a rule that excludes a folder excludes everything below it. A pattern is compared with the
//! last components of a path, so `*.tmp` matches files in all folders. A pattern that begins with a slash
//! matches only from the top of the tree on. A pattern that ends in a slash matches only folders.

use std::time::SystemTime;

use crate::Error;
use crate::location::pattern::{MatchStart, Pattern};

/// Chooses files and objects of a tree by path, size and time. Paths are relative to the top of the tree. An
/// empty filter includes everything.
///
/// Patterns have the syntax of patterns in keys: `*` and `?` within a component, `**` across components,
/// `[a-z]`. The first pattern that matches decides. A name that no pattern matches is included, unless all
/// patterns are [`include`](Self::include)s.
///
/// ```
/// use laneway::Filter;
///
/// let filter = Filter::default().include("*.log")?.exclude("/cache/")?.max_size(1 << 20);
/// assert!(filter.takes("cache/x.log", 10, None) && !filter.takes("cache/x.bin", 10, None));
/// assert!(filter.takes("a/cache/x.bin", 10, None) && !filter.takes("big", 2 << 20, None));
/// # Ok::<(), laneway::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Filter {
    rules: Vec<Rule>,
    min_size: Option<u64>,
    max_size: Option<u64>,
    newer: Option<SystemTime>,
    older: Option<SystemTime>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Rule {
    takes: bool,
    glob: FilterGlob,
    start: MatchStart,
    /// True if the rule matches folders only.
    is_folder: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum FilterGlob {
    Text(String),
    Pattern(Pattern),
}

impl Filter {
    /// Includes the names that match, unless an earlier rule excludes them.
    ///
    /// # Errors
    /// `ErrorKind::Usage` for an empty pattern.
    pub fn include(self, glob: &str) -> Result<Self, Error> {
        self.rule(glob, true)
    }

    /// Excludes the names that match, unless an earlier rule includes them.
    ///
    /// # Errors
    /// `ErrorKind::Usage` for an empty pattern.
    pub fn exclude(self, glob: &str) -> Result<Self, Error> {
        self.rule(glob, false)
    }

    /// Adds the rules in a text, one per line. A line is a pattern to exclude, with or without `- ` in front.
    /// With `+ ` in front, it is a pattern to include. Empty lines and lines that begin with `#` or `;` are
    /// ignored.
    ///
    /// # Errors
    /// `ErrorKind::Usage` for a line without a pattern. The message has the line's number.
    pub fn lines(mut self, text: &str) -> Result<Self, Error> {
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim_end_matches('\r');
            if line.trim().is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            self =
                self.line(line).map_err(|_| Error::usage(line, format!("line {number} is not a pattern")))?;
        }
        Ok(self)
    }

    /// Adds one rule, in the form of a line of [`lines`](Self::lines). Here a pattern may also begin with `#`
    /// or `;`.
    ///
    /// # Errors
    /// `ErrorKind::Usage` for an empty pattern.
    pub fn line(self, rule: &str) -> Result<Self, Error> {
        match (rule.strip_prefix("+ "), rule.strip_prefix("- ")) {
            (Some(glob), _) => self.rule(glob, true),
            (None, glob) => self.rule(glob.unwrap_or(rule), false),
        }
    }

    /// Includes only items of at least this many bytes.
    #[must_use]
    pub fn min_size(mut self, bytes: u64) -> Self {
        self.min_size = Some(bytes);
        self
    }

    /// Includes only items of at most this many bytes.
    #[must_use]
    pub fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = Some(bytes);
        self
    }

    /// Includes only items that were changed at this time or later. For a file, Laneway uses the modification
    /// time. For an object, it uses the time that the store reports.
    #[must_use]
    pub fn newer(mut self, time: SystemTime) -> Self {
        self.newer = Some(time);
        self
    }

    /// Includes only items that were changed before this time.
    #[must_use]
    pub fn older(mut self, time: SystemTime) -> Self {
        self.older = Some(time);
        self
    }

    /// Returns whether the filter includes everything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether the filter includes an item. `name` is the item's path relative to the top of the
    /// tree, and `changed` the time of its last change. If that time is unknown, a filter with a time limit
    /// excludes the item.
    pub fn takes(&self, name: &str, bytes: u64, changed: Option<SystemTime>) -> bool {
        self.takes_facts(bytes, changed) && self.takes_name(name)
    }

    /// Returns whether the filter depends on sizes or times, not only on names.
    pub(crate) fn looks_at_facts(&self) -> bool {
        self.min_size.is_some() || self.max_size.is_some() || self.newer.is_some() || self.older.is_some()
    }

    fn takes_facts(&self, bytes: u64, changed: Option<SystemTime>) -> bool {
        self.min_size.is_none_or(|min| bytes >= min)
            && self.max_size.is_none_or(|max| bytes <= max)
            && self.newer.is_none_or(|newer| changed.is_some_and(|changed| changed >= newer))
            && self.older.is_none_or(|older| changed.is_some_and(|changed| changed < older))
    }

    fn takes_name(&self, name: &str) -> bool {
        if self.rules.is_empty() {
            return true;
        }
        let name = Name::of(name);
        match self.rules.iter().find(|rule| rule.matches(&name)) {
            Some(rule) => rule.takes,
            None => self.rules.iter().any(|rule| !rule.takes),
        }
    }

    /// Returns whether the filter excludes everything below a folder. If so, the folder need not be read.
    pub(crate) fn leaves_out_all_below(&self, folder: &str) -> bool {
        let folder = Name { is_folder: true, ..Name::of(folder) };
        // A rule that includes names may include one below this folder, if it comes first.
        let first = self.rules.iter().find(|rule| rule.takes || rule.matches(&folder));
        first.is_some_and(|rule| !rule.takes)
    }

    fn rule(mut self, glob: &str, takes: bool) -> Result<Self, Error> {
        let start = if glob.starts_with('/') { MatchStart::Top } else { MatchStart::AnyComponent };
        let is_folder = glob.ends_with('/');
        let plain = glob.trim_matches('/');
        if plain.is_empty() {
            return Err(Error::usage(glob, "is not a pattern: it names nothing"));
        }
        let glob =
            Pattern::parse(plain).map_or_else(|| FilterGlob::Text(plain.to_owned()), FilterGlob::Pattern);
        self.rules.push(Rule { takes, glob, start, is_folder });
        Ok(self)
    }
}

/// A name without its trailing slashes.
struct Name<'a> {
    path: &'a str,
    /// True if the whole name is a folder, not only the part before its last slash.
    is_folder: bool,
}

impl<'a> Name<'a> {
    fn of(name: &'a str) -> Self {
        let path = name.trim_end_matches('/');
        Self { path, is_folder: path.len() < name.len() }
    }
}

impl Rule {
    /// Returns whether the rule matches the name, or a folder that contains it.
    fn matches(&self, name: &Name<'_>) -> bool {
        let may_be_last = name.is_folder || !self.is_folder;
        match &self.glob {
            FilterGlob::Text(text) => has_components(name.path, text, self.start, may_be_last),
            FilterGlob::Pattern(pattern) => pattern.matches_components(name.path, self.start, may_be_last),
        }
    }
}

/// Returns whether consecutive components of `path` equal `text`, by the rules of
/// [`Pattern::matches_components`].
fn has_components(path: &str, text: &str, start: MatchStart, may_be_last: bool) -> bool {
    let is_there = |begin: usize| match path[begin..].strip_prefix(text) {
        Some("") => may_be_last,
        Some(rest) => rest.starts_with('/'),
        None => false,
    };
    let begin_later = || path.match_indices('/').any(|(at, _)| is_there(at + 1));
    is_there(0) || start == MatchStart::AnyComponent && begin_later()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    /// Applies rules in the form of an `--exclude-from` file.
    fn takes(rules: &str, name: &str) -> bool {
        Filter::default().lines(rules).unwrap().takes(name, 0, None)
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        assert!(takes("+ *.jpg\n*", "a/b.jpg") && !takes("+ *.jpg\n*", "a/b.png"));
        assert!(!takes("*\n+ *.jpg", "a/b.jpg"));
        assert!(takes("+ keep.tmp\n*.tmp", "d/keep.tmp") && !takes("+ keep.tmp\n*.tmp", "d/x.tmp"));
    }

    #[test]
    fn what_no_rule_matches_is_taken_unless_all_rules_include() {
        assert!(takes("*.tmp", "a.txt") && takes("", "a.txt") && takes("+ *.jpg\n- *.tmp", "a.txt"));
        assert!(!takes("+ *.jpg", "a.txt") && takes("+ *.jpg", "a.jpg"));
    }

    #[test]
    fn a_rule_takes_along_what_lies_in_the_folder_that_it_matches() {
        for rule in ["cache", "cache/", "/a/cache", "a/cache", "c*e", "a/*", "**/cache", "/a"] {
            assert!(!takes(rule, "a/cache/x/y"), "{rule}");
        }
        assert!(takes("cache/", "a/cache") && !takes("cache", "a/cache"), "a file of that name");
        assert!(!takes("cache/", "a/cache/"), "an object that stands for a folder");
        assert!(takes("+ a/\n*", "a/b/c") && !takes("+ a/\n*", "b/c"));
    }

    #[test]
    fn a_leading_slash_ties_a_rule_to_the_top() {
        assert!(
            !takes("/a", "a")
                && takes("/a", "b/a")
                && !takes("/*.txt", "x.txt")
                && takes("/*.txt", "d/x.txt")
        );
        assert!(!takes("b/c", "a/b/c") && takes("b/c", "ab/c") && takes("b/c", "b/x/c"));
        assert!(!takes("b/**/d", "a/b/x/y/d") && takes("/b/**/d", "a/b/x/d"));
        assert!(takes("txt", "a.txt") && takes("a.txt", "aa.txt"));
        assert!(!takes("[a/b]x", "d/ax") && !takes("/[a/b]x", "ax") && takes("/[a/b]x", "d/ax"));
    }

    #[test]
    fn a_folder_is_not_looked_into_where_nothing_below_it_can_be_taken() {
        let none = |rules: &str, folder| Filter::default().lines(rules).unwrap().leaves_out_all_below(folder);
        assert!(none("cache", "a/cache") && none("cache/", "cache") && none("/a", "a/b"));
        assert!(!none("*.tmp", "a") && !none("+ keep\ncache", "cache") && none("cache\n+ keep", "cache"));
        assert!(!none("", "a") && !none("+ a", "b"));
    }

    #[test]
    fn a_name_of_many_folders_is_read_once_whatever_the_rule() {
        // This is the longest possible key. Matching anew from each of its folders would take minutes.
        let deep = "a/".repeat(511);
        let rules = format!("{}b\n/**{}b", "**a".repeat(60), "*/".repeat(60));
        assert!(takes(&rules, &deep) && !takes(&rules, &(deep + "b")));
    }

    #[test]
    fn sizes_and_times_are_limits_on_both_sides() {
        let at = |s| UNIX_EPOCH + Duration::from_secs(s);
        let sizes = Filter::default().min_size(2).max_size(4);
        assert_eq!([1, 2, 4, 5].map(|size| sizes.takes("a", size, None)), [false, true, true, false]);
        let times = Filter::default().newer(at(2)).older(at(4));
        assert_eq!([1, 2, 3, 4].map(|s| times.takes("a", 0, Some(at(s)))), [false, true, true, false]);
        assert!(!times.takes("a", 0, None));
    }

    #[test]
    fn lines_may_be_comments_and_a_line_without_a_pattern_is_named() {
        assert!(takes("# a\n; b\n\n \r\n", "a"));
        let error = Filter::default().lines("a\n+ /\n").unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("line 2"), "{error}");
        assert!(Filter::default().exclude("").unwrap_err().is_usage());
        assert!(!takes("a b\r\n", "a b"), "inner spaces belong to the name");
    }
}
