//! Open connections over time.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::canvas::{Area, Colour, DrawError, Drawing, draw, linear_seconds, text, ticks};
use crate::{Error, Trace};

const HEIGHT: i32 = 240;
const LEFT: i32 = 40;
const BOTTOM: i32 = 26;
const TOP: i32 = 8;

/// Draws the number of each run's open connections over time.
///
/// # Errors
/// [`Error::Drawing`].
pub(super) fn connections(runs: &[(&Trace, Colour)]) -> Result<Drawing, Error> {
    let end = runs.iter().map(|(trace, _)| trace.end_s()).fold(1e-6, f64::max);
    let most = runs.iter().map(|(trace, _)| trace.connections_peak()).max().unwrap_or(0).max(1);
    draw(|_| HEIGHT as u32, |area, width| paint(area, width as i32, runs, end, most))
}

fn paint<'a>(
    area: &Area<'a>,
    width: i32,
    runs: &[(&Trace, Colour)],
    end: f64,
    most: usize,
) -> Result<(), DrawError<'a>> {
    let right = width - 12;
    let x = |seconds: f64| LEFT + (seconds / end * f64::from(right - LEFT)).round() as i32;
    let y =
        |open: f64| HEIGHT - BOTTOM - (open / most as f64 * f64::from(HEIGHT - BOTTOM - TOP)).round() as i32;
    let faint = ShapeStyle::from(&Colour::Line.rgb());
    for open in ticks(most as f64, 4).into_iter().filter(|open| open.fract() == 0.0) {
        area.draw(&PathElement::new([(LEFT, y(open)), (right, y(open))], faint))?;
        let style = text(Colour::Faint).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw(&Text::new(format!("{open}"), (LEFT - 6, y(open)), style))?;
    }
    for seconds in ticks(end, width as usize / 110) {
        let style = text(Colour::Faint).pos(Pos::new(HPos::Center, VPos::Top));
        let at = x(seconds).min(right - 8);
        area.draw(&Text::new(linear_seconds(seconds, end), (at, HEIGHT - BOTTOM + 8), style))?;
    }
    for (trace, colour) in runs {
        let corners = corners(trace);
        let points: Vec<_> = corners.into_iter().map(|(at, open)| (x(at), y(open as f64))).collect();
        area.draw(&PathElement::new(points, ShapeStyle::from(&colour.rgb()).stroke_width(colour.stroke())))?;
    }
    Ok(())
}

/// Returns the line's corners from the start to the end of the last request. Connections closed later were idle.
fn corners(trace: &Trace) -> Vec<(f64, usize)> {
    let end = trace.end_s();
    let mut corners = vec![(0.0, 0)];
    let mut open = 0;
    for &(at, now) in trace.connections.iter().filter(|(at, _)| *at <= end) {
        corners.extend([(at, open), (at, now)]);
        open = now;
    }
    corners.push((end, open));
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Role, Span};

    #[test]
    fn the_line_goes_in_steps_and_ends_with_the_last_request() {
        let span = |end_s| Span {
            lane: 0,
            role: Role::Express,
            label: String::new(),
            start_s: 0.1,
            end_s,
            bytes: 0,
        };
        let connections = vec![(0.1, 1), (0.2, 2), (9.0, 1)];
        let trace = Trace { spans: vec![span(0.5), span(0.4)], connections, ..Trace::default() };
        assert_eq!(corners(&trace), [(0.0, 0), (0.1, 0), (0.1, 1), (0.2, 1), (0.2, 2), (0.5, 2)]);
        assert!(connections_of_nothing().is_ok());
    }

    fn connections_of_nothing() -> Result<Drawing, Error> {
        super::connections(&[(&Trace::default(), Colour::Ours)])
    }
}
