//! The promises of a page: the items of its lists, each with the tests that prove it behind the last dash.

/// An item of a list.
pub(crate) struct Promise {
    /// The heading above it.
    pub(crate) section: String,
    /// Where it begins, counted from 1.
    pub(crate) line: usize,
    text: String,
}

/// All items of a page's lists. What is indented below an item belongs to it up to the next blank line.
pub(crate) fn of(page: &str) -> Vec<Promise> {
    let (mut promises, mut section, mut is_within) = (Vec::<Promise>::new(), String::new(), false);
    for (number, line) in page.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading.clone_into(&mut section);
            is_within = false;
        } else if let Some(text) = line.strip_prefix("- ") {
            promises.push(Promise { section: section.clone(), line: number + 1, text: text.to_owned() });
            is_within = true;
        } else if line.trim().is_empty() {
            is_within = false;
        } else if let Some(promise) = promises.last_mut().filter(|_| is_within) {
            promise.text.push(' ');
            promise.text.push_str(line.trim());
        }
    }
    promises
}

/// The headings that promises stand under.
pub(crate) fn sections(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| line.strip_prefix("## "))
}

/// What stands in backticks, each on one line.
pub(crate) fn quoted(text: &str) -> impl Iterator<Item = String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.map(|name| name.split_whitespace().collect::<Vec<_>>().join(" "))
}

impl Promise {
    /// What is wrong with its proof: that there is none, that it says something else than names, or a name that proves nothing.
    pub(crate) fn problem(&self, is_proof: impl Fn(&str) -> bool) -> Option<String> {
        let Some((_, proof)) = self.text.rsplit_once("— ") else { return Some("no test".to_owned()) };
        let proof = without_remarks(proof);
        let between: String = proof.split('`').step_by(2).collect();
        if between.bytes().any(|byte| byte != b',' && byte != b' ') {
            return Some(format!("no names of tests: {between}"));
        }
        let mut names = quoted(&proof).peekable();
        if names.peek().is_none() {
            return Some("no test".to_owned());
        }
        names.find(|name| !is_proof(name)).map(|name| format!("no test of this name: {name}"))
    }
}

/// Without what stands in parentheses, which says how often or how a test is run.
fn without_remarks(text: &str) -> String {
    let mut depth = 0;
    let outside = text.chars().filter(|letter| {
        depth += i32::from(*letter == '(');
        let is_outside = depth == 0;
        depth -= i32::from(*letter == ')');
        is_outside
    });
    outside.collect()
}
