//! Plots: a timeline of requests, horizontal bars, and the share of finished requests over time.

use super::svg::{Anchor, Axis, Colour, Drawing, Svg, drawn};
use crate::{Latencies, Role, Span, Trace};

/// Maximum number of lanes (connections) that are drawn. The ones that were opened first are drawn.
pub(super) const LANES_MAX: usize = 60;

/// All rows together are at most this many pixels high, unless there are too many rows.
const HEIGHT_MAX: i32 = 260;

/// Pixels between rows.
const GAP: i32 = 2;

const BOTTOM: i32 = 26;

/// The part of a trace that is drawn.
///
/// A plot of the requests over time, with a row for each connection and a bar for each request.
pub(super) struct Timeline<'a> {
    /// One row for each lane, in the order in which they were opened. Concurrent requests of a lane are on separate
    /// tracks in its row.
    rows: Vec<Vec<Vec<&'a Span>>>,
    end_s: f64,
    /// The intervals during which large transfers were held back for small requests.
    held: &'a [(f64, f64)],
    /// Number of lanes that were used, including those that aren't drawn.
    pub(super) lanes: usize,
}

impl<'a> Timeline<'a> {
    /// Returns the first lanes of a trace, with the requests that began before `end_s`.
    pub(super) fn until(trace: &'a Trace, end_s: f64) -> Self {
        let begun = trace.spans.iter().filter(|span| span.start_s <= end_s);
        let mut numbers: Vec<u64> = begun.map(|span| span.lane).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let lanes = numbers.len();
        numbers.truncate(LANES_MAX);
        let spans = |lane| {
            let of_lane = trace.spans.iter().filter(|span| span.lane == lane && span.start_s <= end_s);
            let mut spans: Vec<&Span> = of_lane.collect();
            spans.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
            tracks(&spans)
        };
        let rows = numbers.into_iter().map(spans).collect();
        Self { rows, end_s: end_s.max(1e-6), held: &trace.held, lanes }
    }

    pub(super) fn draw(&self) -> Drawing {
        drawn(|width| self.draw_at(width))
    }

    fn draw_at(&self, width: i32) -> Svg {
        let heights = heights(&self.rows.iter().map(Vec::len).collect::<Vec<_>>());
        let bottom = heights.iter().sum::<i32>() + GAP * heights.len() as i32;
        let mut svg = Svg::new(width, bottom + BOTTOM);
        let axis = Axis::linear(self.end_s, width - 16);
        for (x, text) in axis.ticks() {
            let anchor = if x == 0 { Anchor::Start } else { Anchor::Middle };
            svg.line([(x, 0), (x, bottom)], Colour::Line, 1);
            svg.text((x, bottom + 14), anchor, Colour::Faint, &text);
        }
        let mut top = 0;
        for (tracks, row_height) in self.rows.iter().zip(heights) {
            // A lane with several requests at once divides its height among them.
            let step = f64::from(row_height) / tracks.len().max(1) as f64;
            // Separate bars by a pixel if there is room for it.
            let between = if tracks.len() > 1 && step >= 3.0 { 1 } else { 0 };
            for (track, spans) in tracks.iter().enumerate() {
                let y = top + (track as f64 * step).round() as i32;
                let end = top + ((track + 1) as f64 * step).round() as i32 - between;
                for (from, until, colour) in spans.iter().flat_map(|span| self.parts(span)) {
                    let from = axis.at(from);
                    svg.bar((from, y), (axis.at(until).max(from + 1), end.max(y + 1)), colour);
                }
            }
            top += row_height + GAP;
        }
        svg
    }

    /// Returns a bar's parts with their colours. A large transfer gets another colour while it was held back.
    fn parts(&self, span: &Span) -> Vec<(f64, f64, Colour)> {
        if span.role == Role::Express {
            return vec![(span.start_s, span.end_s, Colour::Small)];
        }
        let mut parts = vec![(span.start_s, span.end_s, Colour::Freight)];
        for (since, until) in self.held {
            let (from, to) = (since.max(span.start_s), until.min(span.end_s));
            if from < to {
                parts.push((from, to, Colour::Held));
            }
        }
        parts
    }
}

/// Returns the height of each row in pixels, from the number of its tracks. Fewer rows are taller. A row with many
/// tracks is taller than the others, unless the rows together would exceed the maximum.
fn heights(tracks: &[usize]) -> Vec<i32> {
    let least = match tracks.len() {
        0..=8 => 16,
        9..=24 => 10,
        25..=36 => 7,
        _ => 5,
    };
    let at =
        |track: i32| tracks.iter().map(move |tracks| least.max(*tracks as i32 * track)).collect::<Vec<_>>();
    [4, 3, 2].map(at).into_iter().find(|rows| rows.iter().sum::<i32>() <= HEIGHT_MAX).unwrap_or_else(|| at(1))
}

/// Puts overlapping requests on separate tracks. There are at most 28 tracks, because a reader couldn't tell more of
/// them apart. Further requests share tracks.
fn tracks<'a>(sorted: &[&'a Span]) -> Vec<Vec<&'a Span>> {
    const TRACKS_MAX: usize = 28;
    let mut tracks: Vec<Vec<&Span>> = Vec::new();
    for span in sorted {
        let free = |track: &Vec<&Span>| track.last().is_none_or(|last| last.end_s <= span.start_s);
        match tracks.iter().position(free) {
            Some(track) => tracks[track].push(span),
            None if tracks.len() < TRACKS_MAX => tracks.push(vec![span]),
            None => {
                let fewest = tracks.iter_mut().min_by_key(|track| track.len());
                if let Some(track) = fewest {
                    track.push(span);
                }
            }
        }
    }
    tracks
}

