//! File system calls that fail, one at a time, during a download or an upload. The error names the file and the cause, and nothing is
//! damaged. The same command succeeds after the failure has passed.

use std::{fs, io};

use laneway_server::Faults;
use laneway_testkit::{Blow, Changes, Program, Run, Running, SystemCalls, Wire};

use crate::scene::{self, KILLED, LANEWAY, Scene};
use crate::steps::{Step, steps};

const EIO: i32 = 5;
const EMFILE: i32 = 24;
const ENOLCK: i32 = 37;
const ENOSPC: i32 = 28;
const EDQUOT: i32 = 122;

/// Returns the ways in which a call of that name can fail.
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

/// Lets each call on the folder of files and on the folder of journals fail, one call in each run.
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
    assert!(failed >= 4, "only {failed} failing calls stopped the command");
}

/// Runs the command while one call fails, and returns true if the command succeeds. In either case the command must leave a correct state,
/// and the next run must succeed.
fn succeeds(scene: &Scene, file: &str, calls: &SystemCalls, step: &Step, blow: Blow) -> bool {
    let when = format!("{:?}, {} {} with {blow:?}", scene.arguments, step.name, step.nth);
    scene.reset();
    let (run, made) = calls.run(&scene.program(), &scene.arguments);
    match run.status {
        // The command goes on without a journal, or without the information that the call would have given.
        Some(0) => scene.assert_changed(&when),
        Some(1) => {
            let Blow::Error(number) = blow else { panic!("{when}: {}", run.stderr) };
            let cause = io::Error::from_raw_os_error(number).to_string();
            let cause = cause.split(" (os error").next().unwrap_or_default();
            let line = run.stderr.lines().find(|line| line.starts_with("laneway: ")).unwrap_or_default();
            assert!(line.contains(cause) && line.contains(file), "{when}: {}", run.stderr);
            // If flushing the directory fails, the new file is already in its place.
            match made.iter().any(|call| call.name == "rename" && call.returned == Some(0)) {
                true => scene.assert_changed(&when),
                false => scene.assert_given_up(&when),
            }
        }
        status => panic!("{when}: {status:?} {}", run.stderr),
    }
    // After a full disk, the partial file and its journal stay for the next run.
    let is_full = matches!(blow, Blow::Error(ENOSPC | EDQUOT));
    if step.name != "unlink" && !is_full {
        assert!(scene.temporary().is_empty(), "{when}: {:?} stay", scene.temporary());
    }
    scene.finish(&when);
    run.status == Some(0)
}

#[test]
fn a_failed_file_of_a_download_is_named_and_the_old_one_stays() {
    failing_at_every_call(&scene::large_download(Wire::Plain, "s3", &["--durable"]), "out/large");
}

#[test]
fn a_tree_whose_files_fail_names_file_and_cause_and_leaves_none() {
    failing_at_every_call(&scene::small_download(&["--durable"]), "out/tree");
}

#[test]
fn an_upload_names_a_failed_file_and_works_without_a_journal() {
    failing_at_every_call(&scene::large_upload(Wire::Plain, "s3"), "large");
    failing_at_every_call(&scene::session(), "large");
    failing_at_every_call(&scene::large_upload(Wire::Plain, "az"), "large");
}

