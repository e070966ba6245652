//! Plots as SVG, drawn once for a screen and once for a phone. The page's style sheet defines their colours.

use std::fmt::Write as _;

use super::escaped;

/// The width of a plot in pixels: on a screen, where it equals the width of the page's tables, and on a phone.
const WIDE: i32 = 1088;
const NARROW: i32 = 350;
/// The height of text in pixels.
const TEXT: i32 = 13;

/// A plot in both widths.
#[derive(Clone, Debug)]
pub(super) struct Drawing {
    pub(super) wide: String,
    pub(super) narrow: String,
}

/// Draws a plot in both widths.
pub(super) fn drawn(draw: impl Fn(i32) -> Svg) -> Drawing {
    Drawing { wide: draw(WIDE).finish(), narrow: draw(NARROW).finish() }
}

/// The meaning of a colour. The style sheet defines the colour itself, for light and for dark mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Colour {
    Ink,
    /// Text of minor importance, such as the numbers on an axis.
    Faint,
    /// Lines of axes.
    Line,
    Ours,
    /// Small requests.
    Small,
    /// Parts of large objects.
    Freight,
    /// Parts of large objects while they are held back.
    Held,
    /// The shortest time that the path permits.
    Floor,
    /// A rival, by its number.
    Rival(usize),
}

impl Colour {
    /// The number of different colours for rivals.
    const RIVALS: usize = 5;

    /// Returns the colour of a method. `place` is its position among the methods of the plot.
    pub(super) fn of(rung: &str, place: usize) -> Self {
        if rung.contains("laneway") { Self::Ours } else { Self::Rival(place % Self::RIVALS) }
    }

    /// Returns the colour's name in the style sheet.
    pub(super) fn css(self) -> String {
        let name = match self {
            Self::Ink => "ink",
            Self::Faint => "faint",
            Self::Line => "line",
            Self::Ours => "ours",
            Self::Small => "small",
            Self::Freight => "freight",
            Self::Held => "held",
            Self::Floor => "floor",
            Self::Rival(n) => return format!("var(--rival-{n})"),
        };
        format!("var(--{name})")
    }
}

/// The part of a text (its start, middle or end) that lies at the given position.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A plot with a size in pixels. Later marks cover earlier ones.
pub(super) struct Svg {
    size: (i32, i32),
    marks: String,
}

impl Svg {
    pub(super) fn new(width: i32, height: i32) -> Self {
        Self { size: (width, height), marks: String::new() }
    }

    pub(super) fn line(&mut self, points: impl IntoIterator<Item = (i32, i32)>, colour: Colour, thick: i32) {
        let points: Vec<String> = points.into_iter().map(|(x, y)| format!("{x},{y}")).collect();
        let (points, colour) = (points.join(" "), colour.css());
        let _ = writeln!(
            self.marks,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{thick}\"/>"
        );
    }

    /// Fills the rectangle between two corners.
    pub(super) fn bar(&mut self, (left, top): (i32, i32), (right, bottom): (i32, i32), colour: Colour) {
        let (width, height, colour) = (right - left, bottom - top, colour.css());
        let _ = writeln!(
            self.marks,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"/>"
        );
    }

    /// Writes text whose middle is at `y`.
    pub(super) fn text(&mut self, (x, y): (i32, i32), anchor: Anchor, colour: Colour, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (y, colour, text) = (y + TEXT / 3, colour.css(), escaped(text));
        let _ = writeln!(
            self.marks,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>"
        );
    }

    fn finish(self) -> String {
        let Self { size: (width, height), marks } = self;
        format!("<svg viewBox=\"0 0 {width} {height}\" font-size=\"{TEXT}\">\n{marks}</svg>")
    }
}

/// An axis of seconds that is `pixels` long. It is linear from zero, or logarithmic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    from: f64,
    to: f64,
    pixels: i32,
    is_logarithmic: bool,
}

impl Axis {
    /// Returns an axis from zero.
    pub(super) fn linear(to: f64, pixels: i32) -> Self {
        Self { from: 0.0, to: to.max(1e-6), pixels, is_logarithmic: false }
    }

    /// Returns a logarithmic axis that includes both values.
    pub(super) fn logarithmic(from: f64, to: f64, pixels: i32) -> Self {
        let from = from.clamp(1e-6, 1e6);
        Self { from, to: to.max(from * 1.1), pixels, is_logarithmic: true }
    }

