//! Results as one page: tables, plots and what one sees in them, readable without network, script or library, on a phone
//! and in the dark.

mod bars;
mod canvas;
mod connections;
mod distribution;
mod machine;
mod sections;
mod timeline;

use std::fmt::Write as _;

use crate::Error;
use crate::Table;
use crate::clean::Clean;
use crate::commit::Commit;
use crate::ladder::Ladder;
use crate::mixed::Mixed;
use crate::slices::Slices;
use canvas::{Colour, Drawing};
pub use machine::Machine;

const STYLE: &str = include_str!("report/style.css");

/// What stands above the results.
#[derive(Clone, Debug)]
pub struct Heading {
    /// Whose versions: `laneway 0.1.0`, and how it was built.
    pub versions: String,
    /// When, for people.
    pub date: String,
    /// The command that makes such a page again.
    pub command: String,
    /// Where the measuring was done.
    pub machine: Machine,
}

/// A page in the making.
#[derive(Clone, Default, Debug)]
pub struct Page {
    sections: Vec<Section>,
}

/// A benchmark's part of a page.
#[derive(Clone, Debug)]
struct Section {
    id: &'static str,
    title: String,
    /// What was done, and what to look at.
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Heading(&'static str),
    Text(String),
    Table(Table),
    Figure(Figure),
}

/// A plot with what one sees in it.
#[derive(Clone, Debug)]
struct Figure {
    /// What is drawn, in which unit.
    title: String,
    drawing: Drawing,
    /// What colours mean.
    legend: Vec<(Colour, String)>,
    caption: String,
}

impl Page {
    /// Adds what a ladder found.
    ///
    /// # Errors
    /// [`Error::Drawing`].
    pub fn ladder(&mut self, found: &Ladder) -> Result<(), Error> {
        self.sections.push(sections::ladder(found)?);
        Ok(())
    }

    /// Adds what slices found.
    ///
    /// # Errors
    /// [`Error::Drawing`].
    pub fn slices(&mut self, found: &Slices) -> Result<(), Error> {
        self.sections.push(sections::slices(found)?);
        Ok(())
    }

    /// Adds what small objects beside large ones found.
    ///
    /// # Errors
    /// [`Error::Drawing`].
    pub fn mixed(&mut self, found: &Mixed) -> Result<(), Error> {
        self.sections.push(sections::mixed(found)?);
        Ok(())
    }

    /// Adds what read-modify-writes found.
    ///
    /// # Errors
    /// [`Error::Drawing`].
    pub fn commit(&mut self, found: &Commit) -> Result<(), Error> {
        self.sections.push(sections::commit(found)?);
        Ok(())
    }

    /// Adds what deletes found.
    ///
    /// # Errors
    /// [`Error::Drawing`].
    pub fn clean(&mut self, found: &Clean) -> Result<(), Error> {
        self.sections.push(sections::clean(found)?);
        Ok(())
    }

    /// The page as HTML.
    pub fn html(&self, heading: &Heading) -> String {
        let mut html = String::from(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>Laneway: what was measured</title>\n<style>\n",
        );
        html += STYLE;
        html += "</style>\n</head>\n<body>\n<header>\n<h1>Laneway beside the usual ways</h1>\n";
        let Machine { system, processor, cores, memory } = &heading.machine;
        let facts = [
            ("Measured", heading.date.clone()),
            ("With", heading.versions.clone()),
            ("On", format!("{processor}, {cores} cores, {memory}, {system}")),
        ];
        html += "<dl class=\"facts\">\n";
        for (name, fact) in facts {
            let _ = writeln!(html, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&fact));
        }
        html += "</dl>\n<p>To repeat it:</p>\n<div class=\"scroll\"><pre><code>";
        html += &escaped(&heading.command);
        html += "</code></pre></div>\n";
        html += "<p class=\"note\">Every rival is competent code over well-kept libraries, written as its users \
                 write it. The <em>floor</em> is the least time that the path allows anybody. The embedded store \
                 imitates delay and bandwidth and shares the processor with whatever is measured; it imitates no \
                 slow start and no loss.</p>\n";
        if self.sections.len() > 1 {
            html += "<nav><ul>\n";
            for section in &self.sections {
                let _ =
                    writeln!(html, "<li><a href=\"#{}\">{}</a></li>", section.id, escaped(&section.title));
            }
            html += "</ul></nav>\n";
        }
        html += "</header>\n<main>\n";
        self.sections.iter().for_each(|section| section.write(&mut html));
        html += "</main>\n</body>\n</html>\n";
        html
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
        let _ = writeln!(html, "<figcaption>{}</figcaption>\n</figure>", escaped(&self.caption));
    }
}

fn write_table(table: &Table, html: &mut String) {
    html.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
    for head in &table.head {
        // A unit doesn't stand on a line of its own.
        let head = match head.strip_suffix(" s") {
            Some(name) => format!("{}&nbsp;s", escaped(name)),
            None => escaped(head),
        };
        let _ = write!(html, "<th scope=\"col\">{head}</th>");
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        let class = if row.name.contains("Laneway") { " class=\"ours\"" } else { "" };
        let _ = write!(html, "<tr{class}><th scope=\"row\">{}</th>", escaped(&row.name));
        for cell in &row.cells {
            let _ = write!(html, "<td>{}</td>", escaped(cell));
        }
        if let Some(failure) = &row.failure {
            let columns = table.head.len() - 1;
            let _ = write!(html, "<td class=\"failed\" colspan=\"{columns}\">{}</td>", escaped(failure));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n");
}

/// Text as HTML shows it. What a server answers can stand in a failure.
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

    fn heading() -> Heading {
        Heading {
            versions: "laneway 0".to_owned(),
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
        let parts = vec![Part::Table(table)];
        let section = Section { id: "x", title: "X".to_owned(), text: String::new(), parts };
        let html = Page { sections: vec![section] }.html(&heading());
        assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt; &quot;&amp;&quot;"));
        assert!(!html.contains("<script"));
        assert!(html.contains("--report &#39;&lt;x&gt;&#39;"));
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
