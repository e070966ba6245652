//! Files that fail at each of the calls that a download or an upload makes: the error names the file and the cause, nothing is damaged, and
//! the same command succeeds once the failure has passed.

use std::io;

use laneway_testkit::{Blow, SystemCalls, Wire};

use crate::scene::Scene;
use crate::steps::{Step, steps};
use crate::work;

const EIO: i32 = 5;
const EMFILE: i32 = 24;
const ENOLCK: i32 = 37;
const ENOSPC: i32 = 28;
const EDQUOT: i32 = 122;

/// How calls of a name fail.
fn blows(name: &str) -> &'static [Blow] {
    const FULL: &[Blow] = &[Blow::Error(ENOSPC), Blow::Error(EIO), Blow::Error(EDQUOT)];
    match name {
        "create" | "mkdir" => {
            &[Blow::Error(EMFILE), Blow::Error(ENOSPC), Blow::Error(EIO), Blow::Error(EDQUOT)]
        }
        "open" => &[Blow::Error(EMFILE), Blow::Error(EIO)],
        "write" => &[Blow::Error(ENOSPC), Blow::Shorten, Blow::Error(EIO), Blow::Error(EDQUOT)],
        "read" => &[Blow::Shorten, Blow::Error(EIO)],
        "lock" => &[Blow::Error(ENOLCK), Blow::Error(EIO)],
        "truncate" | "rename" | "flush" | "flush-names" => FULL,
        _ => &[Blow::Error(EIO)],
    }
}

/// Has each call below the folder of the files and that of the journals fail.
fn failing_at_every_call(scene: &Scene, file: &str) {
    if !SystemCalls::can_be_struck() {
        return;
    }
    let is_all = std::env::var_os("LANEWAY_SOAK_FAILINGS").is_some();
    let below = || SystemCalls::below([scene.folder(), scene.journals()]);
    scene.reset();
    let (run, calls) = below().run(&scene.program(), &scene.arguments);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    let mut failed = 0;
    for (n, step) in steps(&calls).into_iter().enumerate() {
        let blows = blows(&step.name);
        let (from, to) = if is_all { (0, blows.len()) } else { (n % blows.len(), n % blows.len() + 1) };
        for blow in &blows[from..to] {
            let calls = below().strike_named(&step.name, step.nth, *blow);
            failed += usize::from(!succeeds(scene, file, &calls, &step, *blow));
        }
    }
    assert!(failed >= 4, "only {failed} calls had to succeed");
}

/// Whether the command succeeds though a call fails. Either way it leaves what it has to, and the next one succeeds.
fn succeeds(scene: &Scene, file: &str, calls: &SystemCalls, step: &Step, blow: Blow) -> bool {
    let when = format!("{:?}, {} {} with {blow:?}", scene.arguments, step.name, step.nth);
    scene.reset();
    let (run, made) = calls.run(&scene.program(), &scene.arguments);
    match run.status {
        // Without a journal, or without having looked, it goes on.
        Some(0) => scene.assert_changed(&when),
        Some(1) => {
            let Blow::Error(number) = blow else { panic!("{when}: {}", run.stderr) };
            let cause = io::Error::from_raw_os_error(number).to_string();
            let cause = cause.split(" (os error").next().unwrap_or_default();
            let line = run.stderr.lines().find(|line| line.starts_with("laneway: ")).unwrap_or_default();
            assert!(line.contains(cause) && line.contains(file), "{when}: {}", run.stderr);
            // A directory that can't be flushed holds the new file by then.
            match made.iter().any(|call| call.name == "rename" && call.returned == Some(0)) {
                true => scene.assert_changed(&when),
                false => scene.assert_old_or_new(&when),
            }
        }
        status => panic!("{when}: {status:?} {}", run.stderr),
    }
    // What has come before a disk is full stays for the next run, with its journal.
    let is_full = matches!(blow, Blow::Error(ENOSPC | EDQUOT));
    if step.name != "unlink" && !is_full {
        assert!(scene.temporary().is_empty(), "{when}: {:?} stay", scene.temporary());
    }
    scene.finish(&when);
    run.status == Some(0)
}

#[test]
fn a_failed_file_of_a_download_is_named_and_the_old_one_stays() {
    failing_at_every_call(&work::large_download(Wire::Plain, "s3", &["--durable"]), "out/large");
}

#[test]
fn a_tree_whose_files_fail_names_file_and_cause_and_leaves_none() {
    failing_at_every_call(&work::small_download(&["--durable"]), "out/tree");
}

#[test]
fn an_upload_names_a_failed_file_and_works_without_a_journal() {
    failing_at_every_call(&work::large_upload(Wire::Plain, "s3"), "large");
    failing_at_every_call(&work::session(), "large");
}

/// As a full disk does it: from one call on nothing more can be written.
#[test]
fn a_disk_that_is_full_from_any_write_on_leaves_the_old_file_and_is_named() {
    if !SystemCalls::can_be_struck() {
        return;
    }
    const GROWING: &[&str] = &["create", "mkdir", "truncate", "write"];
    for scene in [work::large_download(Wire::TlsH2, "gs", &[]), work::small_download(&[])] {
        scene.reset();
        let below = || SystemCalls::below([scene.folder()]);
        let (run, calls) = below().run(&scene.program(), &scene.arguments);
        assert_eq!(run.status, Some(0), "{}", run.stderr);
        let growing = calls.iter().filter(|call| GROWING.contains(&&*call.name)).count() as u64;
        // Behind the first few all are alike.
        for nth in (1..=growing).filter(|nth| *nth <= 8 || nth.is_multiple_of(25)) {
            let when = format!("{:?} full from write {nth} on", scene.arguments);
            scene.reset();
            let full = below().strike_from(GROWING, nth, u64::from(u32::MAX), Blow::Error(ENOSPC));
            let run = full.run(&scene.program(), &scene.arguments).0;
            match run.status {
                // The last writes are the journal's, which may be lacking.
                Some(0) => scene.assert_changed(&when),
                _ => {
                    assert!(
                        run.status == Some(1) && run.stderr.contains("No space left"),
                        "{when}: {}",
                        run.stderr
                    );
                    scene.assert_old(&when);
                }
            }
            scene.finish(&when);
        }
    }
}
