//! A page of results with tables, plots and their explanations. The page is one HTML file that needs no network, script or library. The
//! page has a layout for phones and colours for dark mode.

mod plots;
mod scores;
mod sections;
mod svg;

use std::fmt::Write as _;

use crate::counted::Counted;
use crate::links::Links;
use crate::mixed::Mixed;
use crate::slices::Slices;
use crate::table::seconds;
use crate::verdict::{Verdict, rule};
use crate::{Table, usage};
pub use scores::Score;
pub(crate) use sections::path;
use svg::{Colour, Drawing};

const STYLE: &str = include_str!("report/style.css");

/// The facts about a measurement that its page shows.
#[derive(Clone, Debug)]
pub struct Heading {
    /// This program's version and build: `laneway 0.1.0, release build`.
    pub versions: String,
    /// The libraries of the rivals that this crate implements: `hyper 1.12.0, h2 0.4.1`.
    pub libraries: String,
    /// The date, as human-readable text.
    pub date: String,
    /// The command with which a reader can repeat the measurement.
    pub command: String,
    /// The machine that measured.
    pub machine: Machine,
}

/// A page under construction.
#[derive(Clone, Default, Debug)]
pub struct Page {
    sections: Vec<Section>,
}

/// A benchmark's part of a page.
#[derive(Clone, Debug)]
struct Section {
    id: &'static str,
    title: String,
    /// The other vendors' programs that took part.
    programs: Vec<String>,
    /// The work that was done, and the link.
    text: String,
    parts: Vec<Part>,
    /// The section's results, which the top of the page shows.
    scores: Vec<Score>,
}

#[derive(Clone, Debug)]
enum Part {
    Heading(&'static str),
    Text(String),
    Table(Table),
    Figure(Figure),
}

/// A plot with its explanation.
#[derive(Clone, Debug)]
struct Figure {
    /// The quantity that is plotted, with its unit.
    title: String,
    drawing: Drawing,
    /// The meaning of the colours.
    legend: Vec<(Colour, String)>,
    caption: String,
}

impl Page {
    /// Adds downloads of one object.
    pub fn slices(&mut self, found: &[Slices]) {
        self.sections.push(sections::slices(found));
    }

    /// Adds a measurement of small and large objects together. Downloads come first on the page.
    pub fn mixed(&mut self, found: &Mixed) {
        let at = if found.puts { self.sections.len() } else { 0 };
        self.sections.insert(at, sections::mixed(found));
    }

    /// Adds small files, read-modify-writes, deletes, listings or ranges.
    pub fn counted(&mut self, found: &Counted) {
        self.sections.push(sections::counted(found));
    }

    /// Adds a measurement of small and large objects together over many links.
    pub fn links(&mut self, found: &Links) {
        self.sections.push(sections::links(found));
    }

    /// Returns the result of each job, with the id of its section.
    fn scores(&self) -> Vec<(&'static str, Score)> {
        let of = |section: &Section| {
            let id = section.id;
            section.scores.clone().into_iter().map(move |score| (id, score)).collect::<Vec<_>>()
        };
        self.sections.iter().flat_map(of).collect()
    }

    /// Returns four lines, one for each verdict: the jobs that Laneway wins, ties, jobs in which Laneway is slower, and
    /// unclear jobs.
    pub fn summary(&self) -> Vec<String> {
        scores::lines(&self.scores())
    }

    /// Returns the results of all jobs, which can be serialized to JSON.
    pub fn results(&self) -> Vec<Score> {
        self.scores().into_iter().map(|(_, score)| score).collect()
    }

    /// Returns the page as HTML: results, pictures and tables, and the method at the end.
    pub fn html(&self, heading: &Heading) -> String {
        let mut html = String::from(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>Laneway: benchmark report</title>\n<style>\n",
        );
        html += STYLE;
        html +=
            "</style>\n</head>\n<body>\n<header>\n<h1>Laneway compared with the fastest other method</h1>\n";
        html +=
            "<p>A ratio of 2.00x means that Laneway takes half the time of the fastest other method.</p>\n";
        scores::write(&self.scores(), &mut html);
        html += "</header>\n<main>\n";
        self.sections.iter().for_each(|section| section.write(&mut html));
        self.write_method(heading, &mut html);
        html += "</main>\n</body>\n</html>\n";
        html
    }

