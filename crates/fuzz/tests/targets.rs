//! Runs every target with its seeds, and with random mutations of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use laneway_fuzz::{Mutation, TARGETS, Target, found_folder, of, seeds_folder};

/// The number of mutations that each target gets, unless the environment variable sets another number.
const INPUTS: u64 = 300;
const INPUTS_VARIABLE: &str = "LANEWAY_FUZZ_INPUTS";

#[test]
fn every_target_takes_its_seeds_and_no_seeds_are_nobodys() {
    let folders = std::fs::read_dir(seeds_folder("")).expect("the seeds");
    let folders = folders.map(|entry| entry.expect("a folder").file_name().into_string().expect("a name"));
    let mut folders: Vec<String> = folders.collect();
    folders.sort();
    let mut names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    names.sort_unstable();
    assert_eq!(folders, names);
    for target in TARGETS {
        let seeds = of(target.name).expect("seeds");
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        for (name, seed) in seeds {
            feed(target, &seed, &name);
        }
    }
}

#[test]
fn whatever_is_drawn_from_the_seeds_is_taken() {
    let inputs = std::env::var(INPUTS_VARIABLE).map_or(INPUTS, |inputs| inputs.parse().expect("a number"));
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope
                .spawn(move || TARGETS.iter().skip(half).step_by(2).for_each(|target| draw(*target, inputs)));
        }
    });
}

fn draw(target: Target, inputs: u64) {
    let mut among: Vec<Vec<u8>> = of(target.name).expect("seeds").into_iter().map(|(_, seed)| seed).collect();
    among.push(Vec::new());
    let mut mutation = Mutation::new(1);
    for number in 0..inputs {
        let input = mutation.draw(&among);
        feed(target, &input, &format!("input {number}"));
    }
}

fn feed(target: Target, input: &[u8], name: &str) {
    if catch_unwind(AssertUnwindSafe(|| (target.feed)(input))).is_err() {
        let folder = found_folder(target.name);
        let kept = Path::join(&folder, "panicked");
        std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&kept, input)).expect("it is kept");
        panic!("{} panics over {name}, which is in {}", target.name, kept.display());
    }
}
