//! Rungs that take turns, so that what disturbs the machine for a while disturbs all of them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

use crate::latency::median_by;
use crate::stage::Left;
use crate::trace::Trace;
use crate::{Error, Failure};

/// What happens while an experiment is made.
#[derive(Debug)]
pub enum Event<'a> {
    /// The store is reached and filled; the rungs begin.
    Begun {
        /// Which experiment.
        bench: &'static str,
        /// The store's URL.
        store: &'a str,
        /// The measured round-trip time.
        rtt: Duration,
    },
    /// A run ended.
    Ran {
        /// The rung, for people.
        rung: &'static str,
        /// Which of its runs, from 1.
        run: usize,
        /// How many runs there are.
        runs: usize,
        /// Its seconds, or why it failed. A rung that failed isn't run again.
        result: Result<f64, &'a Failure>,
    },
    /// What was written can't be removed and is left behind.
    Left(Left),
}

/// One method of doing an experiment's work, which the others are compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rung<M> {
    pub(crate) method: M,
    /// For programs.
    pub(crate) name: &'static str,
    /// For people.
    pub(crate) description: &'static str,
}

/// A rung's result.
#[derive(Debug)]
pub struct Row<F> {
    /// The rung's name for programs.
    pub rung: &'static str,
    /// What it does, for people.
    pub description: &'static str,
    /// Its median run, or why one of its runs failed.
    pub result: Result<Run<F>, Failure>,
}

/// A run that ended well.
#[derive(Debug)]
pub struct Run<F> {
    /// What it took.
    pub figures: F,
    /// What it did on its connections.
    pub trace: Trace,
}

impl<F> Row<F> {
    /// Whether the rung has figures, or was skipped because the store lacks what it needs.
    pub fn is_fine(&self) -> bool {
        self.result.as_ref().err().is_none_or(Failure::is_absence)
    }

    /// The figures, if the rung didn't fail.
    pub fn figures(&self) -> Option<&F> {
        self.result.as_ref().ok().map(|run| &run.figures)
    }

    /// The trace, if the rung didn't fail.
    pub fn trace(&self) -> Option<&Trace> {
        self.result.as_ref().ok().map(|run| &run.trace)
    }
}

impl<F: Serialize + DeserializeOwned + Default> Row<F> {
    /// The row for programs: the same fields for every rung, those of a failed one empty.
    pub fn record(&self, bench: &'static str) -> serde_json::Value {
        // Figures are structs of numbers, which can't fail to become JSON.
        let value = |figures: &F| serde_json::to_value(figures).unwrap_or_default();
        let mut record = value(self.figures().unwrap_or(&F::default()));
        if let serde_json::Value::Object(fields) = &mut record {
            if self.result.is_err() {
                fields.values_mut().for_each(|field| *field = serde_json::Value::Null);
            }
            fields.insert("kind".to_owned(), "rung".into());
            fields.insert("bench".to_owned(), bench.into());
            fields.insert("rung".to_owned(), self.rung.into());
            let error = self.result.as_ref().err().map(Failure::reason);
            fields.insert("error".to_owned(), error.into());
        }
        record
    }
}

/// Runs every rung `runs` times, in turns. `time` is what the median is taken of.
///
/// # Errors
/// What keeps the experiment from going on.
pub(crate) fn turns<M: Copy, F>(
    rungs: &[Rung<M>],
    runs: usize,
    tell: &mut dyn FnMut(Event<'_>),
    mut one: impl FnMut(M, usize) -> Result<Result<Run<F>, Failure>, Error>,
    time: impl Fn(&F) -> f64,
) -> Result<Vec<Row<F>>, Error> {
    let mut results: Vec<Vec<Result<Run<F>, Failure>>> = rungs.iter().map(|_| Vec::new()).collect();
    for run in 1..=runs {
        for (rung, results) in rungs.iter().zip(&mut results) {
            if results.iter().any(Result::is_err) {
                continue;
            }
            let result = one(rung.method, run)?;
            let outcome = result.as_ref().map(|run| time(&run.figures));
            tell(Event::Ran { rung: rung.description, run, runs, result: outcome });
            results.push(result);
        }
    }
    let row = |(rung, results): (&Rung<M>, Vec<Result<Run<F>, Failure>>)| {
        let results = results.into_iter().collect::<Result<Vec<_>, _>>();
        let median =
            results.and_then(|runs| median_by(runs, |run| time(&run.figures)).ok_or(Failure::Unfinished));
        Row { rung: rung.name, description: rung.description, result: median }
    };
    Ok(rungs.iter().zip(results).map(row).collect())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Serialize, Deserialize, Default)]
    struct Figures {
        seconds: f64,
        peak_bytes: Option<u64>,
    }

    fn rung(method: u8, name: &'static str) -> Rung<u8> {
        Rung { method, name, description: name }
    }

    #[test]
    fn rungs_take_turns_and_one_that_failed_is_not_run_again() {
        let mut order = Vec::new();
        let mut events = 0;
        let rows = turns(
            &[rung(0, "a"), rung(1, "b")],
            3,
            &mut |_| events += 1,
            |method, run| {
                order.push((method, run));
                Ok(match method {
                    1 => Err(Failure::Unfinished),
                    _ => {
                        let figures = Figures { seconds: [9.0, 1.0, 2.0][run - 1], peak_bytes: None };
                        Ok(Run { figures, trace: Trace::default() })
                    }
                })
            },
            |figures| figures.seconds,
        )
        .unwrap();
        assert_eq!(order, [(0, 1), (1, 1), (0, 2), (0, 3)]);
        assert_eq!(events, 4);
        assert_eq!(rows[0].figures().map(|figures| figures.seconds), Some(2.0));
        assert!(rows[1].result.is_err());
    }

    #[test]
    fn a_record_has_the_same_fields_whether_its_rung_failed_or_not() {
        let row = |result| Row::<Figures> { rung: "a", description: "A", result };
        let good = row(Ok(Run { figures: Figures::default(), trace: Trace::default() })).record("x");
        let bad = row(Err(Failure::Absent("no such thing".to_owned()))).record("x");
        let keys = |value: &serde_json::Value| {
            value.as_object().unwrap().keys().cloned().collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(keys(&good), keys(&bad));
        assert_eq!(keys(&good).len(), 6);
        assert_eq!((&bad["seconds"], &bad["error"]), (&serde_json::Value::Null, &"no such thing".into()));
        assert_eq!((&good["seconds"], &good["error"]), (&0.0.into(), &serde_json::Value::Null));
    }
}
