//! Power cuts during a download with `--durable`, and right after it.

use std::fs;

use laneway_testkit::{Blow, Loss, SystemCalls, Wire, cut_power};
use tempfile::TempDir;

use crate::scene::{self, KILLED, Scene};
use crate::steps::{Step, steps};

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
