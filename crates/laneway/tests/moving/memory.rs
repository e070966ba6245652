//! Memory budgets smaller than the requested data.

use laneway::{ByteRange, Location, Outcome, Provider, ReadRequest};

use crate::stage::{DIALECTS, KINDS, MIB, Stage, noise};

/// Less than a slice, one and a half slices, and a little more than two slices.
const BUDGETS: [usize; 3] = [MIB, 12 * MIB, 17 * MIB];

/// A stream that waits for memory for its next slice holds only the memory of earlier slices. The earlier
/// slices can complete without the next one.
#[test]
fn several_streams_share_the_smallest_budget_without_deadlock() {
    for kind in KINDS {
        for budget in BUDGETS {
            let stage = Stage::with_memory(kind, budget);
            let bytes = noise(24 * MIB + 3, 1);
            stage.object("k", &bytes);
            std::thread::scope(|scope| {
                for range in
                    [None, Some(ByteRange::starting_at(0)), Some(ByteRange::starting_at(9 * MIB as u64))]
                {
                    let (stage, bytes) = (&stage, &bytes);
                    scope.spawn(move || {
                        let mut read = Vec::new();
                        let request = ReadRequest::new(stage.url("k")).ranges(range);
                        let item = stage.client.read(&request, &mut read).unwrap();
                        assert!(matches!(item.outcome, Outcome::Done { .. }));
                        let from =
                            if range == Some(ByteRange::starting_at(9 * MIB as u64)) { 9 * MIB } else { 0 };
                        assert!(read == bytes[from..], "{kind:?} {budget} {range:?}");
                    });
                }
            });
        }
    }
}

#[test]
fn what_streams_through_needs_no_more_than_the_budget() {
    for kind in DIALECTS {
        for budget in BUDGETS {
            let stage = Stage::with_memory(kind, budget);
            stage.server.create_bucket("other").unwrap();
            let (one, two) = (noise(24 * MIB, 1), noise(17 * MIB + 1, 2));
            stage.object("t/one", &one);
            stage.object("t/two", &two);
            stage.object("t/small", b"small");
            let other = if kind.provider == Provider::Gcs { Provider::S3 } else { Provider::Gcs };
            stage.cp_r(stage.url("t"), Location::object(other, "other", "c")).all_verified();
            assert!(stage.server.store().read("other", "c/one").unwrap() == one, "{kind:?} {budget}");
            assert!(stage.server.store().read("other", "c/two").unwrap() == two, "{kind:?} {budget}");
        }
    }
}

#[test]
fn a_pipe_and_a_tree_of_small_files_fit_any_budget() {
    for kind in DIALECTS {
        let stage = Stage::with_memory(kind, MIB);
        let bytes = noise(40 * MIB + 17, 3);
        stage.piped(&bytes, |fifo| stage.cp(fifo, stage.url("piped"))).all_verified();
        assert!(stage.stored("piped") == bytes, "{kind:?}");
        for i in 0..40 {
            stage.file(&format!("tree/{i}"), noise(300 << 10, i));
        }
        stage.cp_r(stage.path("tree"), stage.url("up")).all_verified();
        stage.cp_r(stage.url("up"), stage.path("down")).all_verified();
    }
}
