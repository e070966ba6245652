//! Sections, plots and tables as HTML.

use std::fmt::Write as _;

use super::{Figure, Part, Section};
use crate::Table;
use crate::table::seconds;
use crate::verdict::Verdict;

impl Section {
    pub(super) fn write(&self, html: &mut String) {
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
pub(super) fn in_seconds(value: f64) -> String {
    format!("{} s", seconds(value))
}

/// Escapes text for HTML. Escaping is needed for safety, because a failure can contain text from a server.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