/// A full disk: from one write on, all writes fail.
#[test]
fn a_disk_that_is_full_from_any_write_on_leaves_the_old_file_and_is_named() {
    if !SystemCalls::can_be_struck() {
        return;
    }
    const GROWING: &[&str] = &["create", "mkdir", "truncate", "write"];
    for scene in [scene::large_download(Wire::TlsH2, "gs", &[]), scene::small_download(&[])] {
        scene.reset();
        let below = || SystemCalls::below([scene.folder()]);
        let (run, calls) = below().run(&scene.program(), &scene.arguments);
        assert_eq!(run.status, Some(0), "{}", run.stderr);
        let growing = calls.iter().filter(|call| GROWING.contains(&&*call.name)).count() as u64;
        // After the first eight writes, all writes are alike, so test only each 25th.
        for nth in (1..=growing).filter(|nth| *nth <= 8 || nth.is_multiple_of(25)) {
            let when = format!("{:?} full from write {nth} on", scene.arguments);
            scene.reset();
            let full = below().strike_from(GROWING, nth, u64::from(u32::MAX), Blow::Error(ENOSPC));
            let run = full.run(&scene.program(), &scene.arguments).0;
            match run.status {
                // The last writes are to the journal. The download succeeds without them.
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

/// The exit status if the loader can't load the program because memory is missing. If memory is missing later, SIGABRT ends the
/// program.
const NOT_LOADED: Option<i32> = Some(127);

/// Runs the command with a limit, in the syntax of the shell's `ulimit`.
fn run_limited(scene: &Scene, limit: &str) -> Run {
    limited(&scene.endpoint.program("/bin/sh"), limit, &scene.arguments)
}

fn limited(shell: &Program, limit: &str, arguments: &[impl AsRef<str>]) -> Run {
    let script = format!("ulimit -c 0; ulimit {limit}; exec \"$0\" \"$@\"");
    let words = ["-c", &script, LANEWAY];
    shell.run(words.into_iter().chain(arguments.iter().map(AsRef::as_ref)))
}

#[test]
fn where_there_are_few_descriptors_it_works_or_says_what_is_lacking() {
    let scenes = [
        scene::large_download(Wire::Plain, "s3", &[]),
        scene::sync_down(Wire::TlsH2, "gs"),
        scene::large_upload(Wire::TlsH2, "gs"),
    ];
    let mut succeeded = 0;
    for scene in &scenes {
        for descriptors in [5, 6, 7, 8, 9, 10, 11, 14, 18, 20, 22, 24, 28, 36, 64] {
            let when = format!("{:?} with {descriptors} descriptors", scene.arguments);
            scene.reset();
            let run = run_limited(scene, &format!("-n {descriptors}"));
            match run.status {
                Some(0) => {
                    succeeded += 1;
                    scene.assert_new(&when);
                }
                Some(1) => {
                    assert!(run.stderr.contains("Too many open files"), "{when}: {}", run.stderr);
                    scene.assert_old_or_new(&when);
                }
                status => panic!("{when}: {status:?} {}", run.stderr),
            }
            scene.finish(&when);
        }
    }
    assert!(succeeded >= scenes.len(), "nothing works with 64 descriptors");
}

#[test]
fn a_store_that_is_to_serve_with_few_descriptors_says_what_is_lacking() {
    let home = tempfile::tempdir().expect("a folder");
    let shell = Program::new("/bin/sh", home.path());
    for descriptors in 5..=11 {
        let run =
            limited(&shell, &format!("-n {descriptors}"), &["serve", "--listen", "127.0.0.1:0"]).exits(1);
        assert!(run.stderr.contains("Too many open files"), "{descriptors}: {}", run.stderr);
    }
}

#[test]
fn with_little_memory_it_fails_or_aborts_without_damage() {
    let scenes = [scene::large_download(Wire::TlsH2, "gs", &[]), scene::large_upload(Wire::Plain, "s3")];
    for scene in &scenes {
        for mib in [1024, 256, 160, 112, 96, 82, 80, 72] {
            let when = format!("{:?} with {mib} MiB", scene.arguments);
            scene.reset();
            let run = run_limited(scene, &format!("-v {}", mib << 10));
            match run.status {
                Some(0) => scene.assert_new(&when),
                KILLED | NOT_LOADED | Some(1) => {
                    scene.assert_old_or_new(&when);
                }
                status => panic!("{when}: {status:?} {}", run.stderr),
            }
            scene.finish(&when);
        }
    }
}

#[test]
fn a_folder_that_is_removed_under_a_download_is_an_error_that_names_it() {
    for (scene, folder, file) in [
        (scene::large_download(Wire::Plain, "s3", &[]), "out", "out/large"),
        (scene::small_download(&[]), "out/tree/a", "small"),
    ] {
        let server = scene.endpoint.server();
        scene.reset();
        let path = scene.folder().join(folder);
        fs::create_dir_all(&path).expect("made");
        server.set_faults(Faults::parse(["get stall@1KiB"]).expect("a rule"));
        let changes = Changes::of(&path);
        let running = scene.program().start(&scene.arguments);
        // The large download creates its file at once. The small download creates nothing until all bytes have arrived.
        if folder == "out" {
            changes.wait_until(|| !scene.temporary().is_empty());
        }
        assert!(server.wait_until(Running::TIME_MAX, |counters| {
            counters.requests_by_verb.get("get").is_some_and(|count| *count > 0)
        }));
        fs::remove_dir_all(&path).expect("removed");
        server.set_faults(Faults::default());
        let run = running.end();
        match run.status {
            // The program had not opened the folder yet, and creates it again.
            Some(0) => scene.assert_new(folder),
            _ => {
                let run = run.exits(1).complains(&[file]);
                let causes = ["was removed", "No such file or directory"];
                assert!(causes.into_iter().any(|cause| run.stderr.contains(cause)), "{}", run.stderr);
                assert!(!path.exists(), "the failed command has created the folder again");
            }
        }
        scene.finish(folder);
    }
}
