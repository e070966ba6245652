//! Results as one page: tables, plots and what one sees in them, readable without network, script or library, on a phone
//! and in the dark.

mod bars;
mod canvas;
mod connections;
mod distribution;
mod machine;
mod markup;
mod sections;
mod timeline;
mod versions;

use std::fmt::Write as _;

use crate::Error;
use crate::Table;
use crate::counted::Counted;
use crate::ladder::Ladder;
use crate::mixed::Mixed;
use crate::slices::Slices;
use canvas::{Colour, Drawing};
pub use machine::Machine;
use markup::escaped;
use sections::Quickest;

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
    /// What of it stands at the head of the page.
    quickest: Vec<Quickest>,
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

    /// Adds what read-modify-writes or deletes found.
    ///
    /// # Errors
    /// [`Error::Drawing`].
    pub fn counted(&mut self, found: &Counted) -> Result<(), Error> {
        self.sections.push(sections::counted(found)?);
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
            ("Beside", format!("clients over {}", versions::of_rivals())),
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

    /// What was found, in a line for each measure, and what the words mean.
    fn write_summary(&self, html: &mut String) {
        let mut rows = String::new();
        for section in &self.sections {
            for Quickest { what, ours, other, slowest, floor_s } in &section.quickest {
                let seconds = |value: Option<f64>| value.map_or("no figure".to_owned(), markup::in_seconds);
                let quickest = other.map(|(_, name)| escaped(name)).unwrap_or_default();
                let _ = writeln!(
                    rows,
                    "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\"><a href=\"#{}\">{}</a><small>{}</small></th>\
                     <td role=\"cell\" data-head=\"Laneway\"><b>{}</b></td>\
                     <td role=\"cell\" data-head=\"quickest other way\">{}<small>{quickest}</small></td>\
                     <td role=\"cell\" data-head=\"slowest\">{}</td>\
                     <td role=\"cell\" data-head=\"floor\">{}</td></tr>",
                    section.id,
                    escaped(&section.title),
                    escaped(what),
                    seconds(*ours),
                    seconds(other.map(|(value, _)| value)),
                    seconds(*slowest),
                    seconds(Some(*floor_s)),
                );
            }
        }
        if !rows.is_empty() {
            html.push_str(
                "<h2>At a glance</h2>\n<div class=\"scroll\"><table class=\"glance\" role=\"table\">\n<thead role=\"rowgroup\"><tr role=\"row\">\
                 <th role=\"columnheader\" scope=\"col\">measured</th><th role=\"columnheader\" scope=\"col\">Laneway</th>\
                 <th role=\"columnheader\" scope=\"col\">quickest other way</th>\
                 <th role=\"columnheader\" scope=\"col\">slowest</th>\
                 <th role=\"columnheader\" scope=\"col\">floor</th></tr></thead>\n<tbody role=\"rowgroup\">\n",
            );
            html.push_str(&rows);
            html.push_str("</tbody>\n</table></div>\n");
        }
        html.push_str(
            "<p class=\"note\">Each other way is competent code over well-kept libraries, written as its users write it. \
             The <em>floor</em> is the least time that the path allows anybody. The embedded store imitates delay and \
             bandwidth and shares the processor with whatever is measured. Where it limits bandwidth, connections begin with \
             ten segments, come to equal shares, and queue one round trip of bytes together; else there is no slow start. \
             There is no loss, and no effect of windows and buffers that a client keeps small: what Laneway does with \
             them to keep bulk out of the way of small objects shows on real links only (<code>--endpoint</code>).</p>\n",
        );
    }
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
        let (title, quickest) = ("X".to_owned(), Vec::new());
        let parts = vec![Part::Table(table)];
        let section = Section { id: "x", title, text: String::new(), parts, quickest };
        let html = Page { sections: vec![section] }.html(&heading());
        assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt; &quot;&amp;&quot;"));
        assert!(!html.contains("<script"));
        assert!(html.contains("--report &#39;&lt;x&gt;&#39;"));
    }

    #[test]
    fn the_head_of_the_page_names_laneway_and_the_quickest_other_way() {
        let what = "until all is there";
        let other = Some((1.25, "one <b> way"));
        let quickest = vec![Quickest { what, ours: Some(0.5), other, slowest: Some(9.0), floor_s: 0.25 }];
        let (title, text, parts) = ("X".to_owned(), String::new(), Vec::new());
        let html =
            Page { sections: vec![Section { id: "x", title, text, parts, quickest }] }.html(&heading());
        for part in ["href=\"#x\"", what, "0.500 s", "1.250 s<small>one &lt;b&gt; way", "9.000 s", "0.250 s"]
        {
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
