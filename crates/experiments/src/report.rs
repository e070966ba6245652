//! A page of results with tables, plots and their explanations. It needs no network, script or library, and suits
//! phones and dark mode.

mod bars;
mod canvas;
mod connections;
mod distribution;
mod glance;
mod machine;
mod markup;
mod sections;
mod summary;
mod timeline;

use std::fmt::Write as _;

use crate::Error;
use crate::Table;
use crate::counted::Counted;
use crate::links::Links;
use crate::mixed::Mixed;
use crate::slices::Slices;
use crate::verdict::rule;
use canvas::{Colour, Drawing};
use glance::Glance;
pub use machine::Machine;
use markup::escaped;
pub(crate) use sections::path;

/// Maximum number of comparisons that the summary names. If a section has more, only its own tables show them.
const NAMED_MAX: usize = 16;

const STYLE: &str = include_str!("report/style.css");

/// The facts above the results.
#[derive(Clone, Debug)]
pub struct Heading {
    /// The version of Laneway and how it was built: `laneway 0.1.0`.
    pub versions: String,
    /// The libraries of this crate's clients: `hyper 1.12.0, h2 0.4.1`.
    pub libraries: String,
    /// The date, for people.
    pub date: String,
    /// The command that makes such a page again.
    pub command: String,
    /// The machine of the measurements.
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
    /// The moved objects and their number, for the page's first sentence.
    what: String,
    /// The other vendors' programs that took part.
    programs: Vec<String>,
    /// The link or path.
    path: String,
    /// The procedure, and advice to the reader.
    text: String,
    parts: Vec<Part>,
    /// Its lines in the table at the head of the page.
    glances: Vec<Glance>,
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
    /// The subject and its unit.
    title: String,
    drawing: Drawing,
    /// The meaning of the colours.
    legend: Vec<(Colour, String)>,
    caption: String,
}

impl Page {
    /// Adds the downloads of one object, in each size and over each link.
    ///
    /// # Errors
    /// [`Error::Drawing`].
    pub fn slices(&mut self, found: &[Slices]) -> Result<(), Error> {
        self.sections.push(sections::slices(found)?);
        Ok(())
    }

    /// Adds the results for small objects beside large ones.
    ///
    /// # Errors
    /// [`Error::Drawing`].
    pub fn mixed(&mut self, found: &Mixed) -> Result<(), Error> {
        self.sections.push(sections::mixed(found)?);
        Ok(())
    }

    /// Adds the results for small files, read-modify-writes, deletes or ranges.
    ///
    /// # Errors
    /// [`Error::Drawing`].
    pub fn counted(&mut self, found: &Counted) -> Result<(), Error> {
        self.sections.push(sections::counted(found)?);
        Ok(())
    }

    /// Adds the results for many links.
    pub fn links(&mut self, found: &Links) {
        self.sections.push(sections::links(found));
    }

    /// Sums everything up in three sentences: the measurements and their links, where Laneway is ahead and by how much,
    /// and where it isn't.
    pub fn sentences(&self) -> [String; 3] {
        summary::sentences(&self.sections)
    }

