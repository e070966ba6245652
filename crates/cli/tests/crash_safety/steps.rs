//! `kill -9` at every file system step of a download and every journal step of an upload, and at random system
//! calls on files and sockets. Power cuts during a download with `--durable`, and right after it.

use std::collections::BTreeMap;
use std::fs;

use laneway_testkit::{Blow, Call, Loss, SystemCalls, Wire, cut_power, random_bytes};
use tempfile::TempDir;

use crate::scene::{self, KILLED, Scene};

/// The maximum number of similar calls to hit, spread evenly over the run.
const ALIKE_MAX: u64 = 5;

/// A system call of a run. `nth` counts the calls with this name, from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) nth: u64,
}

/// Returns the calls of a run. Of the frequent calls (`read`, `write`, `seek`, and `look` for `stat` and similar calls), it returns
/// only a sample.
pub(crate) fn steps(calls: &[Call]) -> Vec<Step> {
    let mut counts = BTreeMap::<&str, u64>::new();
    for call in calls {
        *counts.entry(&call.name).or_default() += 1;
    }
    let mut steps = Vec::new();
    for (name, count) in counts {
        let few = if matches!(name, "read" | "write" | "look" | "seek") { ALIKE_MAX } else { u64::MAX };
        let struck = count.min(few);
        let nth = |n| 1 + n * (count - 1) / (struck - 1).max(1);
        steps.extend((0..struck).map(|n| Step { name: name.to_owned(), nth: nth(n) }));
    }
    steps
}

/// Kills the command before each of its calls on the folder of files and on the folder of journals. The calls must include these
/// `names`.
fn killed_at_every_step(scene: &Scene, names: &[&str]) {
    killed_at(scene, names, |_| true);
}

/// Kills the command before each step that `chosen` accepts.
fn killed_at(scene: &Scene, names: &[&str], chosen: impl Fn(&Step) -> bool) {
    if !SystemCalls::can_be_struck() {
        return;
    }
    let below = || SystemCalls::below([scene.folder(), scene.journals()]);
    scene.reset();
    let (run, calls) = below().run(&scene.program(), &scene.arguments);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    scene.assert_new("unkilled");
    let steps = steps(&calls);
    for name in names {
        assert!(steps.iter().any(|step| step.name == *name), "no {name} among {steps:?}");
    }
    for step in steps.into_iter().filter(chosen) {
        let when = format!("{:?} killed before {} {}", scene.arguments, step.name, step.nth);
        scene.reset();
        let strike = below().strike_named(&step.name, step.nth, Blow::Kill);
        let (run, _) = strike.run(&scene.program(), &scene.arguments);
        assert!(matches!(run.status, KILLED | Some(0)), "{when}: {:?} {}", run.status, run.stderr);
        scene.assert_old_or_new(&when);
        scene.finish(&when);
    }
}

#[test]
fn a_large_download_killed_at_any_step_leaves_the_old_file_or_the_new_one() {
    let steps = ["create", "lock", "truncate", "write", "rename", "unlink", "flush", "flush-names"];
    killed_at_every_step(&scene::large_download(Wire::Plain, "s3", &["--durable"]), &steps);
}

#[test]
fn a_small_download_killed_at_any_step_leaves_no_file_or_the_new_one() {
    killed_at_every_step(&scene::small_download(&[]), &["create", "mkdir", "write", "rename"]);
}

/// A later sync skips a file that has arrived, and removes nothing beside it. So an interrupted run must leave nothing there.
#[test]
fn a_large_file_of_a_sync_killed_around_its_rename_leaves_nothing_behind() {
    let last = ["unlink", "rename", "flush", "flush-names"];
    killed_at(&scene::large_sync(), &last, |step| last.contains(&&*step.name));
}

