//! Who was sent when on which lane: a line for each connection, a bar for each request on it.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::canvas::{Area, Colour, DrawError, Drawing, axis_seconds, draw, text, ticks};
use crate::{Error, Role, Span, Trace};

/// Lanes that are drawn at most: the first to be dialled.
pub(super) const LANES_MAX: usize = 60;
const LEFT: i32 = 4;
const BOTTOM: i32 = 26;

/// What of a trace is drawn.
pub(super) struct Timeline<'a> {
    /// A row for each lane, in the order of dialling, with the tracks of its requests.
    rows: Vec<Vec<Vec<&'a Span>>>,
    end_s: f64,
    /// From when to when bulk was held back.
    held: &'a [(f64, f64)],
    /// Lanes that were used, the ones that aren't drawn too.
    pub(super) lanes: usize,
}

impl<'a> Timeline<'a> {
    /// The first lanes of a trace.
    pub(super) fn of(trace: &'a Trace) -> Self {
        Self::until(trace, trace.end_s())
    }

    /// The same, of what began before `end_s`.
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

    /// Draws it.
    ///
    /// # Errors
    /// [`Error::Drawing`].
    pub(super) fn draw(&self) -> Result<Drawing, Error> {
        let step = row_height(self.rows.len());
        let height = step * self.rows.len().max(1) as i32 + BOTTOM + 4;
        draw(|_| height as u32, |area, width| self.paint(area, width as i32, step, height))
    }

    fn paint<'b>(&self, area: &Area<'b>, width: i32, step: i32, height: i32) -> Result<(), DrawError<'b>> {
        let right = width - 12;
        let x = |s: f64| LEFT + (s.min(self.end_s) / self.end_s * f64::from(right - LEFT)).round() as i32;
        let faint = ShapeStyle::from(&Colour::Faint.rgb().mix(0.3));
        for seconds in ticks(self.end_s, width as usize / 110) {
            area.draw(&PathElement::new([(x(seconds), 0), (x(seconds), height - BOTTOM)], faint))?;
            let anchor = if seconds == 0.0 { HPos::Left } else { HPos::Center };
            let style = text(Colour::Faint).pos(Pos::new(anchor, VPos::Top));
            let at = x(seconds).min(right - 8);
            area.draw(&Text::new(axis_seconds(seconds), (at, height - BOTTOM + 8), style))?;
        }
        for (row, tracks) in self.rows.iter().enumerate() {
            let top = 2 + step * row as i32;
            // A lane that carries many at once divides its height among them.
            let track_height = (f64::from(step) - 1.5) / tracks.len() as f64;
            for (track, spans) in tracks.iter().enumerate() {
                let y = f64::from(top) + track as f64 * track_height;
                let bottom = (y + track_height).round().max(y.round() + 1.0) as i32;
                for span in spans {
                    for (from, to, colour) in self.parts(span) {
                        let (from, to) = (x(from), x(to).max(x(from) + 1));
                        let style = colour.rgb().mix(0.85).filled();
                        area.draw(&Rectangle::new([(from, y.round() as i32), (to, bottom)], style))?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Timeline<'_> {
    /// A bar's parts and their colours: bulk is paler while it was held back.
    fn parts(&self, span: &Span) -> Vec<(f64, f64, Colour)> {
        if span.role == Role::Express {
            return vec![(span.start_s, span.end_s, Colour::Ours)];
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

/// Pixels for a lane: few lanes are drawn thick.
fn row_height(rows: usize) -> i32 {
    match rows {
        0..=4 => 56,
        5..=16 => 16,
        17..=32 => 10,
        _ => 6,
    }
}

/// Puts requests that overlap onto tracks of their own, at most as many as can be told apart.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn span(lane: u64, start_s: f64, end_s: f64) -> Span {
        Span { lane, role: Role::Express, label: String::new(), start_s, end_s, bytes: 0 }
    }

    #[test]
    fn overlapping_requests_of_a_lane_stand_on_tracks_of_their_own() {
        let trace = Trace {
            spans: vec![span(7, 0.0, 2.0), span(7, 1.0, 3.0), span(7, 2.0, 4.0), span(9, 0.0, 1.0)],
            ..Trace::default()
        };
        let timeline = Timeline::of(&trace);
        assert_eq!((timeline.lanes, timeline.rows.len(), timeline.end_s), (2, 2, 4.0));
        let starts: Vec<Vec<f64>> =
            timeline.rows[0].iter().map(|track| track.iter().map(|span| span.start_s).collect()).collect();
        assert_eq!(starts, [vec![0.0, 2.0], vec![1.0]]);
    }

    #[test]
    fn bulk_is_paler_while_it_was_held_back() {
        let bulk = Span { role: Role::Freight, ..span(0, 1.0, 4.0) };
        let trace = Trace {
            spans: vec![bulk, span(0, 0.0, 4.0)],
            held: vec![(0.0, 2.0), (3.0, 9.0)],
            ..Trace::default()
        };
        let timeline = Timeline::until(&trace, 2.0);
        let held = [(1.0, 4.0, Colour::Freight), (1.0, 2.0, Colour::Held), (3.0, 4.0, Colour::Held)];
        assert_eq!(timeline.parts(&trace.spans[0]), held);
        assert_eq!(timeline.parts(&trace.spans[1]), [(0.0, 4.0, Colour::Ours)]);
        assert!(timeline.draw().unwrap().wide.contains("var(--held)"));
    }

    #[test]
    fn many_lanes_and_none_can_be_drawn() {
        let spans = (0..200).map(|lane| span(lane, 0.0, 1.0)).collect();
        let trace = Trace { spans, ..Trace::default() };
        let timeline = Timeline::of(&trace);
        assert_eq!((timeline.lanes, timeline.rows.len()), (200, LANES_MAX));
        assert!(timeline.draw().is_ok() && Timeline::of(&Trace::default()).draw().is_ok());
    }
}