    /// Returns the page as HTML.
    pub fn html(&self, heading: &Heading) -> String {
        let mut html = String::from(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>Laneway: what was measured</title>\n<style>\n",
        );
        html += STYLE;
        html += "</style>\n</head>\n<body>\n<header>\n<h1>Laneway beside the usual ways</h1>\n";
        for sentence in self.sentences() {
            let _ = writeln!(html, "<p class=\"opening\">{}</p>", escaped(&sentence));
        }
        let Machine { system, processor, cores, memory } = &heading.machine;
        let mut beside = vec![format!("clients over {}", heading.libraries)];
        for program in self.sections.iter().flat_map(|section| &section.programs) {
            if !beside.contains(program) {
                beside.push(program.clone());
            }
        }
        let facts = [
            ("Measured", heading.date.clone()),
            ("With", heading.versions.clone()),
            ("Beside", beside.join("; ")),
            ("On", format!("{processor}, {cores} cores, {memory}, {system}")),
        ];
        html += "<dl class=\"facts\">\n";
        for (name, fact) in facts {
            let _ = writeln!(html, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&fact));
        }
        html += "</dl>\n<p>To repeat it:</p>\n<div class=\"scroll\"><pre><code>";
        html += &escaped(&heading.command);
        html += "</code></pre></div>\n";
        self.write_summary(&mut html);
        html += "</header>\n<main>\n";
        self.sections.iter().for_each(|section| section.write(&mut html));
        html += "</main>\n</body>\n</html>\n";
        html
    }

    /// Writes a line for each measure, and the meaning of the words.
    fn write_summary(&self, html: &mut String) {
        let mut rows = String::new();
        let few = |section: &&Section| section.glances.len() <= NAMED_MAX;
        for section in self.sections.iter().filter(few) {
            section.glances.iter().for_each(|glance| glance.write(section.id, &section.title, &mut rows));
        }
        if !rows.is_empty() {
            html.push_str(
                "<h2>At a glance</h2>\n<div class=\"scroll\"><table class=\"glance\" role=\"table\">\n<thead role=\"rowgroup\"><tr role=\"row\">",
            );
            for head in ["measured", "Laneway", "quickest other way", "verdict", "slowest", "floor"] {
                let _ = write!(html, "<th role=\"columnheader\" scope=\"col\">{head}</th>");
            }
            html.push_str("</tr></thead>\n<tbody role=\"rowgroup\">\n");
            html.push_str(&rows);
            html.push_str("</tbody>\n</table></div>\n");
            let _ = writeln!(html, "<p class=\"note\">{}</p>", escaped(&rule()));
        }
        if self.sections.iter().any(|section| !section.programs.is_empty()) {
            html.push_str(
                "<p class=\"note\">Programs are whole processes whose start counts, beside <code>laneway cp</code> as one. They \
                 speak their own service's protocol with the embedded store, over TLS with its own certificate, and have \
                 30 s. Requests and connections are those that the store has seen; what they moved is compared with \
                 what was to be moved.</p>\n",
            );
        }
        html.push_str(
            "<p class=\"note\">Each other way is competent code over well-kept libraries, written as its users write it. \
             The <em>floor</em> is the least time that the path allows anybody. The embedded store imitates delay and \
             bandwidth and shares the processor with whatever is measured. Where it limits bandwidth, connections begin with \
             ten segments and send as TCP does with BBR, into a queue that all share in each direction and that drops what \
             finds no place; else there is no slow start.</p>\n",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Line;
    use crate::turns::Compared as _;
    use crate::turns::tests::{Figures, row};

    fn section(parts: Vec<Part>, glances: Vec<Glance>) -> Section {
        let (title, what, path) = ("X".to_owned(), "things".to_owned(), "a link".to_owned());
        Section {
            id: "x",
            title,
            what,
            path,
            programs: vec!["tool 1.0".to_owned()],
            text: String::new(),
            parts,
            glances,
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
    fn the_page_begins_with_its_subject_laneway_and_the_fastest_competitor() {
        let rows = [
            row("one <b> way", "", &[1.25; 3]),
            row("laneway", "", &[0.5, 0.5, 0.75]),
            row("slow", "", &[9.0; 3]),
        ];
        let page =
            Page { sections: vec![section(Vec::new(), Glance::of(&rows, &Figures::MEASURES[0], 0.25))] };
        let html = page.html(&heading());
        let [first, second, third] = page.sentences().map(|sentence| html.find(&escaped(&sentence)).unwrap());
        assert!(html.find("<h1>").unwrap() < first && first < second && second < third);
        assert!(third < html.find("class=\"facts\"").unwrap());
        for part in [
            "href=\"#x\"",
            "until the end",
            "0.500 s</b><small class=\"range\">0.500-0.750",
            "1.250-1.250</small><small>one &lt;b&gt; way",
            "<span class=\"verdict winner\">winner</span> 2.50x",
            "9.000 s",
            "0.250 s",
            "from which nothing follows",
            "; tool 1.0</dd>",
        ] {
            assert!(html.contains(part), "{part}");
        }
    }

    #[test]
    fn the_page_asks_nothing_of_a_network() {
        let html = Page::default().html(&heading());
        assert!(html.contains("name=\"viewport\"") && html.contains("prefers-color-scheme: dark"));
        for word in ["src=", "@import", "url(", "<link", "<script"] {
            assert!(!html.contains(word), "{word}");
        }
    }
}
