//! Merges two streams of ordered names.

use std::cmp::Ordering;

/// The sides whose next name is the lowest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    Both,
    Source,
    Destination,
}

/// Compares the next names of both sides, and returns the sides that have the lower one. Returns `None` when
/// both sides have ended.
pub(super) fn turn(source: Option<&str>, destination: Option<&str>) -> Option<Turn> {
    match (source, destination) {
        (None, None) => None,
        (Some(_), None) => Some(Turn::Source),
        (None, Some(_)) => Some(Turn::Destination),
        (Some(source), Some(destination)) => Some(match source.cmp(destination) {
            Ordering::Less => Turn::Source,
            Ordering::Equal => Turn::Both,
            Ordering::Greater => Turn::Destination,
        }),
    }
}

/// Files that will be deleted, but until then may be in the way of copies. For example, a file `a` is in the
/// way of a copy to `a/b`.
#[derive(Debug, Default)]
pub(super) struct BlockingFiles {
    files: Vec<String>,
}

impl BlockingFiles {
    /// Records a file that will be deleted. Callers must pass names in order.
    pub(super) fn deletes(&mut self, name: &str) {
        self.forget(name);
        self.files.push(name.to_owned());
    }

    /// Returns whether one of these files is in the way of a later name.
    pub(super) fn is_below(&mut self, name: &str) -> bool {
        self.forget(name);
        self.files.iter().any(|file| is_inside(file, name))
    }

    /// Forgets the files that can't be a parent of any later name.
    fn forget(&mut self, name: &str) {
        self.files.retain(|file| may_hold_later(file, name));
    }
}

/// Names that exist in the source but aren't copied, such as symbolic links. All names below such a name are
/// left out, too. The destination's entries with these names stay as they are.
#[derive(Debug, Default)]
pub(super) struct LeftOutNames {
    names: Vec<String>,
}

impl LeftOutNames {
    pub(super) fn add(&mut self, name: String) {
        self.names.push(name);
    }

    /// Returns whether a name was left out, or lies below such a name. Callers must pass names in order.
    pub(super) fn holds(&mut self, name: &str) -> bool {
        self.names.retain(|left| left.as_str() >= name || may_hold_later(left, name));
        self.names.iter().any(|left| left == name || is_inside(left, name))
    }
}

/// Returns whether names after `name` may lie below a folder. For example, all names below `a/` sort before
/// `a0`.
fn may_hold_later(folder: &str, name: &str) -> bool {
    let rest = name.strip_prefix(folder);
    rest.is_some_and(|rest| rest.bytes().next().is_none_or(|next| next <= b'/'))
}

fn is_inside(folder: &str, name: &str) -> bool {
    name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(source: &[&str], destination: &[&str]) -> Vec<(char, String)> {
        let (mut s, mut d) = (source.iter().peekable(), destination.iter().peekable());
        let mut found = Vec::new();
        while let Some(turn) = turn(s.peek().map(|n| **n), d.peek().map(|n| **n)) {
            let (mark, name) = match turn {
                Turn::Both => {
                    d.next();
                    ('=', s.next())
                }
                Turn::Source => ('+', s.next()),
                Turn::Destination => ('-', d.next()),
            };
            found.push((mark, (*name.unwrap()).to_owned()));
        }
        found
    }

    #[test]
    fn every_name_comes_once_in_order_with_the_sides_that_have_it() {
        let text = |found: Vec<(char, String)>| {
            found.into_iter().map(|(mark, name)| format!("{mark}{name}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(text(merged(&["a", "b", "d"], &["b", "c", "e"])), "+a =b -c +d -e");
        assert_eq!(text(merged(&[], &["a"])), "-a");
        assert_eq!(text(merged(&["a"], &[])), "+a");
        assert_eq!(text(merged(&["a-b", "a/b", "a0"], &["a", "a/b"])), "-a +a-b =a/b +a0");
        assert_eq!(merged(&[], &[]), []);
    }

    #[test]
    fn what_is_left_out_is_held_with_all_below_it_until_names_are_past_it() {
        let mut left = LeftOutNames::default();
        ["a", "a-b", "z"].iter().for_each(|name| left.add((*name).to_owned()));
        assert!(left.holds("a") && !left.holds("a#"));
        assert!(left.holds("a-b") && left.holds("a-b/c"));
        assert!(left.holds("a/b/c") && !left.holds("a0"));
        assert_eq!(left.names, ["z"]);
        assert!(!left.holds("y") && left.holds("z/1") && !left.holds("zz"));
    }

    #[test]
    fn a_file_stands_in_the_way_of_what_lies_below_its_name_alone() {
        let mut way = BlockingFiles::default();
        way.deletes("a");
        assert!(!way.is_below("a-b"));
        way.deletes("a-b");
        assert!(way.is_below("a-b/c") && !way.is_below("a.c"));
        assert!(way.is_below("a/b") && way.is_below("a/c/d"));
        assert!(!way.is_below("ab/c"));
        assert!(way.files.is_empty(), "{way:?}");
    }
}
