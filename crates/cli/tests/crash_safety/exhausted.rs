//! What the machine has too little of: descriptors, memory, and the folder itself.

use std::fs;

use laneway_server::Faults;
use laneway_testkit::{Changes, Program, Run, Running, Wire};

use crate::scene::{KILLED, LANEWAY, Scene};
use crate::work;

/// How the program ends whose memory can't be had: SIGABRT ends it, or the loader says what is lacking.
const NOT_LOADED: Option<i32> = Some(127);

/// Runs the command with a limit, as the shell's `ulimit` spells it.
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
        work::large_download(Wire::Plain, "s3", &[]),
        work::sync_down(),
        work::large_upload(Wire::TlsH2, "gs"),
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
    let scenes = [work::large_download(Wire::TlsH2, "gs", &[]), work::large_upload(Wire::Plain, "s3")];
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
        (work::large_download(Wire::Plain, "s3", &[]), "out", "out/large"),
        (work::small_download(&[]), "out/tree/a", "small"),
    ] {
        let server = scene.endpoint.server();
        scene.reset();
        let path = scene.folder().join(folder);
        fs::create_dir_all(&path).expect("made");
        server.set_faults(Faults::parse(["get stall@1KiB"]).expect("a rule"));
        let changes = Changes::of(&path);
        let running = scene.program().start(&scene.arguments);
        // The large one has its file, of the small one nothing is there before all has come.
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
            // Nobody had opened it yet, and it is made again.
            Some(0) => scene.assert_new(folder),
            _ => {
                let run = run.exits(1).complains(&[file]);
                let causes = ["was removed", "No such file or directory"];
                assert!(causes.into_iter().any(|cause| run.stderr.contains(cause)), "{}", run.stderr);
                assert!(!path.exists(), "it is not made again behind anybody's back");
            }
        }
        scene.finish(folder);
    }
}
