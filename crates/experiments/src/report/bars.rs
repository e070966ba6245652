//! Draws horizontal bars, and a vertical line at the floor, the shortest time that the path permits.

use super::svg::{Anchor, Axis, Colour, Drawing, Svg, drawn};

/// Height in pixels of a bar with the name above it.
const STEP: i32 = 44;
const BAR: i32 = 16;
const TOP: i32 = 24;
const BOTTOM: i32 = 24;
/// Width in pixels of the number at a bar's end.
const NUMBER: i32 = 76;
/// The axis is logarithmic if the longest bar is more than this many times as long as the shortest. A linear axis
/// would hide the differences between the other bars.
const HIDING: f64 = 8.0;

/// One bar.
pub(super) struct Bar {
    pub(super) name: String,
    /// The length, or `None` for a method that failed.
    pub(super) value: Option<f64>,
    pub(super) colour: Colour,
    /// The text at the bar's end.
    pub(super) number: String,
}

/// Draws bars, and a line at the floor. Also returns whether the axis is logarithmic.
pub(super) fn bars(bars: &[Bar], (floor, floor_name): (f64, &str)) -> (Drawing, bool) {
    let values = || bars.iter().filter_map(|bar| bar.value);
    let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(floor, f64::max));
    let is_logarithmic = values().count() > 0 && most > least * HIDING;
    let drawing = drawn(|width| {
        let axis = match is_logarithmic {
            true => Axis::logarithmic(least.min(floor) / 2.0, most, width - NUMBER),
            false => Axis::linear(most, width - NUMBER),
        };
        draw(bars, axis, (floor, floor_name), width)
    });
    (drawing, is_logarithmic)
}

fn draw(bars: &[Bar], axis: Axis, (floor, floor_name): (f64, &str), width: i32) -> Svg {
    let bottom = TOP + STEP * bars.len() as i32 - 2;
    let mut svg = Svg::new(width, bottom + BOTTOM);
    for (x, text) in axis.ticks() {
        let anchor = if x == 0 { Anchor::Start } else { Anchor::Middle };
        svg.line([(x, bottom), (x, bottom + 5)], Colour::Faint, 1);
        svg.text((x, bottom + 15), anchor, Colour::Faint, &text);
    }
    let mark = axis.at(floor).max(1);
    // Put the floor's name on the side of the line that has room for it.
    let anchor = if mark < width / 2 { Anchor::Start } else { Anchor::End };
    svg.text((mark, 8), anchor, Colour::Floor, floor_name);
    for (n, bar) in bars.iter().enumerate() {
        let top = TOP + STEP * n as i32;
        svg.text((0, top + 10), Anchor::Start, Colour::Ink, &bar.name);
        let end = bar.value.map_or(0, |value| axis.at(value)).max(1);
        svg.bar((0, top + 21), (end, top + 21 + BAR), bar.colour);
        // Draw the line through the bars only, so that it doesn't cross their names.
        svg.line([(mark, top + 18), (mark, top + 24 + BAR)], Colour::Floor, 2);
        let beside = if (end..end + NUMBER).contains(&mark) { mark } else { end };
        svg.text((beside + 6, top + 21 + BAR / 2), Anchor::Start, Colour::Ink, &bar.number);
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_is_logarithmic_where_one_bar_hides_the_rest() {
        let of = |values: &[f64]| {
            let bar = |value| Bar { name: "n".into(), value, colour: Colour::Ours, number: String::new() };
            bars(
                &values.iter().map(|value| bar(Some(*value))).chain([bar(None)]).collect::<Vec<_>>(),
                (0.1, "least"),
            )
        };
        assert!(!of(&[0.2, 0.9]).1 && of(&[0.1, 0.2, 6.0]).1 && !of(&[]).1);
        assert!(of(&[]).0.narrow.contains("least"));
    }
}
