//! Runs the methods (rungs) of an experiment in turns, so that a disturbance of the machine affects all of them. If a
//! comparison with Laneway is unclear, both methods run again.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::stage::Left;
use crate::verdict::{Comparison, RUNS_MIN, Spread, Verdict};
use crate::{Error, Failure};

/// The number of runs of each method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repeats {
    /// The minimum number of runs. If it is below [`RUNS_MIN`], unclear comparisons aren't repeated.
    pub least: usize,
    /// The maximum time for which methods with an unclear comparison are repeated, together with Laneway.
    pub until_decided: Duration,
}

impl Repeats {
    /// The maximum number of runs of a method, even if the comparison is still unclear. More runs of a fast method add
    /// no information.
    const MOST: usize = 40;

    /// Returns a fixed number of runs.
    pub fn times(least: usize) -> Self {
        Self { least, until_decided: Duration::ZERO }
    }
}

/// An event that a running experiment reports.
#[derive(Debug)]
pub enum Event<'a> {
    /// The store is reachable and filled, and the first run starts.
    Begun {
        /// The experiment.
        bench: &'static str,
        /// The store's URL, or the link to it.
        store: &'a str,
        /// The measured round-trip time.
        rtt: Duration,
    },
    /// A run ended.
    Ran {
        /// The description of the method in tables.
        rung: &'static str,
        /// The number of the run, from 1.
        run: usize,
        /// The planned number of runs. `run` is larger if an unclear comparison is repeated.
        runs: usize,
        /// The seconds of the run, or its failure. A method that failed doesn't run again.
        result: Result<f64, &'a Failure>,
    },
    /// Objects that couldn't be removed and are left behind.
    Left(Left),
}

/// One of the methods that an experiment compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rung<M> {
    pub(crate) method: M,
    /// The name in JSON.
    pub(crate) name: &'static str,
    /// The description in tables and on the page.
    pub(crate) description: &'static str,
    /// The group. Only methods of the same group are compared. In experiments without groups, it is empty.
    pub(crate) group: &'static str,
}

/// A measure by which methods are compared.
#[derive(Clone, Copy, Debug)]
pub struct Measure<F> {
    /// The name in JSON.
    pub name: &'static str,
    /// The name in tables and on the page, printed after the experiment's name. It is empty if the experiment has only
    /// one measure.
    pub short: &'static str,
    /// The heads of two table columns: the range of the runs, and the comparison with Laneway.
    pub heads: [&'static str; 2],
    /// Returns the measured seconds.
    pub value: fn(&F) -> f64,
}

/// The figures of a run, as far as they are needed to compare methods.
pub trait Compared: Sized + 'static {
    /// The measures. The first one decides which run is the median.
    const MEASURES: &'static [Measure<Self>];

    /// Returns the run's duration in seconds.
    fn lasted_s(&self) -> f64;
}

/// The result of a method.
#[derive(Debug)]
pub struct Row<F> {
    /// The method's name in JSON.
    pub rung: &'static str,
    /// The description in tables and on the page.
    pub description: &'static str,
    /// The group. Rows of the same group are compared.
    pub group: &'static str,
    /// The figures of the runs, or the failure of one run.
    pub result: Result<Runs<F>, Failure>,
}

/// The figures of a method's runs, the fastest first. All runs succeeded.
#[derive(Debug)]
pub struct Runs<F>(Vec<F>);

impl<F: Compared> Runs<F> {
    /// Returns `None` if there are no runs.
    pub(crate) fn new(mut runs: Vec<F>) -> Option<Self> {
        let value = F::MEASURES[0].value;
        runs.sort_by(|a, b| value(a).total_cmp(&value(b)));
        (!runs.is_empty()).then_some(Self(runs))
    }
}

impl<F> Row<F> {
    /// Returns false only if this is Laneway's row and it failed. Rivals may fail, and Laneway may be skipped because
    /// the store lacks a feature.
    pub fn is_fine(&self) -> bool {
        !self.is_ours() || self.result.as_ref().err().is_none_or(Failure::is_absence)
    }

    /// Returns whether this is Laneway's row.
    pub fn is_ours(&self) -> bool {
        is_ours(self.rung)
    }

