//! What an actor leaves.

use std::collections::BTreeMap;
use std::fmt;

use laneway_server::Objects;

use super::{BUCKET, stored};
use crate::deck::Op;
use crate::model::Model;

/// How often something was done.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Count {
    pub(super) done: u64,
    pub(super) failed: u64,
    /// There was nothing to do it with.
    pub(super) idle: u64,
}

/// What an actor leaves.
pub(crate) struct Ended {
    pub(super) name: String,
    pub(super) own: String,
    pub(super) model: Model,
    pub(super) counts: BTreeMap<Op, Count>,
}

impl Ended {
    /// Panics unless the store holds what it may hold, and more has succeeded than failed.
    pub(crate) fn check(&self, store: &Objects) {
        let keys = store.keys(BUCKET).into_iter().filter(|key| key.starts_with(&self.own));
        let held = keys.map(|key| (key.clone(), stored(store, &key).expect("it is there"))).collect();
        self.model.allows_all(&self.name, &self.own, &held);
        let sum = |of: fn(&Count) -> u64| self.counts.values().map(of).sum::<u64>();
        assert!(sum(|count| count.done) > sum(|count| count.failed), "{self}");
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.name)?;
        for (op, Count { done, failed, idle }) in &self.counts {
            write!(f, " {op:?} {done}")?;
            if *failed > 0 {
                write!(f, " (failed {failed})")?;
            }
            if *idle > 0 {
                write!(f, " (idle {idle})")?;
            }
        }
        Ok(())
    }
}