    /// Returns the distance in pixels of a value from the start of the axis.
    pub(super) fn at(&self, value: f64) -> i32 {
        let part = match self.is_logarithmic {
            false => value / self.to,
            true => (value.max(self.from) / self.from).ln() / (self.to / self.from).ln(),
        };
        (part.min(1.0) * f64::from(self.pixels)).round() as i32
    }

    /// Returns round values on the axis as pixels and texts. The values are far enough apart that the texts don't overlap.
    pub(super) fn ticks(&self) -> Vec<(i32, String)> {
        let values: Vec<f64> = match self.is_logarithmic {
            false => ticks(self.to, self.pixels as usize / 110),
            true => {
                let powers = self.from.log10().floor() as i32..=self.to.log10().ceil() as i32;
                let marks = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|n| n * 10f64.powi(power)));
                marks.filter(|mark| (self.from..=self.to).contains(mark)).collect()
            }
        };
        let mut ticks: Vec<(i32, String)> = Vec::new();
        for value in values {
            let at = self.at(value);
            if ticks.last().is_none_or(|(last, _)| at - last >= 52) && at <= self.pixels - 10 {
                let in_seconds = if self.is_logarithmic { value >= 1.0 } else { self.to >= 1.0 };
                ticks.push((at, readable(value, in_seconds)));
            }
        }
        ticks
    }
}

/// Formats a number of seconds for an axis.
fn readable(seconds: f64, in_seconds: bool) -> String {
    match seconds {
        0.0 => "0".to_owned(),
        s if in_seconds => format!("{} s", (s * 1000.0).round() / 1000.0),
        s => format!("{} ms", (s * 100_000.0).round() / 100.0),
    }
}

/// Returns about `wanted` values from 0 to at most `end`, in steps of 1, 2 or 5 times a power of ten.
fn ticks(end: f64, wanted: usize) -> Vec<f64> {
    let rough = end / wanted.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].map(|n| n * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    (0..=(end / step * 1.000_001) as usize).map(|n| n as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_no_colour_of_its_own_and_escapes_its_texts() {
        let drawing = drawn(|width| {
            let mut svg = Svg::new(width, 10);
            svg.bar((0, 0), (9, 9), Colour::Ours);
            svg.line([(0, 0), (1, 1)], Colour::Rival(4), 2);
            svg.text((0, 0), Anchor::End, Colour::Ink, "a<b");
            svg
        });
        for svg in [&drawing.wide, &drawing.narrow] {
            assert!(
                !svg.contains('#') && svg.contains("viewBox=\"0 0 "),
                "the picture has a fixed colour or no size: {svg}"
            );
            assert!(svg.contains("var(--ours)") && svg.contains("var(--rival-4)") && svg.contains("a&lt;b"));
        }
    }

    #[test]
    fn an_axis_has_round_ticks_with_units() {
        let texts = |axis: Axis| axis.ticks().into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(Axis::linear(1.1, 600)), ["0", "0.5 s", "1 s"]);
        assert_eq!(texts(Axis::linear(0.3, 400)), ["0", "100 ms", "200 ms"]);
        assert_eq!(texts(Axis::logarithmic(0.015, 3.0, 900)).first().map(String::as_str), Some("20 ms"));
        assert!(texts(Axis::logarithmic(0.015, 3.0, 900)).contains(&"2 s".to_owned()));
    }

    #[test]
    fn a_logarithmic_axis_gives_each_power_the_same_room() {
        let axis = Axis::logarithmic(0.01, 10.0, 300);
        assert_eq!([0.001, 0.01, 0.1, 1.0, 10.0, 99.0].map(|s| axis.at(s)), [0, 0, 100, 200, 300, 300]);
        assert_eq!([0.0, 0.5, 1.0].map(|s| Axis::linear(1.0, 300).at(s)), [0, 150, 300]);
    }

    #[test]
    fn nothing_and_instant_values_make_an_axis_all_the_same() {
        for axis in [Axis::linear(0.0, 350), Axis::logarithmic(0.0, 0.0, 350)] {
            assert!(
                (0..=350).contains(&axis.at(0.0)) && axis.ticks().len() < 9,
                "the axis puts 0 outside or has too many ticks: {axis:?}"
            );
        }
    }
}
