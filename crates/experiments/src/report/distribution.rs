//! The share of finished requests over time: a cumulative distribution with a logarithmic time axis.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::canvas::{Area, Colour, DrawError, Drawing, axis_seconds, draw, text};
use crate::{Error, Latencies};

const HEIGHT: i32 = 300;
const LEFT: i32 = 46;
const BOTTOM: i32 = 26;
const TOP: i32 = 8;

/// One curve.
pub(super) struct Curve<'a> {
    pub(super) latencies: &'a Latencies,
    pub(super) colour: Colour,
}

/// Returns the exponents of ten that bound an axis with all these latencies.
pub(super) fn range<'a>(all: impl Iterator<Item = &'a Latencies> + Clone) -> (f64, f64) {
    let seconds = || all.clone().flat_map(|latencies| latencies.sorted().iter().copied());
    let least = seconds().filter(|s| *s > 0.0).fold(f64::MAX, f64::min).clamp(1e-6, 1e3);
    let most = seconds().fold(least * 1.1, f64::max);
    ((least * 0.9).log10(), (most * 1.1).log10())
}

/// Draws the curves, with the last one on top.
///
/// # Errors
/// [`Error::Drawing`].
pub(super) fn distribution(curves: &[Curve<'_>], (from, to): (f64, f64)) -> Result<Drawing, Error> {
    draw(
        |_| HEIGHT as u32,
        |area, width| {
            let (left, right) = (LEFT, width as i32 - 8);
            let x = |seconds: f64| {
                let part = (seconds.max(1e-9).log10() - from) / (to - from);
                left + (part * f64::from(right - left)).round() as i32
            };
            paint(area, (left, right), x, (from, to), curves)
        },
    )
}

fn paint<'a>(
    area: &Area<'a>,
    (left, right): (i32, i32),
    x: impl Fn(f64) -> i32,
    (from, to): (f64, f64),
    curves: &[Curve<'_>],
) -> Result<(), DrawError<'a>> {
    let y = |share: f64| HEIGHT - BOTTOM - (share * f64::from(HEIGHT - BOTTOM - TOP)).round() as i32;
    let faint = ShapeStyle::from(&Colour::Line.rgb());
    for percent in [0, 25, 50, 75, 100] {
        let at = y(f64::from(percent) / 100.0);
        area.draw(&PathElement::new([(left, at), (right, at)], faint))?;
        let style = text(Colour::Faint).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw(&Text::new(format!("{percent}%"), (left - 6, at), style))?;
    }
    let mut last = i32::MIN;
    for seconds in marks(from, to) {
        let at = x(seconds);
        area.draw(&PathElement::new([(at, y(0.0)), (at, TOP)], faint))?;
        // Omits a mark if its text would overlap the one before.
        if at.saturating_sub(last) >= 52 && at <= right - 14 {
            let style = text(Colour::Faint).pos(Pos::new(HPos::Center, VPos::Top));
            area.draw(&Text::new(axis_seconds(seconds), (at, HEIGHT - BOTTOM + 8), style))?;
            last = at;
        }
    }
    for Curve { latencies, colour } in curves {
        let points = steps(latencies.sorted()).into_iter().map(|(seconds, share)| (x(seconds), y(share)));
        let line = ShapeStyle::from(&colour.rgb()).stroke_width(colour.stroke());
        area.draw(&PathElement::new(points.collect::<Vec<_>>(), line))?;
    }
    Ok(())
}

/// Returns the curve's corners. At each latency, the share of finished requests jumps up.
fn steps(sorted: &[f64]) -> Vec<(f64, f64)> {
    let share = |n: usize| n as f64 / sorted.len() as f64;
    sorted.iter().enumerate().flat_map(|(n, s)| [(*s, share(n)), (*s, share(n + 1))]).collect()
}

/// Returns 1, 2 and 5 times each power of ten between two exponents.
fn marks(from: f64, to: f64) -> impl Iterator<Item = f64> {
    let powers = from.floor() as i32..=to.ceil() as i32;
    let marks = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|n| n * 10f64.powi(power)));
    marks.filter(move |mark| (from..=to).contains(&mark.log10()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_jumps_at_each_latency_and_ends_at_one() {
        assert_eq!(steps(&[0.1, 0.3]), [(0.1, 0.0), (0.1, 0.5), (0.3, 0.5), (0.3, 1.0)]);
        assert_eq!(steps(&[]), []);
    }

    #[test]
    fn marks_are_round_and_inside() {
        let between: Vec<f64> = marks(0.015f64.log10(), 0.3f64.log10()).collect();
        assert_eq!(
            between.iter().map(|s| axis_seconds(*s)).collect::<Vec<_>>(),
            ["20 ms", "50 ms", "100 ms", "200 ms"]
        );
    }

    #[test]
    fn no_requests_and_instant_ones_make_a_plot_all_the_same() {
        for values in [vec![], vec![0.0, 0.0], vec![5.0]] {
            let latencies = Latencies::new(values);
            let curve = Curve { latencies: &latencies, colour: Colour::Ours };
            let range = range([&latencies].into_iter());
            assert!(range.0 < range.1 && distribution(&[curve], range).is_ok());
        }
    }
}
