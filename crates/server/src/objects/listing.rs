//! Makes one page of a listing from the sorted keys of a bucket, and matches the patterns of GCS's listings. The code
//! has no side effects.

use std::ops::Bound;
use std::sync::Arc;

use super::object::Object;
use super::versions::{Index, ObjectTable};

/// The parameters of a listing.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListingQuery {
    pub(crate) prefix: String,
    /// The delimiter of common prefixes. If it is empty, there is no delimiter.
    pub(crate) delimiter: String,
    pub(crate) from: Cursor,
    /// The exclusive end: this key and all later keys are left out.
    pub(crate) end: Option<String>,
    /// The maximum number of objects and common prefixes together.
    pub(crate) max: usize,
    /// For GCS: if set, only keys that match this pattern are listed, and their common prefixes.
    pub(crate) glob: Option<MatchGlob>,
    /// For GCS: if true, an object whose key equals a common prefix is listed too.
    pub(crate) include_trailing_delimiter: bool,
}

/// The start of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Cursor {
    #[default]
    Start,
    /// At this key: GCS's `startOffset`.
    At(String),
    /// After this key: S3's `start-after` and `marker`, and the token after a page that ended with an object.
    After(String),
    /// After all keys with this prefix: the token after a page that ended with a common prefix.
    AfterPrefix(String),
    /// After this version of a key, in the order of the listing.
    AfterVersion(String, u64),
}

/// The order of a key's versions in a listing. It also decides if delete markers are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// S3's order, with delete markers.
    NewestFirst,
    /// GCS's order, without delete markers.
    OldestFirst,
}

/// One page: objects and common prefixes, in order.
#[derive(Debug, Default)]
pub(crate) struct ListingPage {
    pub(crate) objects: Vec<Arc<Object>>,
    pub(crate) prefixes: Vec<String>,
    /// The start of the next page, if there is one.
    pub(crate) next: Option<Cursor>,
}

impl Cursor {
    /// Returns the content of a continuation token, before it is encoded in base64.
    pub(crate) fn to_token(&self) -> String {
        let (kind, key) = match self {
            Cursor::Start => ("s", ""),
            Cursor::At(key) => ("i", key.as_str()),
            Cursor::After(key) => ("a", key.as_str()),
            Cursor::AfterPrefix(prefix) => ("p", prefix.as_str()),
            Cursor::AfterVersion(key, generation) => (&*format!("v{generation}#"), key.as_str()),
        };
        crate::checksum::base64(format!("{kind}{key}").as_bytes())
    }

    pub(crate) fn from_token(token: &str) -> Option<Cursor> {
        let text = String::from_utf8(crate::checksum::from_base64(token)?).ok()?;
        let key = text.get(1..)?.to_owned();
        match text.as_bytes().first()? {
            b's' => Some(Cursor::Start),
            b'i' => Some(Cursor::At(key)),
            b'a' => Some(Cursor::After(key)),
            b'p' => Some(Cursor::AfterPrefix(key)),
            b'v' => {
                let (generation, key) = key.split_once('#')?;
                Some(Cursor::AfterVersion(key.to_owned(), generation.parse().ok()?))
            }
            _ => None,
        }
    }

    fn bound(&self) -> Bound<Vec<u8>> {
        match self {
            Cursor::Start => Bound::Unbounded,
            Cursor::At(key) => Bound::Included(key.as_bytes().to_vec()),
            Cursor::After(key) => Bound::Excluded(key.as_bytes().to_vec()),
            Cursor::AfterVersion(key, _) => Bound::Included(key.as_bytes().to_vec()),
            Cursor::AfterPrefix(prefix) => match successor(prefix) {
                Some(next) => Bound::Included(next),
                None => Bound::Unbounded,
            },
        }
    }
}

/// Returns the smallest byte string that is greater than all strings with this prefix. The last byte can always be
/// incremented, because UTF-8 has no byte 0xFF.
fn successor(prefix: &str) -> Option<Vec<u8>> {
    let mut bytes = prefix.as_bytes().to_vec();
    *bytes.last_mut()? += 1;
    Some(bytes)
}

