//! Activity beside a silent attempt: it tells whether it alone is slow, or everything.

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::Group;
use crate::dispatch::{AttemptId, OriginId};

/// Bytes that others got at most so long ago show that the path is alive; beside a longer silence, in half of that.
const RECENTLY: Duration = Duration::from_millis(30);

/// Answered requests since an attempt went out, for each silent one, when nothing moves any more. At the end of a run only stragglers are
/// left.
const ANSWERED_TO_SILENT: usize = 4;

/// Activity beside an attempt, in its origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Others {
    /// Others get something, or have got all that they wanted.
    Moving,
    /// There are no others.
    None,
    /// Others get nothing either.
    Silent,
}

/// Everything that is watched, at one moment.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Each origin's last two moves, so that one can be left out.
    moves: FxHashMap<OriginId, [Option<Move>; 2]>,
    silent: FxHashMap<Group, usize>,
}

/// When, and by which attempt; that of an attempt that has ended is nobody's any more.
type Move = (Instant, Option<AttemptId>);

impl Activity {
    /// An attempt is running.
    pub(super) fn running(&mut self, attempt: AttemptId, group: Group, moved: Instant, is_silent: bool) {
        self.note(group.origin, (moved, Some(attempt)));
        *self.silent.entry(group).or_default() += usize::from(is_silent);
    }

    /// An attempt has been answered.
    pub(super) fn answered(&mut self, origin: OriginId, at: Instant) {
        self.note(origin, (at, None));
    }

    fn note(&mut self, origin: OriginId, came: Move) {
        let [last, before] = self.moves.entry(origin).or_default();
        let is_later = |than: &Option<Move>| than.is_none_or(|(then, _)| came.0 > then);
        if is_later(last) {
            *before = last.replace(came);
        } else if is_later(before) {
            *before = Some(came);
        }
    }

    /// Returns what goes on beside an attempt that is silent since then, while so many of its kind were answered.
    pub(super) fn others(
        &self,
        now: Instant,
        attempt: AttemptId,
        group: Group,
        since: Instant,
        answered: usize,
    ) -> Others {
        let half = now.saturating_duration_since(since) / 2;
        let lately = now.checked_sub(half.max(RECENTLY)).unwrap_or(now);
        let mut moves = self.moves.get(&group.origin).into_iter().flatten().flatten();
        let moved = moves.any(|(at, by)| *by != Some(attempt) && *at > lately);
        let silent = self.silent.get(&group).copied().unwrap_or_default();
        if moved || answered >= ANSWERED_TO_SILENT * silent.max(1) { Others::Moving } else { Others::Silent }
    }
}