/// Height in pixels of a bar with the name above it.
const BAR_STEP: i32 = 44;

const BAR: i32 = 16;

const BARS_TOP: i32 = 24;

const BARS_BOTTOM: i32 = 24;

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
        draw_bars(bars, axis, (floor, floor_name), width)
    });
    (drawing, is_logarithmic)
}

fn draw_bars(bars: &[Bar], axis: Axis, (floor, floor_name): (f64, &str), width: i32) -> Svg {
    let bottom = BARS_TOP + BAR_STEP * bars.len() as i32 - 2;
    let mut svg = Svg::new(width, bottom + BARS_BOTTOM);
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
        let top = BARS_TOP + BAR_STEP * n as i32;
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

const CURVES_HEIGHT: i32 = 300;

const CURVES_LEFT: i32 = 46;

const CURVES_RIGHT: i32 = 8;

const CURVES_BOTTOM: i32 = 26;

const CURVES_TOP: i32 = 8;

/// Draws the curves, the last one on top.
///
/// The time axis is logarithmic.
pub(super) fn distribution(curves: &[(&Latencies, Colour)]) -> Drawing {
    let seconds = || curves.iter().flat_map(|(latencies, _)| latencies.sorted().iter().copied());
    let least = seconds().filter(|s| *s > 0.0).fold(f64::MAX, f64::min);
    let most = seconds().fold(0.0, f64::max);
    drawn(|width| {
        draw_curves(
            curves,
            Axis::logarithmic(least * 0.9, most * 1.1, width - CURVES_LEFT - CURVES_RIGHT),
            width,
        )
    })
}

fn draw_curves(curves: &[(&Latencies, Colour)], axis: Axis, width: i32) -> Svg {
    let mut svg = Svg::new(width, CURVES_HEIGHT);
    let y = |share: f64| {
        CURVES_HEIGHT
            - CURVES_BOTTOM
            - (share * f64::from(CURVES_HEIGHT - CURVES_BOTTOM - CURVES_TOP)).round() as i32
    };
    for percent in [0, 25, 50, 75, 100] {
        let at = y(f64::from(percent) / 100.0);
        svg.line([(CURVES_LEFT, at), (width - CURVES_RIGHT, at)], Colour::Line, 1);
        svg.text((CURVES_LEFT - 6, at), Anchor::End, Colour::Faint, &format!("{percent}%"));
    }
    for (x, text) in axis.ticks() {
        svg.line([(CURVES_LEFT + x, y(0.0)), (CURVES_LEFT + x, CURVES_TOP)], Colour::Line, 1);
        svg.text((CURVES_LEFT + x, CURVES_HEIGHT - CURVES_BOTTOM + 14), Anchor::Middle, Colour::Faint, &text);
    }
    for (latencies, colour) in curves {
        let points = steps(latencies.sorted()).into_iter();
        let points = points.map(|(seconds, share)| (CURVES_LEFT + axis.at(seconds), y(share)));
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

    fn span(lane: u64, start_s: f64, end_s: f64) -> Span {
        Span { lane, role: Role::Express, start_s, end_s, bytes: 0 }
    }

    #[test]
    fn overlapping_requests_of_a_lane_stand_on_tracks_of_their_own() {
        let trace = Trace {
            spans: vec![span(7, 0.0, 2.0), span(7, 1.0, 3.0), span(7, 2.0, 4.0), span(9, 0.0, 1.0)],
            ..Trace::default()
        };
        let timeline = Timeline::until(&trace, trace.end_s());
        assert_eq!((timeline.lanes, timeline.rows.len(), timeline.end_s), (2, 2, 4.0));
        let starts: Vec<Vec<f64>> =
            timeline.rows[0].iter().map(|track| track.iter().map(|span| span.start_s).collect()).collect();
        assert_eq!(starts, [vec![0.0, 2.0], vec![1.0]]);
    }

    #[test]
    fn bulk_is_paler_while_it_was_held_back() {
        let bulk = Span { role: Role::Freight, ..span(0, 1.0, 4.0) };
        let trace = Trace { spans: vec![bulk, span(0, 0.0, 4.0)], held: vec![(0.0, 2.0), (3.0, 9.0)] };
        let timeline = Timeline::until(&trace, 2.0);
        let held = [(1.0, 4.0, Colour::Freight), (1.0, 2.0, Colour::Held), (3.0, 4.0, Colour::Held)];
        assert_eq!(timeline.parts(&trace.spans[0]), held);
        assert_eq!(timeline.parts(&trace.spans[1]), [(0.0, 4.0, Colour::Small)]);
        assert!(timeline.draw().wide.contains("var(--held)"));
    }

    #[test]
    fn rows_are_as_high_as_what_they_carry_needs() {
        assert_eq!(heights(&[1, 1]), [16, 16]);
        assert_eq!(heights(&[1, 20]), [16, 80]);
        assert_eq!(heights(&[28, 28, 28]), [84, 84, 84]);
        assert_eq!(heights(&[1; 60]), [5; 60]);
        assert!(heights(&[]).is_empty());
    }

    #[test]
    fn many_lanes_and_none_can_be_drawn() {
        let spans = (0..200).map(|lane| span(lane, 0.0, 1.0)).collect();
        let trace = Trace { spans, ..Trace::default() };
        let timeline = Timeline::until(&trace, 1.0);
        assert_eq!((timeline.lanes, timeline.rows.len()), (200, LANES_MAX));
        assert_eq!(timeline.draw().wide.matches("<rect").count(), LANES_MAX);
        assert_eq!(Timeline::until(&Trace::default(), 0.0).draw().wide.matches("<rect").count(), 0);
    }

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