/// Lists one page.
pub(crate) fn page(index: &Index, query: &ListingQuery) -> ListingPage {
    let mut page = ListingPage::default();
    let prefix = query.prefix.as_bytes();
    let mut at = query.from.bound();
    let before_prefix = match &at {
        Bound::Unbounded => true,
        Bound::Included(key) | Bound::Excluded(key) => key.as_slice() < prefix,
    };
    if before_prefix {
        at = Bound::Included(prefix.to_vec());
    }
    let mut last = query.from.clone();
    loop {
        // After each common prefix, the walk continues after all keys with this prefix. So a prefix with a million keys
        // takes a single step.
        let mut skip_to = None;
        for (key, object) in index.range::<[u8], _>((as_slice(&at), Bound::Unbounded)) {
            let ended = query.end.as_ref().is_some_and(|end| &**key >= end.as_bytes());
            if !key.starts_with(prefix) || ended {
                return page;
            }
            if query.glob.as_ref().is_some_and(|glob| !glob.matches(&object.key)) {
                continue;
            }
            if page.objects.len() + page.prefixes.len() >= query.max {
                page.next = (query.max > 0).then_some(last);
                return page;
            }
            let folded = fold(&object.key, query);
            if let Some(common) = folded {
                let is_itself = common.len() == object.key.len();
                if is_itself && query.include_trailing_delimiter {
                    page.objects.push(object.clone());
                }
                last = Cursor::AfterPrefix(common.to_owned());
                skip_to = successor(common);
                page.prefixes.push(common.to_owned());
                break;
            }
            last = Cursor::After(object.key.clone());
            page.objects.push(object.clone());
        }
        match skip_to {
            Some(next) => at = Bound::Included(next),
            None => return page,
        }
    }
}

/// Lists one page of all versions, key by key. The versions of a key are in the requested order.
pub(crate) fn page_of_versions(keys: &ObjectTable, query: &ListingQuery, order: Order) -> ListingPage {
    let mut page = ListingPage::default();
    let prefix = query.prefix.as_bytes();
    let mut at = query.from.bound();
    if let Bound::Unbounded = at {
        at = Bound::Included(prefix.to_vec());
    }
    if let Bound::Included(key) | Bound::Excluded(key) = &at
        && key.as_slice() < prefix
    {
        at = Bound::Included(prefix.to_vec());
    }
    let mut last = query.from.clone();
    loop {
        let range = (as_slice(&at), Bound::Unbounded);
        let live = keys.live.range::<[u8], _>(range).next().map(|(key, _)| key);
        let noncurrent = keys.noncurrent.range::<[u8], _>(range).next().map(|(key, _)| key);
        let key = match (live, noncurrent) {
            (Some(live), Some(noncurrent)) => live.min(noncurrent),
            (Some(key), None) | (None, Some(key)) => key,
            (None, None) => return page,
        };
        let ended = query.end.as_ref().is_some_and(|end| &**key >= end.as_bytes());
        if !key.starts_with(prefix) || ended {
            return page;
        }
        let is_full = |page: &ListingPage| page.objects.len() + page.prefixes.len() >= query.max;
        let next = Bound::Excluded(key.to_vec());
        let all = keys.noncurrent.get(key).into_iter().flatten().chain(keys.live.get(key));
        let mut versions: Vec<_> = all
            .filter(|version| order == Order::NewestFirst || !version.standing.is_delete_marker)
            .filter(|version| match &query.from {
                Cursor::AfterVersion(of, generation) if of.as_bytes() == &**key => match order {
                    Order::NewestFirst => version.generation < *generation,
                    Order::OldestFirst => version.generation > *generation,
                },
                _ => true,
            })
            .collect();
        if order == Order::NewestFirst {
            versions.reverse();
        }
        let Some(first) = versions.first() else {
            at = next;
            continue;
        };
        if query.glob.as_ref().is_some_and(|glob| !glob.matches(&first.key)) {
            at = next;
            continue;
        }
        if let Some(common) = fold(&first.key, query) {
            if is_full(&page) {
                page.next = (query.max > 0).then_some(last);
                return page;
            }
            if common.len() == first.key.len() && query.include_trailing_delimiter {
                page.objects.extend(versions.iter().map(|version| Arc::clone(version)));
            }
            last = Cursor::AfterPrefix(common.to_owned());
            let Some(behind) = successor(common) else { return page };
            page.prefixes.push(common.to_owned());
            at = Bound::Included(behind);
            continue;
        }
        for version in versions {
            if is_full(&page) {
                page.next = (query.max > 0).then_some(last);
                return page;
            }
            last = Cursor::AfterVersion(version.key.clone(), version.generation);
            page.objects.push(version.clone());
        }
        at = next;
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// Returns the common prefix of a key: up to and including the first delimiter after the requested prefix.
fn fold<'a>(key: &'a str, query: &ListingQuery) -> Option<&'a str> {
    if query.delimiter.is_empty() {
        return None;
    }
    let rest = key.get(query.prefix.len()..)?;
    let end = rest.find(&query.delimiter)? + query.delimiter.len();
    Some(&key[..query.prefix.len() + end])
}

