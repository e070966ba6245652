//! `--files-from`, and the filters of `mv`, by the real binary.

use std::fs;

use laneway_testkit::{Endpoint, Wire};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

#[test]
fn names_come_from_a_file_or_from_standard_input() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    for name in ["a", "b", "c"] {
        fs::create_dir_all(endpoint.folder().join("tree")).expect("made");
        fs::write(endpoint.folder().join("tree").join(name), name).expect("written");
    }
    fs::write(endpoint.folder().join("names"), "a\nnone\n").expect("written");
    let keys = || endpoint.server().store().keys("bucket");
    let run = laneway.run(["cp", "--files-from", "names", "tree", "gs://bucket/p"]).exits(1);
    run.complains(&["names:2: ", "tree/none"]);
    assert_eq!(keys(), ["p/a"]);
    laneway.run_with_input(["cp", "--files-from", "-", "tree/", "gs://bucket/p"], b"b\nc\n").succeeds();
    assert_eq!(keys(), ["p/a", "p/b", "p/c"]);
    laneway.run_with_input(["rm", "--files-from", "-", "gs://bucket/p"], b"a\n").succeeds();
    laneway.run_with_input(["rm", "--files-from", "-"], b"gs://bucket/p/b\ns3://bucket/p/c\n").succeeds();
    assert_eq!(keys(), Vec::<String>::new());
    laneway.run(["rm"]).exits(2);
    laneway.run(["cp", "--files-from", "none", "tree", "gs://bucket/p"]).exits(1).complains(&["none"]);
}

#[test]
fn a_move_takes_what_its_filters_leave() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    for key in ["p/a.log", "p/b", "p/c.log"] {
        endpoint.server().store().put("bucket", key, b"x").expect("stored");
    }
    laneway.run(["mv", "-r", "s3://bucket/p", "d", "--exclude", "*.log"]).succeeds();
    assert_eq!(endpoint.server().store().keys("bucket"), ["p/a.log", "p/c.log"]);
    laneway.run(["mv", "-r", "s3://bucket/p", "d/", "--min-size", "2"]).succeeds();
    assert_eq!(fs::read_dir(endpoint.folder().join("d")).expect("a folder").count(), 1);
    assert_eq!(endpoint.server().store().keys("bucket"), ["p/a.log", "p/c.log"]);
}
