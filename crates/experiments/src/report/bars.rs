//! Horizontal bars against a floor.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::canvas::{Area, Colour, DrawError, Drawing, draw, text};
use crate::Error;

/// Pixels of a bar and the name above it.
const STEP: i32 = 44;
const BAR: i32 = 16;
const TOP: i32 = 24;
/// Pixels of the number at a bar's end.
const NUMBER: i32 = 76;

/// One bar.
pub(super) struct Bar {
    pub(super) name: String,
    /// The length, or `None` for a rung that failed.
    pub(super) value: Option<f64>,
    pub(super) colour: Colour,
    /// The text at its end.
    pub(super) number: String,
}

/// Draws bars from zero, and a line at the floor.
///
/// # Errors
/// [`Error::Drawing`].
pub(super) fn bars(bars: &[Bar], floor: Option<(f64, &str)>) -> Result<Drawing, Error> {
    let values = bars.iter().filter_map(|bar| bar.value);
    let most = values.chain(floor.map(|(at, _)| at)).fold(f64::MIN_POSITIVE, f64::max);
    // The floor's name is above the bars.
    let top = if floor.is_some() { TOP } else { 0 };
    let height = top + STEP * bars.len() as i32 - 2;
    draw(|_| height as u32, |area, width| paint(area, (width as i32, top), bars, floor, most))
}

fn paint<'a>(
    area: &Area<'a>,
    (width, top): (i32, i32),
    bars: &[Bar],
    floor: Option<(f64, &str)>,
    most: f64,
) -> Result<(), DrawError<'a>> {
    let length = |value: f64| (value / most * f64::from(width - NUMBER)).round() as i32;
    if let Some((at, name)) = floor {
        let x = length(at).max(1);
        // The floor's name goes to the side with enough room.
        let left = x < width / 2;
        let anchor = Pos::new(if left { HPos::Left } else { HPos::Right }, VPos::Top);
        area.draw(&Text::new(name.to_owned(), (x, 0), text(Colour::Floor).pos(anchor)))?;
    }
    for (n, bar) in bars.iter().enumerate() {
        let top = top + STEP * n as i32;
        area.draw(&Text::new(bar.name.clone(), (0, top + 4), text(Colour::Ink)))?;
        let end = bar.value.map_or(0, length).max(1);
        if bar.value.is_some() {
            let corners = [(0, top + 21), (end, top + 21 + BAR)];
            area.draw(&Rectangle::new(corners, bar.colour.rgb().filled()))?;
        }
        // The line crosses the bars only, not their names.
        let mark = floor.map(|(at, _)| length(at).max(1));
        if let Some(x) = mark {
            let line = ShapeStyle::from(&Colour::Floor.rgb()).stroke_width(2);
            area.draw(&PathElement::new([(x, top + 18), (x, top + 24 + BAR)], line))?;
        }
        let beside = end.max(mark.filter(|x| (end..end + NUMBER).contains(x)).unwrap_or(end));
        let style = text(Colour::Ink).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(bar.number.clone(), (beside + 6, top + 21 + BAR / 2), style))?;
    }
    Ok(())
}