    fn write_method(&self, heading: &Heading, html: &mut String) {
        let Machine { system, processor, cores, memory } = &heading.machine;
        let mut beside = vec![format!("clients that use {}", heading.libraries)];
        for program in self.sections.iter().flat_map(|section| &section.programs) {
            if !beside.contains(program) {
                beside.push(program.clone());
            }
        }
        let facts = [
            ("Date", heading.date.clone()),
            ("Program", heading.versions.clone()),
            ("Other methods", beside.join("; ")),
            ("Machine", format!("{processor}, {cores} cores, {memory}, {system}")),
        ];
        html.push_str(
            "<section id=\"method\">\n<h2>How the figures were measured</h2>\n<dl class=\"facts\">\n",
        );
        for (name, fact) in facts {
            let _ = writeln!(html, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&fact));
        }
        let _ = writeln!(html, "</dl>\n<p>{}</p>", escaped(&rule()));
        if self.sections.iter().any(|section| !section.programs.is_empty()) {
            html.push_str(
                "<p>Installed programs run as whole processes, and their time includes the start of the process. They are compared \
                 with the program <code>laneway</code>. They speak their own service's protocol to the embedded store \
                 over TLS, and may take at most 30 s. The store counts their requests and connections. The benchmark checks the \
                 objects that they moved.</p>\n",
            );
        }
        html.push_str(
            "<p>Each other method uses well-maintained libraries, and its code is written as users of these libraries would write it. The \
             <em>shortest possible time</em> consists of the round trips that are needed, and of the time to move the bytes at the path's \
             rate. The embedded store imitates delay and bandwidth, and shares the processor with the measured client. If its bandwidth \
             is limited, a connection starts with ten segments, and then sends as TCP with BBR does. All connections share a queue in \
             each direction, which drops packets when it is full. Without a bandwidth limit, the embedded store imitates no slow \
             start.</p>\n<p>This command repeats the measurement:</p>\n\
             <div class=\"scroll\"><pre><code>",
        );
        let _ = writeln!(html, "{}</code></pre></div>\n</section>", escaped(&heading.command));
    }
}

/// A human-readable description of a machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Kernel and its release.
    pub system: String,
    /// The processor's name.
    pub processor: String,
    /// Number of hardware threads.
    pub cores: usize,
    /// The size of its memory.
    pub memory: String,
}

impl Machine {
    /// Describes this machine.
    pub fn this() -> Self {
        let uname = rustix::system::uname();
        let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        Self {
            system: format!("{} {}", part(uname.sysname()), part(uname.release())),
            processor: usage::processor().unwrap_or_else(|| part(uname.machine())),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: match usage::memory_total() {
                Some(bytes) => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
                None => "unknown memory".to_owned(),
            },
        }
    }
}

impl Section {
    fn write(&self, html: &mut String) {
        let _ = writeln!(html, "<section id=\"{}\">\n<h2>{}</h2>", self.id, escaped(&self.title));
        let _ = writeln!(html, "<p>{}</p>", escaped(&self.text));
        for part in &self.parts {
            match part {
                Part::Heading(text) => drop(writeln!(html, "<h3>{}</h3>", escaped(text))),
                Part::Text(text) => drop(writeln!(html, "<p>{}</p>", escaped(text))),
                Part::Table(table) => write_table(table, html),
                Part::Figure(figure) => figure.write(html),
            }
        }
        html.push_str("</section>\n");
    }
}

impl Figure {
    fn write(&self, html: &mut String) {
        let _ = writeln!(html, "<figure>\n<h4>{}</h4>", escaped(&self.title));
        if !self.legend.is_empty() {
            html.push_str("<ul class=\"legend\">");
            for (colour, name) in &self.legend {
                let colour = colour.css();
                let _ = write!(html, "<li><i style=\"background:{colour}\"></i>{}</li>", escaped(name));
            }
            html.push_str("</ul>\n");
        }
        for (class, svg) in [("wide", &self.drawing.wide), ("narrow", &self.drawing.narrow)] {
            let _ = writeln!(
                html,
                "<div class=\"{class}\" role=\"img\" aria-label=\"{}\">{svg}</div>",
                escaped(&self.title)
            );
        }
        if !self.caption.is_empty() {
            let _ = writeln!(html, "<figcaption>{}</figcaption>", escaped(&self.caption));
        }
        html.push_str("</figure>\n");
    }
}