#[test]
fn an_upload_killed_at_any_step_ends_exactly_right() {
    killed_at_every_step(
        &scene::large_upload(Wire::Plain, "s3"),
        &["create", "lock", "truncate", "write", "unlink"],
    );
    killed_at_every_step(&scene::session(), &["create", "lock", "truncate", "write", "unlink"]);
    killed_at_every_step(
        &scene::large_upload(Wire::Plain, "az"),
        &["create", "lock", "truncate", "write", "unlink"],
    );
}

#[test]
fn steps_are_spread_over_calls_that_are_alike() {
    let call = |name: &str, number| Call {
        name: name.to_owned(),
        returned: Some(0),
        path: "/x".into(),
        to: "".into(),
        number,
    };
    let calls: Vec<_> = (1..=101).map(|n| call("write", n)).chain([call("rename", 102)]).collect();
    let nths = |name: &str| -> Vec<u64> {
        steps(&calls).into_iter().filter(|step| step.name == name).map(|step| step.nth).collect()
    };
    assert_eq!(nths("rename"), [1]);
    assert_eq!(nths("write"), [1, 26, 51, 76, 101]);
}

/// The number of kills for each kind of work. `LANEWAY_SOAK_KILLS` overrides it.
const KILLS: usize = 5;

fn kills() -> usize {
    std::env::var("LANEWAY_SOAK_KILLS").map_or(KILLS, |kills| kills.parse().expect("a number"))
}

/// Kills the command at moments drawn from `seed`. Each try begins from the initial state, and the run after the kill must
/// end exactly right.
fn killed_at_random_moments(scene: &Scene, seed: u64) {
    if !SystemCalls::can_be_struck() {
        return;
    }
    scene.reset();
    let (run, calls) = SystemCalls::all().count(&scene.program(), &scene.arguments);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    scene.assert_new("unkilled");
    let (draws, mut killed) = (random_bytes(seed, 8 * kills()), 0);
    for draw in draws.chunks_exact(8) {
        // On a busy machine, the number of reads differs from run to run, so calls in the second half may never happen.
        let moment = 1 + u64::from_le_bytes(draw.try_into().expect("eight")) % (calls / 2);
        let when = format!("{:?} killed at call {moment} of {calls}", scene.arguments);
        scene.reset();
        let strike = SystemCalls::all().strike(moment, Blow::Kill);
        let (run, _) = strike.run(&scene.program(), &scene.arguments);
        // If a run needs fewer calls than the first run, it may end before the kill.
        assert!(matches!(run.status, KILLED | Some(0)), "{when}: {:?} {}", run.status, run.stderr);
        killed += usize::from(run.status == KILLED);
        scene.assert_old_or_new(&when);
        scene.finish(&when);
    }
    assert!(2 * killed >= kills(), "only {killed} kills hit");
}

#[test]
fn a_download_killed_at_random_moments_is_exactly_right_in_the_end() {
    killed_at_random_moments(&scene::large_download(Wire::Plain, "s3", &[]), 11);
    killed_at_random_moments(&scene::large_download(Wire::TlsH2, "gs", &[]), 12);
    killed_at_random_moments(&scene::large_download(Wire::TlsH1, "az", &[]), 13);
}

#[test]
fn an_upload_killed_at_random_moments_is_exactly_right_in_the_end() {
    killed_at_random_moments(&scene::large_upload(Wire::Plain, "s3"), 21);
    killed_at_random_moments(&scene::large_upload(Wire::TlsH2, "gs"), 22);
    killed_at_random_moments(&scene::session(), 23);
    killed_at_random_moments(&scene::large_upload(Wire::TlsH1, "az"), 24);
}

#[test]
fn a_sync_killed_at_random_moments_is_exactly_right_in_the_end() {
    killed_at_random_moments(&scene::sync_down(Wire::TlsH2, "gs"), 31);
    killed_at_random_moments(&scene::sync_up("s3"), 32);
    killed_at_random_moments(&scene::sync_down(Wire::TlsH1, "az"), 33);
    killed_at_random_moments(&scene::sync_up("az"), 34);
}