    /// Returns the figures of the median run, unless the method failed. For an even number of runs, this is the slower
    /// of the two in the middle.
    pub fn figures(&self) -> Option<&F> {
        self.result.as_ref().ok().map(|runs| &runs.0[runs.0.len() / 2])
    }

    /// Returns the spread of one measure over all runs, unless a run failed.
    pub fn spread(&self, value: fn(&F) -> f64) -> Option<Spread> {
        Spread::of(self.result.as_ref().ok()?.0.iter().map(value))
    }
}

impl<F: Compared> Row<F> {
    /// Compares Laneway with this row by a measure. Returns `None` for Laneway's own row, or if one of the two failed.
    pub fn compared(&self, rows: &[Self], value: fn(&F) -> f64) -> Option<Comparison> {
        if self.is_ours() {
            return None;
        }
        let ours = rows.iter().find(|row| row.is_ours() && row.group == self.group)?;
        compare(&ours.result.as_ref().ok()?.0, &self.result.as_ref().ok()?.0, value)
    }

    /// Returns the row with the smallest median of a measure among the rows of a group, except Laneway's.
    pub fn best_other<'a>(rows: &'a [Self], group: &str, value: fn(&F) -> f64) -> Option<&'a Self> {
        let others = rows.iter().filter(|row| row.group == group && !row.is_ours());
        let medians = others.filter_map(|row| Some((row, row.spread(value)?.median)));
        medians.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(row, _)| row)
    }

    /// Returns two cells for each measure: the range of the runs, and the comparison with Laneway.
    pub(crate) fn verdicts(&self, rows: &[Self]) -> Vec<String> {
        let cells = F::MEASURES.iter().map(|measure| {
            let range = self.spread(measure.value).map(|spread| spread.range()).unwrap_or_default();
            [range, self.compared(rows, measure.value).map_or("-".to_owned(), |found| found.text())]
        });
        cells.flatten().collect()
    }
}

/// Returns the heads of the cells from [`Row::verdicts`].
pub(crate) fn verdict_heads<F: Compared>() -> impl Iterator<Item = &'static str> {
    F::MEASURES.iter().flat_map(|measure| measure.heads)
}

impl<F: Compared + Serialize + DeserializeOwned + Default> Row<F> {
    /// Returns the row as JSON. Every method has the same fields, and their values are null if it failed. For each
    /// measure, `compared` has the spread over the runs and the comparison with Laneway.
    pub fn record(&self, rows: &[Self], bench: &'static str) -> serde_json::Value {
        // Figures are structs of numbers, so the conversion to JSON can't fail.
        let value = |figures: &F| serde_json::to_value(figures).unwrap_or_default();
        let mut record = value(self.figures().unwrap_or(&F::default()));
        if let serde_json::Value::Object(fields) = &mut record {
            if self.result.is_err() {
                fields.values_mut().for_each(|field| *field = serde_json::Value::Null);
            }
            fields.insert("kind".to_owned(), "rung".into());
            fields.insert("bench".to_owned(), bench.into());
            fields.insert("rung".to_owned(), self.rung.into());
            fields.insert("group".to_owned(), self.group.into());
            let error = self.result.as_ref().err().map(Failure::reason);
            fields.insert("error".to_owned(), error.into());
            let measures = F::MEASURES.iter().map(|measure| {
                let found = serde_json::json!({
                    "runs": self.spread(measure.value),
                    "laneway": self.compared(rows, measure.value),
                });
                (measure.name.to_owned(), found)
            });
            fields.insert("compared".to_owned(), measures.collect::<serde_json::Map<_, _>>().into());
        }
        record
    }
}

fn is_ours(rung: &str) -> bool {
    rung.contains("laneway")
}

/// Compares Laneway's runs with those of another method by a measure.
fn compare<F: Compared>(ours: &[F], other: &[F], value: fn(&F) -> f64) -> Option<Comparison> {
    let spread = |runs: &[F], value: fn(&F) -> f64| Spread::of(runs.iter().map(value));
    let lasted_s = spread(ours, F::lasted_s)?.median.max(spread(other, F::lasted_s)?.median);
    Some(Comparison::of(&spread(ours, value)?, &spread(other, value)?, lasted_s))
}

/// The runs of a method so far, or the failure of one run.
type Results<F> = Result<Vec<F>, Failure>;