/// Writes a table. On a phone, the style sheet shows each row as a card, with the column's heading next to each cell.
/// The `role` attributes tell screen readers that it is still a table.
fn write_table(table: &Table, html: &mut String) {
    html.push_str("<div class=\"scroll\"><table role=\"table\">\n<thead role=\"rowgroup\"><tr role=\"row\">");
    for head in &table.head {
        let head = escaped(head);
        // Keep the unit `s` on the same line as the rest of the heading, with a no-break space.
        let head = head.strip_suffix(" s").map_or(head.clone(), |name| format!("{name}&nbsp;s"));
        let _ = write!(html, "<th role=\"columnheader\" scope=\"col\">{head}</th>");
    }
    html.push_str("</tr></thead>\n<tbody role=\"rowgroup\">\n");
    for row in &table.rows {
        let class = if row.name.to_lowercase().contains("laneway") { " class=\"ours\"" } else { "" };
        let name = escaped(&row.name);
        let _ = write!(html, "<tr{class} role=\"row\"><th role=\"rowheader\" scope=\"row\">{name}</th>");
        for (cell, head) in row.cells.iter().zip(&table.head[1..]) {
            let (head, cell) = (escaped(head), escaped(cell));
            let verdict = Verdict::ALL
                .map(Verdict::word)
                .into_iter()
                .find(|word| cell.strip_prefix(word).is_some_and(|ratio| ratio.starts_with(' ')));
            let class = verdict.map(|word| format!(" class=\"{word}\"")).unwrap_or_default();
            let _ = write!(html, "<td role=\"cell\"{class} data-head=\"{head}\">{cell}</td>");
        }
        if let Some(failure) = &row.failure {
            let columns = table.head.len() - 1;
            let failure = escaped(failure);
            let _ = write!(html, "<td role=\"cell\" class=\"failed\" colspan=\"{columns}\">{failure}</td>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n");
}

/// Formats seconds with their unit.
fn in_seconds(value: f64) -> String {
    format!("{} s", seconds(value))
}

/// Escapes text for HTML. Escaping is needed for safety, because a failure can contain text from a server.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Line;

    fn section(parts: Vec<Part>, scores: Vec<Score>) -> Section {
        Section {
            id: "x",
            title: "X".to_owned(),
            programs: vec!["tool 1.0".to_owned()],
            text: String::new(),
            parts,
            scores,
        }
    }

    fn heading() -> Heading {
        Heading {
            versions: "laneway 0".to_owned(),
            libraries: "hyper 0".to_owned(),
            date: "today".to_owned(),
            command: "laneway bench all --report '<x>'".to_owned(),
            machine: Machine::this(),
        }
    }

    #[test]
    fn what_a_server_said_is_text_on_the_page() {
        let failure = Some("the server answered 500: <script>alert(1)</script> \"&\"".to_owned());
        let line = Line { name: "Laneway".to_owned(), cells: Vec::new(), failure };
        let table = Table { head: vec!["rung", "seconds"], rows: vec![line] };
        let html = Page { sections: vec![section(vec![Part::Table(table)], Vec::new())] }.html(&heading());
        assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt; &quot;&amp;&quot;"));
        assert!(!html.contains("<script"));
        assert!(html.contains("--report &#39;&lt;x&gt;&#39;"));
    }

    #[test]
    fn the_page_opens_with_four_numbers_and_ends_with_the_method() {
        let scores = scores::tests::scores("A <b> job", &[0.5, 0.5, 0.75], &[1.25; 3]);
        let scores = scores.into_iter().map(|(_, score)| score).collect();
        let line = Line { name: "other".to_owned(), cells: vec!["win 2.50x".to_owned()], failure: None };
        let table = Table { head: vec!["method", "Laneway"], rows: vec![line] };
        let html = Page { sections: vec![section(vec![Part::Table(table)], scores)] }.html(&heading());
        let parts = [
            "<h1>",
            "<section class=\"win\"><h2><b>1</b> win</h2>",
            "<a href=\"#x\">A &lt;b&gt; job</a> <b>2.50x</b><small>Laneway: 0.500 s; other: 1.250 s",
            "<section class=\"tie\"><h2><b>0</b> ties</h2>",
            "<section class=\"behind\"><h2><b>0</b> behind</h2>",
            "<section class=\"unclear\"><h2><b>0</b> unclear</h2>",
            "<section id=\"x\">",
            "<td role=\"cell\" class=\"win\" data-head=\"Laneway\">win 2.50x</td>",
            "<section id=\"method\">",
            "; tool 1.0</dd>",
        ];
        let places =
            parts.map(|part| html.find(part).unwrap_or_else(|| panic!("the page lacks {part}: {html}")));
        assert!(places.is_sorted(), "the parts are in the wrong order: {places:?}");
    }

    #[test]
    fn the_page_asks_nothing_of_a_network() {
        let html = Page::default().html(&heading());
        assert!(html.contains("name=\"viewport\"") && html.contains("prefers-color-scheme: dark"));
        for word in ["src=", "@import", "url(", "<link", "<script"] {
            assert!(!html.contains(word), "the page loads something with {word}");
        }
    }
}
