//! The share of finished requests over time: a cumulative distribution with a logarithmic time axis.

use super::svg::{Anchor, Axis, Colour, Drawing, Svg, drawn};
use crate::Latencies;

const HEIGHT: i32 = 300;
const LEFT: i32 = 46;
const RIGHT: i32 = 8;
const BOTTOM: i32 = 26;
const TOP: i32 = 8;

/// Draws the curves, the last one on top.
pub(super) fn distribution(curves: &[(&Latencies, Colour)]) -> Drawing {
    let seconds = || curves.iter().flat_map(|(latencies, _)| latencies.sorted().iter().copied());
    let least = seconds().filter(|s| *s > 0.0).fold(f64::MAX, f64::min);
    let most = seconds().fold(0.0, f64::max);
    drawn(|width| draw(curves, Axis::logarithmic(least * 0.9, most * 1.1, width - LEFT - RIGHT), width))
}

fn draw(curves: &[(&Latencies, Colour)], axis: Axis, width: i32) -> Svg {
    let mut svg = Svg::new(width, HEIGHT);
    let y = |share: f64| HEIGHT - BOTTOM - (share * f64::from(HEIGHT - BOTTOM - TOP)).round() as i32;
    for percent in [0, 25, 50, 75, 100] {
        let at = y(f64::from(percent) / 100.0);
        svg.line([(LEFT, at), (width - RIGHT, at)], Colour::Line, 1);
        svg.text((LEFT - 6, at), Anchor::End, Colour::Faint, &format!("{percent}%"));
    }
    for (x, text) in axis.ticks() {
        svg.line([(LEFT + x, y(0.0)), (LEFT + x, TOP)], Colour::Line, 1);
        svg.text((LEFT + x, HEIGHT - BOTTOM + 14), Anchor::Middle, Colour::Faint, &text);
    }
    for (latencies, colour) in curves {
        let points = steps(latencies.sorted()).into_iter();
        let points = points.map(|(seconds, share)| (LEFT + axis.at(seconds), y(share)));
        // Laneway's line is thicker, so that readers can recognise it without colour.
        svg.line(points, *colour, if *colour == Colour::Ours { 3 } else { 2 });
    }
    svg
}

/// Returns the corners of the curve, which is a staircase: at each latency, the share of finished requests rises by a
/// step.
fn steps(sorted: &[f64]) -> Vec<(f64, f64)> {
    let share = |n: usize| n as f64 / sorted.len() as f64;
    sorted.iter().enumerate().flat_map(|(n, s)| [(*s, share(n)), (*s, share(n + 1))]).collect()
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
    fn no_requests_and_instant_ones_make_a_plot_all_the_same() {
        for values in [vec![], vec![0.0, 0.0], vec![5.0]] {
            let latencies = Latencies::new(values);
            let drawing = distribution(&[(&latencies, Colour::Ours)]);
            assert!(
                drawing.wide.contains("100%") && !drawing.wide.contains("NaN"),
                "the drawing lacks a scale or a number: {}",
                drawing.wide
            );
        }
    }
}