/// Returns for each method whether another run of it may decide an unclear comparison.
fn undecided<M, F: Compared>(rungs: &[Rung<M>], results: &[Results<F>]) -> Vec<bool> {
    let figures = |at: usize| results[at].as_ref().ok();
    let is_unclear = |ours: usize, other: usize| {
        let (Some(ours), Some(other)) = (figures(ours), figures(other)) else { return false };
        F::MEASURES.iter().any(|measure| {
            compare(ours, other, measure.value).is_some_and(|found| found.verdict == Verdict::Unclear)
        })
    };
    let of = |at: usize| {
        let of_group = || (0..rungs.len()).filter(|n| rungs[*n].group == rungs[at].group);
        let Some(ours) = of_group().find(|n| is_ours(rungs[*n].name)) else { return false };
        match at == ours {
            true => of_group().any(|other| !is_ours(rungs[other].name) && is_unclear(ours, other)),
            false => !is_ours(rungs[at].name) && is_unclear(ours, at),
        }
    };
    (0..rungs.len()).map(of).collect()
}

/// Runs all methods in turns. Runs those with an unclear comparison again, until it is decided or the time is up.
///
/// # Errors
/// Returns an error that ends the experiment.
pub(crate) fn turns<M: Copy, F: Compared>(
    rungs: &[Rung<M>],
    repeats: Repeats,
    tell: &mut dyn FnMut(Event<'_>),
    mut one: impl FnMut(M, usize) -> Result<Result<F, Failure>, Error>,
) -> Result<Vec<Row<F>>, Error> {
    let mut results: Vec<Results<F>> = rungs.iter().map(|_| Ok(Vec::new())).collect();
    let mut decided_by = None;
    for run in 1.. {
        let wanted = match run {
            run if run <= repeats.least => vec![true; rungs.len()],
            run if repeats.least < RUNS_MIN || run > Repeats::MOST => break,
            _ if *decided_by.get_or_insert_with(|| Instant::now() + repeats.until_decided)
                <= Instant::now() =>
            {
                break;
            }
            _ => undecided(rungs, &results),
        };
        if !wanted.contains(&true) {
            break;
        }
        for ((rung, results), _) in rungs.iter().zip(&mut results).zip(wanted).filter(|(_, wanted)| *wanted) {
            let Ok(figures) = results else { continue };
            let result = one(rung.method, run)?;
            let outcome = result.as_ref().map(F::MEASURES[0].value);
            tell(Event::Ran { rung: rung.description, run, runs: repeats.least, result: outcome });
            match result {
                Ok(run) => figures.push(run),
                Err(failure) => *results = Err(failure),
            }
        }
    }
    let row = |(rung, results): (&Rung<M>, Results<F>)| {
        let result = results.and_then(|runs| Runs::new(runs).ok_or(Failure::Unfinished));
        Row { rung: rung.name, description: rung.description, group: rung.group, result }
    };
    Ok(rungs.iter().zip(results).map(row).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::verdict::Verdict;

    #[derive(Clone, Serialize, Deserialize, Default, Debug)]
    pub(crate) struct Figures {
        pub(crate) seconds: f64,
        pub(crate) peak_bytes: Option<u64>,
    }

    impl Compared for Figures {
        const MEASURES: &'static [Measure<Self>] = &[Measure {
            name: "seconds",
            short: "",
            heads: ["range s", "Laneway"],
            value: |figures| figures.seconds,
        }];

        fn lasted_s(&self) -> f64 {
            self.seconds
        }
    }

    fn rung(method: u8, name: &'static str) -> Rung<u8> {
        Rung { method, name, description: name, group: "" }
    }

    fn run(seconds: f64) -> Figures {
        Figures { seconds, peak_bytes: None }
    }

    /// Builds a row with these run times.
    pub(crate) fn row(rung: &'static str, group: &'static str, seconds: &[f64]) -> Row<Figures> {
        let runs = Runs::new(seconds.iter().map(|seconds| run(*seconds)).collect());
        Row { rung, description: rung, group, result: runs.ok_or(Failure::Unfinished) }
    }

    #[test]
    fn rungs_take_turns_and_one_that_failed_is_not_run_again() {
        let mut order = Vec::new();
        let mut events = 0;
        let rows: Vec<Row<Figures>> = turns(
            &[rung(0, "a"), rung(1, "b")],
            Repeats::times(3),
            &mut |_| events += 1,
            |method, number| {
                order.push((method, number));
                Ok(match method {
                    1 => Err(Failure::Unfinished),
                    _ => Ok(run([9.0, 1.0, 2.0][number - 1])),
                })
            },
        )
        .unwrap();
        assert_eq!(order, [(0, 1), (1, 1), (0, 2), (0, 3)]);
        assert_eq!(events, 4);
        assert_eq!(rows[0].figures().map(|figures| figures.seconds), Some(2.0));
        assert_eq!(rows[0].spread(|figures| figures.seconds).unwrap().range(), "1.000-9.000");
        assert!(rows[1].result.is_err());
    }

    #[test]
    fn unclear_rungs_are_repeated_with_laneway_until_they_are_decided() {
        let rungs = [rung(0, "equal"), rung(1, "slow"), rung(2, "laneway"), rung(3, "broken")];
        let order = |repeats| {
            let mut order = Vec::new();
            let rows: Vec<Row<Figures>> = turns(&rungs, repeats, &mut |_| {}, |method, number| {
                order.push((method, number));
                Ok(match method {
                    // The first runs vary, and the medians are equal.
                    0 => Ok(run(if number == 2 { 2.0 } else { 1.0 })),
                    1 => Ok(run(9.0)),
                    2 => Ok(run(1.0)),
                    _ => Err(Failure::Unfinished),
                })
            })
            .unwrap();
            let verdict = rows[0].compared(&rows, |figures| figures.seconds).map(|found| found.verdict);
            (order.into_iter().filter(|(_, number)| *number > 3).collect::<Vec<_>>(), verdict)
        };
        let hour = Duration::from_secs(3600);
        let until_nine = (4..=9).flat_map(|number| [(0, number), (2, number)]).collect();
        assert_eq!(order(Repeats { least: 3, until_decided: hour }), (until_nine, Some(Verdict::Tie)));
        assert_eq!(order(Repeats::times(3)), (Vec::new(), Some(Verdict::Unclear)));
        // With one run, nothing is repeated.
        assert_eq!(order(Repeats { least: 1, until_decided: hour }).0, []);
    }

    #[test]
    fn rivals_may_fail_and_laneway_may_not() {
        let fine = |rung, seconds: &[f64]| row(rung, "", seconds).is_fine();
        assert!(fine("a", &[]) && fine("laneway", &[1.0]) && !fine("laneway", &[]));
    }

    #[test]
    fn a_row_is_compared_with_laneways_of_its_group() {
        let rows = [
            row("a", "x", &[2.0; 3]),
            row("x-laneway", "x", &[1.0; 3]),
            row("b", "y", &[2.0; 3]),
            row("y-laneway", "y", &[4.0; 3]),
            row("c", "z", &[1.0; 3]),
            row("z-laneway", "z", &[]),
        ];
        let verdict = |row: &Row<Figures>| Some(row.compared(&rows, |f| f.seconds)?.verdict);
        let found: Vec<_> = rows.iter().map(verdict).collect();
        assert_eq!(found, [Some(Verdict::Win), None, Some(Verdict::Behind), None, None, None]);
        assert_eq!(rows[0].verdicts(&rows), ["2.000-2.000", "win 2.00x"]);
        assert_eq!(rows[1].verdicts(&rows), ["1.000-1.000", "-"]);
    }

    #[test]
    fn a_record_has_the_same_fields_whether_its_rung_failed_or_not() {
        let rows = [row("a", "", &[1.0]), row("b", "", &[])];
        let [good, bad] = [0, 1].map(|n| rows[n].record(&rows, "x"));
        let keys = |value: &serde_json::Value| {
            value.as_object().unwrap().keys().cloned().collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(keys(&good), keys(&bad));
        assert_eq!(keys(&good).len(), 8);
        assert_eq!(
            (&bad["seconds"], &bad["error"]),
            (&serde_json::Value::Null, &"the job ended without a summary".into())
        );
        assert_eq!((&good["seconds"], &good["error"]), (&1.0.into(), &serde_json::Value::Null));
        assert_eq!(good["compared"]["seconds"]["runs"]["most"], 1.0);
        assert_eq!(keys(&good["compared"]["seconds"]), keys(&bad["compared"]["seconds"]));
    }
}
