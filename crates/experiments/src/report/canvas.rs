//! Draws each plot twice, for a screen and for a phone, in colours from the page's style sheet.

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::Error;

/// Pixels of a plot on a screen, and on a phone.
const WIDE: u32 = 760;
const NARROW: u32 = 350;
/// Text height in pixels. The drawing backend divides its input by this factor.
pub(super) const TEXT: f64 = 13.0 * 1.24;

/// A finished plot at both widths.
#[derive(Clone, Debug)]
pub(super) struct Drawing {
    pub(super) wide: String,
    pub(super) narrow: String,
}

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type DrawError<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

/// A colour by its meaning. The style sheet has a light and a dark value for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Colour {
    /// Text.
    Ink,
    /// Secondary text.
    Faint,
    /// Lines of axes.
    Line,
    /// Laneway.
    Ours,
    /// Small requests.
    Small,
    /// Bulk.
    Freight,
    /// Bulk while it is held back.
    Held,
    /// The floor that the path permits.
    Floor,
    /// A rival, by its number.
    Rival(u8),
}

impl Colour {
    /// Number of rivals with separate colours.
    const RIVALS: u8 = 5;

    /// Returns all colours.
    fn all() -> impl Iterator<Item = Self> {
        let fixed = [
            Self::Ink,
            Self::Faint,
            Self::Line,
            Self::Ours,
            Self::Small,
            Self::Freight,
            Self::Held,
            Self::Floor,
        ];
        fixed.into_iter().chain((0..Self::RIVALS).map(Self::Rival))
    }

    /// Returns a rung's colour by its place among the rungs.
    pub(super) fn of(rung: &str, place: usize) -> Self {
        if rung.contains("laneway") { Self::Ours } else { Self::Rival(place as u8 % Self::RIVALS) }
    }

    /// Returns the style sheet's name for it.
    pub(super) fn css(self) -> String {
        match self {
            Self::Ink => "var(--ink)".to_owned(),
            Self::Faint => "var(--faint)".to_owned(),
            Self::Ours => "var(--ours)".to_owned(),
            Self::Line => "var(--line)".to_owned(),
            Self::Small => "var(--small)".to_owned(),
            Self::Freight => "var(--freight)".to_owned(),
            Self::Held => "var(--held)".to_owned(),
            Self::Floor => "var(--floor)".to_owned(),
            Self::Rival(n) => format!("var(--rival-{n})"),
        }
    }

    /// Returns the thickness of a line in pixels. Laneway's line is thicker, so that it stands out without colour, too.
    pub(super) fn stroke(self) -> u32 {
        if self == Self::Ours { 3 } else { 2 }
    }

    /// Returns the number that represents it while drawing. The library supports numbers only.
    pub(super) fn rgb(self) -> RGBColor {
        let number = match self {
            Self::Ink => 1,
            Self::Faint => 2,
            Self::Ours => 3,
            Self::Freight => 4,
            Self::Floor => 5,
            Self::Held => 6,
            Self::Small => 7,
            Self::Line => 8,
            Self::Rival(n) => 16 + n,
        };
        RGBColor(1, 2, number)
    }
}

/// Draws a plot at both widths. `height` and `draw` receive the width.
///
/// # Errors
/// [`Error::Drawing`].
pub(super) fn draw(
    height: impl Fn(u32) -> u32,
    draw: impl for<'a> Fn(&Area<'a>, u32) -> Result<(), DrawError<'a>>,
) -> Result<Drawing, Error> {
    let at = |width| {
        let mut svg = String::new();
        let size = (width, height(width));
        {
            let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            let drawn = draw(&area, width).and_then(|()| area.present());
            drawn.map_err(|e| Error::Drawing(e.to_string()))?;
        }
        Ok::<_, Error>(styled(svg, size))
    };
    Ok(Drawing { wide: at(WIDE)?, narrow: at(NARROW)? })
}

/// Replaces the numbers by the style sheet's colours, and leaves size and font to the page.
fn styled(mut svg: String, (width, height): (u32, u32)) -> String {
    for colour in Colour::all() {
        let RGBColor(r, g, b) = colour.rgb();
        svg = svg.replace(&format!("\"#{r:02X}{g:02X}{b:02X}\""), &format!("\"{}\"", colour.css()));
    }
    let size = format!("width=\"{width}\" height=\"{height}\" viewBox");
    svg.replacen(&size, "viewBox", 1).replace(" font-family=\"sans-serif\"", "").replace(" opacity=\"1\"", "")
}

/// Returns the style of text with the usual height.
pub(super) fn text(colour: Colour) -> TextStyle<'static> {
    ("sans-serif", TEXT).into_font().color(&colour.rgb())
}

/// Formats seconds for an axis that ends at `end`. All marks of an axis have the same unit.
pub(super) fn linear_seconds(seconds: f64, end: f64) -> String {
    match seconds {
        0.0 => "0".to_owned(),
        s if end >= 1.0 => format!("{} s", (s * 1000.0).round() / 1000.0),
        s => format!("{} ms", (s * 100_000.0).round() / 100.0),
    }
}

/// Formats seconds for a logarithmic axis.
pub(super) fn axis_seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 || s == 0.0 => format!("{} s", (s * 100.0).round() / 100.0),
        s => format!("{} ms", (s * 100_000.0).round() / 100.0),
    }
}

/// Returns about `wanted` steps from 0 to at most `end`. Each step is 1, 2 or 5 times a power of ten.
pub(super) fn ticks(end: f64, wanted: usize) -> Vec<f64> {
    if end <= 0.0 || !end.is_finite() {
        return vec![0.0];
    }
    let rough = end / wanted.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    (0..=(end / step * 1.000_001) as usize).map(|n| n as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_no_colour_and_no_size_of_its_own() {
        let drawing = draw(
            |_| 10,
            |area, _| {
                for (at, colour) in Colour::all().enumerate() {
                    area.draw(&Rectangle::new([(at as i32, 0), (9, 9)], colour.rgb().filled()))?;
                }
                area.draw(&Text::new("a<b", (0, 0), text(Colour::Ink)))
            },
        )
        .unwrap();
        for svg in [&drawing.wide, &drawing.narrow] {
            assert!(!svg.contains('#') && !svg.contains(" height=\"10\" viewBox"), "{svg}");
            assert!(svg.contains("var(--ours)") && svg.contains("var(--rival-4)") && svg.contains("a&lt;b"));
        }
    }

    #[test]
    fn ticks_are_round_and_end_within() {
        assert_eq!(ticks(1.0, 5), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(ticks(15.2, 4), [0.0, 5.0, 10.0, 15.0]);
        assert_eq!((ticks(0.0, 4), ticks(f64::NAN, 4)), (vec![0.0], vec![0.0]));
    }

    #[test]
    fn a_linear_axis_has_one_unit() {
        assert_eq!([0.0, 0.2, 1.0].map(|s| linear_seconds(s, 1.1)), ["0", "0.2 s", "1 s"]);
        assert_eq!([0.0, 0.2].map(|s| linear_seconds(s, 0.3)), ["0", "200 ms"]);
    }

    #[test]
    fn seconds_below_one_are_milliseconds() {
        assert_eq!([0.0, 0.05, 0.001, 2.5].map(axis_seconds), ["0 s", "50 ms", "1 ms", "2.5 s"]);
    }
}