/// The maximum number of combined alternatives, and also of braces, because each brace is a step of a recursion.
const ALTERNATIVES_MAX: usize = 256;

/// A pattern, expanded into the alternatives of its braces.
///
/// `*` and `?` don't match slashes, but `**` does. `[a-z]` and `[!a-z]` match one character, and `{a,b}` matches one
/// of several patterns.
/// <https://cloud.google.com/storage/docs/json_api/v1/objects/list#list-objects-and-prefixes-using-glob>
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MatchGlob(Vec<Vec<PatternToken>>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternToken {
    One(char),
    /// `?`
    Any,
    /// `*`
    Run,
    /// `**`
    Everything,
    /// `[...]`. The flag is true if it matches characters that aren't listed.
    Class(Vec<(char, char)>, bool),
}

impl MatchGlob {
    /// Parses a pattern. Returns `None` if a bracket or brace isn't closed, or if there are too many alternatives.
    pub(crate) fn new(pattern: &str) -> Option<MatchGlob> {
        if pattern.matches('{').count() > ALTERNATIVES_MAX {
            return None;
        }
        let plain = expand(pattern)?;
        plain.iter().map(|pattern| tokens(pattern)).collect::<Option<Vec<_>>>().map(MatchGlob)
    }

    pub(crate) fn matches(&self, key: &str) -> bool {
        let key: Vec<char> = key.chars().collect();
        self.0.iter().any(|tokens| whole(tokens, &key))
    }
}

/// Expands a pattern into patterns without braces.
fn expand(pattern: &str) -> Option<Vec<String>> {
    let Some(open) = pattern.find('{') else { return Some(vec![pattern.to_owned()]) };
    let (mut depth, mut close, mut commas) = (0_usize, None, vec![open]);
    for (at, c) in pattern.char_indices().skip_while(|(at, _)| *at < open) {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => {
                close = Some(at);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 1 => commas.push(at),
            _ => {}
        }
    }
    let close = close?;
    let mut expanded = Vec::new();
    for (index, start) in commas.iter().enumerate() {
        let end = commas.get(index + 1).copied().unwrap_or(close);
        let one = format!("{}{}{}", &pattern[..open], &pattern[start + 1..end], &pattern[close + 1..]);
        expanded.extend(expand(&one)?);
        if expanded.len() > ALTERNATIVES_MAX {
            return None;
        }
    }
    Some(expanded)
}

fn tokens(pattern: &str) -> Option<Vec<PatternToken>> {
    let mut tokens = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        let token = match c {
            '*' if chars.peek() == Some(&'*') => {
                while chars.next_if_eq(&'*').is_some() {}
                PatternToken::Everything
            }
            '*' => PatternToken::Run,
            '?' => PatternToken::Any,
            '\\' => PatternToken::One(chars.next()?),
            '[' => {
                let outside = chars.next_if(|c| matches!(c, '!' | '^')).is_some();
                let mut ranges = Vec::new();
                // A closing bracket directly after the opening one is one of the listed characters.
                let mut first = true;
                loop {
                    let low = chars.next()?;
                    if low == ']' && !first {
                        break;
                    }
                    first = false;
                    let mut rest = chars.clone();
                    match (rest.next(), rest.next()) {
                        (Some('-'), Some(high)) if high != ']' => {
                            ranges.push((low, high));
                            chars = rest;
                        }
                        _ => ranges.push((low, low)),
                    }
                }
                PatternToken::Class(ranges, outside)
            }
            c => PatternToken::One(c),
        };
        tokens.push(token);
    }
    Some(tokens)
}

