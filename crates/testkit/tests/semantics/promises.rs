//! Parses the promises of a page, which are the items of its lists, and the rows of the page that names their tests.

/// An item of a list.
#[derive(Debug, PartialEq)]
pub(crate) struct Promise<'a> {
    /// The id, as in `DL-3`. It is empty if the item begins with anything else.
    pub(crate) id: &'a str,
    /// The heading above it.
    pub(crate) section: &'a str,
    /// The line number, from 1.
    pub(crate) line: usize,
}

/// Returns all list items of a page.
pub(crate) fn of(page: &str) -> Vec<Promise<'_>> {
    let (mut promises, mut section) = (Vec::new(), "");
    for (number, line) in page.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading;
        } else if let Some(text) = line.strip_prefix("- ") {
            let id = text.strip_prefix("**").and_then(|text| text.split_once("** "));
            let id = id.map_or("", |(id, _)| id);
            promises.push(Promise { id: if is_id(id) { id } else { "" }, section, line: number + 1 });
        }
    }
    promises
}

/// Returns the headings above promises.
pub(crate) fn sections(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| line.strip_prefix("## "))
}

/// Returns the rows of a table whose first column is an id: the id, and the names of tests in the second column.
pub(crate) fn rows(page: &str) -> Vec<(&str, Vec<String>)> {
    let cells =
        page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    cells.filter(|(id, _)| is_id(id)).map(|(id, tests)| (id, quoted(tests).collect())).collect()
}

/// Returns true for capital letters, a hyphen and a number.
fn is_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(topic, number)| {
        !topic.is_empty() && topic.bytes().all(|b| b.is_ascii_uppercase()) && number.parse::<u32>().is_ok()
    })
}

/// Returns the texts in backticks, each on one line.
pub(crate) fn quoted(text: &str) -> impl Iterator<Item = String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.map(|name| name.split_whitespace().collect::<Vec<_>>().join(" "))
}
