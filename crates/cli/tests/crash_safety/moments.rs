//! `kill -9` at random moments: at one of the system calls that the work takes, on files and sockets.

use laneway_testkit::{Blow, SystemCalls, Wire, random_bytes};

use crate::scene::{KILLED, Scene};
use crate::work;

/// How often each work is killed, unless `LANEWAY_SOAK_KILLS` says otherwise.
const KILLS: usize = 5;

fn kills() -> usize {
    std::env::var("LANEWAY_SOAK_KILLS").map_or(KILLS, |kills| kills.parse().expect("a number"))
}

/// Kills the work at moments drawn from `seed`, each time from its beginning, and has it carried out to its end.
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
        // A busy machine reads in more and smaller pieces one time than the next: the later half of the calls may never come.
        let moment = 1 + u64::from_le_bytes(draw.try_into().expect("eight")) % (calls / 2);
        let when = format!("{:?} killed at call {moment} of {calls}", scene.arguments);
        scene.reset();
        let strike = SystemCalls::all().strike(moment, Blow::Kill);
        let (run, _) = strike.run(&scene.program(), &scene.arguments);
        // A run that takes fewer calls than the first one ends before.
        assert!(matches!(run.status, KILLED | Some(0)), "{when}: {:?} {}", run.status, run.stderr);
        killed += usize::from(run.status == KILLED);
        scene.assert_old_or_new(&when);
        scene.finish(&when);
    }
    assert!(2 * killed >= kills(), "killed {killed} times only");
}

#[test]
fn a_download_killed_at_random_moments_is_exactly_right_in_the_end() {
    killed_at_random_moments(&work::large_download(Wire::Plain, "s3", &[]), 11);
    killed_at_random_moments(&work::large_download(Wire::TlsH2, "gs", &[]), 12);
}

#[test]
fn an_upload_killed_at_random_moments_is_exactly_right_in_the_end() {
    killed_at_random_moments(&work::large_upload(Wire::Plain, "s3"), 21);
    killed_at_random_moments(&work::large_upload(Wire::TlsH2, "gs"), 22);
    killed_at_random_moments(&work::session(), 23);
}

#[test]
fn a_sync_killed_at_random_moments_is_exactly_right_in_the_end() {
    killed_at_random_moments(&work::sync_down(), 31);
    killed_at_random_moments(&work::sync_up(), 32);
}

#[test]
fn commands_killed_at_random_moments_are_exactly_right_in_the_end() {
    killed_at_random_moments(&work::commands(), 41);
}