#[test]
fn commands_killed_at_random_moments_are_exactly_right_in_the_end() {
    killed_at_random_moments(&scene::commands(), 41);
}

/// Cuts the power before each step of a download, and after its end.
fn cut_at_every_step(scene: &Scene) {
    if !SystemCalls::can_be_struck() {
        return;
    }
    scene.reset();
    let (run, calls) = SystemCalls::below([scene.folder()]).run(&scene.program(), &scene.arguments);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let moves = |step: &Step| !matches!(&*step.name, "look" | "lock" | "open" | "read");
    let steps = steps(&calls).into_iter().filter(moves);
    for (n, step) in steps.enumerate() {
        // Writes between two flushes are alike, so each tries only one kind of loss.
        let losses = if step.name == "write" { &Loss::ALL[n % 4..=n % 4] } else { &Loss::ALL[..] };
        for loss in losses {
            cut(scene, Some(&step), *loss);
        }
    }
    for loss in Loss::ALL {
        cut(scene, None, loss);
    }
}

/// Cuts the power before a step, or after the end, and starts the machine again.
fn cut(scene: &Scene, step: Option<&Step>, loss: Loss) {
    let when = format!("{:?} cut before {step:?} with the loss of {loss:?}", scene.arguments);
    scene.reset();
    // A folder that the program doesn't look into, on the same file system.
    let own = TempDir::new_in(scene.folder().parent().expect("a folder")).expect("a folder");
    let (kept, boot) = (own.path().join("kept"), own.path().join("boot"));
    fs::create_dir(&kept).expect("made");
    let calls = |boots: &str| {
        fs::write(&boot, boots).expect("written");
        SystemCalls::below([scene.folder()]).boot(&boot)
    };
    let mut first = calls("first").keeping(&kept);
    if let Some(step) = step {
        first = first.strike_named(&step.name, step.nth, Blow::Kill);
    }
    let (run, made) = first.run(&scene.program(), &scene.arguments);
    assert!(matches!(run.status, KILLED | Some(0)), "{when}: {:?} {}", run.status, run.stderr);
    cut_power(&made, &kept, loss);
    match run.status {
        KILLED => scene.assert_old_or_new(&when),
        _ => scene.assert_changed(&when),
    }
    let (run, _) = calls("second").run(&scene.program(), &scene.arguments);
    assert_eq!(run.status, Some(0), "{when}, the next run: {}", run.stderr);
    scene.assert_changed(&when);
    // If the power cut lost a partial file's name, the file is gone. Otherwise the next run has found and reused the file.
    scene.assert_tidy(&when);
}

#[test]
fn a_durable_large_download_is_old_or_complete_after_the_power_was_cut() {
    cut_at_every_step(&scene::large_download(Wire::Plain, "s3", &["--durable"]));
}

#[test]
fn a_durable_small_download_is_absent_or_complete_after_the_power_was_cut() {
    cut_at_every_step(&scene::small_download(&["--durable"]));
}

/// Checks that a simulated power cut does discard unflushed data.
#[test]
fn a_download_that_is_not_durable_may_be_lost_after_it_was_reported() {
    if !SystemCalls::can_be_struck() {
        return;
    }
    for loss in [Loss::Names, Loss::Bytes] {
        let scene = scene::small_download(&[]);
        scene.reset();
        let kept = TempDir::new_in(scene.folder().parent().expect("a folder")).expect("a folder");
        let calls = SystemCalls::below([scene.folder()]).keeping(kept.path());
        let (run, made) = calls.run(&scene.program(), &scene.arguments);
        assert_eq!(run.status, Some(0), "{}", run.stderr);
        scene.assert_new("reported");
        cut_power(&made, kept.path(), loss);
        let file = fs::read(scene.folder().join("out/tree/a/b/small")).ok();
        match loss {
            Loss::Names => assert_eq!(file, None),
            _ => assert_eq!(file, Some(vec![0; 5000])),
        }
    }
}
