//! A summary of all results in three sentences.

use super::glance::Glance;
use super::{NAMED_MAX, Section};
use crate::verdict::{Verdict, times};

/// Returns the measurements and their links, where Laneway is ahead and by how much, and where it isn't.
pub(super) fn sentences(sections: &[Section]) -> [String; 3] {
    let all: Vec<(&Section, &Glance)> = sections
        .iter()
        .flat_map(|section| section.glances.iter().map(move |glance| (section, glance)))
        .collect();
    [measured(sections, &all), won(&all), rest(&all)]
}

fn measured(sections: &[Section], all: &[(&Section, &Glance)]) -> String {
    let mut by_path: Vec<(&str, Vec<&str>)> = Vec::new();
    for section in sections {
        match by_path.iter_mut().find(|(path, _)| *path == section.path) {
            Some((_, what)) => what.push(&section.what),
            None => by_path.push((&section.path, vec![&section.what])),
        }
    }
    let places: Vec<String> =
        by_path.iter().map(|(path, what)| format!("over {path}: {}", listed(what))).collect();
    let runs = all.iter().filter_map(|(_, glance)| glance.ours).map(|spread| spread.runs).min().unwrap_or(0);
    let runs = laneway_quantity::count(runs as u64, "run", "runs");
    format!("Measured beside the usual ways, in turns, the median of at least {runs}, {}.", places.join("; "))
}

fn won(all: &[(&Section, &Glance)]) -> String {
    let counted =
        all.iter().filter(|(_, glance)| glance.verdict().is_some_and(|v| v != Verdict::Smoke)).count();
    let won = of(all, Verdict::Winner);
    let beside_slowest: Vec<_> = all
        .iter()
        .filter_map(|(section, glance)| Some((section, glance, glance.slowest?)))
        .filter_map(|(section, glance, (_, name, found))| Some((found?, name_of(section, glance), name)))
        .filter(|(found, ..)| found.verdict == Verdict::Winner)
        .collect();
    let most = beside_slowest.iter().max_by(|(a, ..), (b, ..)| a.ratio.total_cmp(&b.ratio));
    let beside_slowest = most.map(|(found, what, name)| {
        let won_in = beside_slowest.len();
        format!("; than the slowest in {won_in}, by up to {} ({what}: {name})", times(found.ratio))
    });
    let head = match (won.len(), counted) {
        (_, 0) => {
            return "No comparison with the quickest other way says anything: all are smoke tests."
                .to_owned();
        }
        (0, n) => format!("Laneway is quicker than the quickest other way in none of {n} comparisons"),
        (won_in, n) => {
            format!(
                "Laneway is quicker than the quickest other way in {won_in} of {n} comparisons{}",
                named(&won)
            )
        }
    };
    format!("{head}{}.", beside_slowest.unwrap_or_default())
}

fn rest(all: &[(&Section, &Glance)]) -> String {
    let [tied, behind, smoke] =
        [Verdict::Tie, Verdict::Behind, Verdict::Smoke].map(|verdict| of(all, verdict));
    let failed = all.iter().filter(|(_, glance)| glance.ours.is_none()).count();
    if tied.len() + behind.len() + of(all, Verdict::Winner).len() == 0 {
        return format!(
            "Nothing follows from {}.",
            laneway_quantity::count(smoke.len() as u64, "smoke test", "smoke tests")
        );
    }
    let tied = match tied.len() {
        0 => "none".to_owned(),
        n => format!("{n}{}", named(&tied)),
    };
    // Losses are always named, however many there are.
    let behind = match behind.len() {
        0 => "none".to_owned(),
        n => format!("{n} ({})", behind.join(", ")),
    };
    let mut text = format!("It ties in {tied} and is behind in {behind}");
    match smoke.len() {
        0 => {}
        n => text += &format!("; {n} more, smoke tests of which nothing follows, aren't counted"),
    }
    match failed {
        0 => {}
        n => text += &format!("; in {n} it has no figures"),
    }
    text + "."
}

/// Lists names in brackets, unless there are too many.
fn named(names: &[String]) -> String {
    match names.len() {
        n if n > NAMED_MAX => String::new(),
        _ => format!(" ({})", names.join(", ")),
    }
}

/// Returns the measures with this verdict, each with its ratio.
fn of(all: &[(&Section, &Glance)], verdict: Verdict) -> Vec<String> {
    let with = all.iter().filter(|(_, glance)| glance.verdict() == Some(verdict));
    with.filter_map(|(section, glance)| {
        Some(format!("{} {}", times(glance.found?.ratio), name_of(section, glance)))
    })
    .collect()
}

fn name_of(section: &Section, glance: &Glance) -> String {
    let mut title = section.title.clone();
    // The title is in the middle of a sentence.
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    match glance.short.as_str() {
        "" => title,
        short => format!("{title} ({short})"),
    }
}

fn listed(what: &[&str]) -> String {
    match what {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns::Compared as _;
    use crate::turns::tests::{Figures, row};

    fn section(title: &str, ours: &[f64], other: &[f64]) -> Section {
        let rows = [row("other", "", other), row("slow", "", &[9.0; 3]), row("laneway", "", ours)];
        Section {
            id: "x",
            title: title.to_owned(),
            what: format!("{title} done"),
            programs: Vec::new(),
            path: "a link".to_owned(),
            text: String::new(),
            parts: Vec::new(),
            glances: Glance::of(&rows, &Figures::MEASURES[0], 0.1),
        }
    }

    #[test]
    fn three_sentences_say_what_was_measured_won_tied_lost_and_left_out() {
        let sections = [
            section("Alpha", &[1.0; 3], &[3.0; 3]),
            section("Beta", &[1.0; 3], &[1.0; 3]),
            section("Gamma", &[2.0; 3], &[1.0; 3]),
            section("Delta", &[0.01; 3], &[0.02; 3]),
            section("Epsilon", &[], &[1.0; 3]),
        ];
        let [first, second, third] = sentences(&sections);
        assert_eq!(
            first,
            "Measured beside the usual ways, in turns, the median of at least 3 runs, over a link: Alpha done, Beta done, \
             Gamma done, Delta done and Epsilon done."
        );
        assert_eq!(
            second,
            "Laneway is quicker than the quickest other way in 1 of 3 comparisons (3.00x alpha); than the slowest in 4, by up to \
             900x (delta: slow)."
        );
        assert_eq!(
            third,
            "It ties in 1 (1.00x beta) and is behind in 1 (0.50x gamma); 1 more, smoke tests of which nothing follows, aren't \
             counted; in 1 it has no figures."
        );
    }

    #[test]
    fn where_there_are_many_only_what_is_lost_is_named() {
        let mut sections: Vec<Section> =
            (0..=NAMED_MAX).map(|_| section("Alpha", &[1.0; 3], &[3.0; 3])).collect();
        sections.extend((0..=NAMED_MAX).map(|_| section("Gamma", &[2.0; 3], &[1.0; 3])));
        let [_, second, third] = sentences(&sections);
        assert!(second.contains("in 17 of 34 comparisons;") && !second.contains("3.00x alpha"), "{second}");
        assert!(third.contains("behind in 17 (0.50x gamma, 0.50x gamma"), "{third}");
    }

    #[test]
    fn one_run_of_everything_says_nothing() {
        let [_, second, third] = sentences(&[section("Alpha", &[1.0], &[3.0])]);
        assert!(second.starts_with("No comparison"), "{second}");
        assert_eq!(third, "Nothing follows from 1 smoke test.");
    }
}