/// Returns true if the whole key matches. For each character of the key, it keeps the set of possible positions in the
/// pattern. So the time is at most proportional to the product of both lengths.
fn whole(tokens: &[PatternToken], key: &[char]) -> bool {
    let mut at = vec![false; tokens.len() + 1];
    at[0] = true;
    pass_runs(tokens, &mut at);
    for c in key {
        let mut next = vec![false; tokens.len() + 1];
        for (index, token) in tokens.iter().enumerate().filter(|(index, _)| at[*index]) {
            match token {
                PatternToken::Run if *c != '/' => next[index] = true,
                PatternToken::Everything => next[index] = true,
                token if token.is_one(*c) => next[index + 1] = true,
                _ => {}
            }
        }
        pass_runs(tokens, &mut next);
        at = next;
    }
    at[tokens.len()]
}

/// Adds the positions after `*` and `**`, because these may match nothing.
fn pass_runs(tokens: &[PatternToken], at: &mut [bool]) {
    for (index, token) in tokens.iter().enumerate() {
        if at[index] && matches!(token, PatternToken::Run | PatternToken::Everything) {
            at[index + 1] = true;
        }
    }
}

impl PatternToken {
    fn is_one(&self, c: char) -> bool {
        match self {
            PatternToken::One(one) => *one == c,
            PatternToken::Any => c != '/',
            PatternToken::Class(ranges, outside) => {
                c != '/' && ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *outside
            }
            PatternToken::Run | PatternToken::Everything => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(keys: &[&str]) -> Index {
        keys.iter()
            .map(|key| {
                let object = Object::empty(key, 1);
                (key.as_bytes().into(), Arc::new(object))
            })
            .collect()
    }

    fn keys(page: &ListingPage) -> Vec<&str> {
        page.objects.iter().map(|object| object.key.as_str()).collect()
    }

    fn query(prefix: &str, delimiter: &str) -> ListingQuery {
        ListingQuery {
            prefix: prefix.to_owned(),
            delimiter: delimiter.to_owned(),
            max: 1000,
            ..Default::default()
        }
    }

    #[test]
    fn a_delimiter_folds_keys_into_prefixes() {
        let index = index(&["a", "a/b", "a/c/d", "b//x", "c"]);
        let found = page(&index, &query("", "/"));
        assert_eq!(keys(&found), ["a", "c"]);
        assert_eq!(found.prefixes, ["a/", "b/"]);
        let below = page(&index, &query("b/", "/"));
        assert_eq!(below.prefixes, ["b//"]);
        assert_eq!(keys(&page(&index, &query("a/", ""))), ["a/b", "a/c/d"]);
    }

    #[test]
    fn pages_of_one_end_where_the_listing_ends() {
        let index = index(&["a", "b/1", "b/2", "c", "ä"]);
        let mut query = ListingQuery { max: 1, ..query("", "/") };
        let mut seen = Vec::new();
        loop {
            let found = page(&index, &query);
            seen.extend(found.objects.iter().map(|object| object.key.clone()));
            seen.extend(found.prefixes.clone());
            match found.next {
                Some(next) => query.from = Cursor::from_token(&next.to_token()).unwrap(),
                None => break,
            }
        }
        assert_eq!(seen, ["a", "b/", "c", "ä"]);
    }

    #[test]
    fn offsets_bound_the_listing() {
        let index = index(&["a", "b", "c", "d"]);
        let middle =
            ListingQuery { from: Cursor::At("b".to_owned()), end: Some("d".to_owned()), ..query("", "") };
        assert_eq!(keys(&page(&index, &middle)), ["b", "c"]);
        let after = ListingQuery { from: Cursor::After("b".to_owned()), ..query("", "") };
        assert_eq!(keys(&page(&index, &after)), ["c", "d"]);
    }

    #[test]
    fn starting_inside_a_common_prefix_still_shows_it() {
        let index = index(&["a/1", "a/2", "b"]);
        let inside = ListingQuery { from: Cursor::After("a/1".to_owned()), ..query("", "/") };
        assert_eq!(page(&index, &inside).prefixes, ["a/"]);
    }

    #[test]
    fn the_object_named_as_the_prefix_is_listed_when_asked_for() {
        let index = index(&["a/", "a/b"]);
        let shown = ListingQuery { include_trailing_delimiter: true, ..query("", "/") };
        assert_eq!(keys(&page(&index, &shown)), ["a/"]);
        assert!(page(&index, &query("", "/")).objects.is_empty());
    }

    #[test]
    fn a_pattern_lists_what_matches_and_the_prefixes_of_that() {
        let index = index(&["a.txt", "b/c.csv", "b/d.txt", "e/f.csv", "g.txt"]);
        let glob = Some(MatchGlob::new("**.txt").unwrap());
        let flat = page(&index, &ListingQuery { glob: glob.clone(), ..query("", "") });
        assert_eq!(keys(&flat), ["a.txt", "b/d.txt", "g.txt"]);
        let folded = page(&index, &ListingQuery { glob: glob.clone(), ..query("", "/") });
        assert_eq!((keys(&folded), &*folded.prefixes), (vec!["a.txt", "g.txt"], &["b/".to_owned()][..]));
        let first = page(&index, &ListingQuery { glob, max: 1, ..query("", "") });
        assert_eq!((keys(&first), &first.next), (vec!["a.txt"], &Some(Cursor::After("a.txt".to_owned()))));
    }

    #[test]
    fn versions_are_paged_within_a_key_in_either_order() {
        let mut keys = ObjectTable { live: index(&["a", "d/1"]), ..ObjectTable::default() };
        let version = |key, generation| Arc::new(Object::empty(key, generation));
        keys.live.insert(b"b".as_slice().into(), version("b", 30));
        keys.noncurrent.insert(b"b".as_slice().into(), vec![version("b", 10), version("b", 20)]);
        keys.noncurrent.insert(b"c".as_slice().into(), vec![version("c", 5)]);
        keys.noncurrent.insert(b"d/2".as_slice().into(), vec![version("d/2", 6)]);
        for (order, of_b) in [(Order::NewestFirst, [30, 20, 10]), (Order::OldestFirst, [10, 20, 30])] {
            for max in 1..9 {
                let mut query = ListingQuery { max, ..query("", "/") };
                let (mut seen, mut prefixes) = (Vec::new(), Vec::new());
                loop {
                    let found = page_of_versions(&keys, &query, order);
                    assert!(found.objects.len() + found.prefixes.len() <= max);
                    seen.extend(found.objects.iter().map(|object| (object.key.clone(), object.generation)));
                    prefixes.extend(found.prefixes);
                    match found.next {
                        Some(next) => query.from = Cursor::from_token(&next.to_token()).unwrap(),
                        None => break,
                    }
                }
                let expected = [("a", 1), ("b", of_b[0]), ("b", of_b[1]), ("b", of_b[2]), ("c", 5)];
                assert_eq!(seen, expected.map(|(key, generation)| (key.to_owned(), generation)));
                assert_eq!(prefixes, ["d/"]);
            }
        }
    }

    #[test]
    fn a_page_of_no_results_has_no_successor() {
        assert_eq!(page(&index(&["a"]), &ListingQuery { max: 0, ..query("", "") }).next, None);
    }

    fn matches(pattern: &str, key: &str) -> bool {
        MatchGlob::new(pattern).unwrap().matches(key)
    }

    #[test]
    fn stars_stay_between_slashes_and_two_of_them_do_not() {
        assert!(matches("foo*bar", "foo-x-bar") && !matches("foo*bar", "foo/bar"));
        assert!(matches("foo**bar", "foo/x/bar") && matches("foo**bar", "foobar"));
        assert!(matches("**.jpg", "a/b/c.jpg") && !matches("**.jpg", "a/b/c.jpeg"));
        assert!(matches("a/**/b", "a/x/y/b") && !matches("a/**/b", "a/b"));
        assert!(matches("a?c", "abc") && !matches("a?c", "a/c") && !matches("a?c", "ac"));
        assert!(matches("", "") && !matches("", "a"));
    }

    #[test]
    fn classes_and_alternatives() {
        assert!(matches("[a-c]1", "b1") && !matches("[a-c]1", "d1"));
        assert!(matches("[!a-c]1", "d1") && matches("[^a-c]1", "d1") && !matches("[!a]", "/"));
        assert!(matches("[]x-]", "]") && matches("[]x-]", "-"));
        assert!(matches("{a,b/c}.{csv,json}", "b/c.json") && !matches("{a,b}.csv", "c.csv"));
        assert!(matches("x{a,{b,c}d}", "xcd") && matches("x{,y}", "x"));
        assert!(matches(r"\*", "*") && !matches(r"\*", "a"));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for pattern in ["[a", "{a,b", "a\\"] {
            assert_eq!(MatchGlob::new(pattern), None, "{pattern}");
        }
        assert_eq!(MatchGlob::new(&"{a,b}".repeat(9)), None, "too many alternatives");
        assert_eq!(MatchGlob::new(&"{a}".repeat(300)), None, "too many braces");
    }
}
