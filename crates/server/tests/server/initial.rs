//! The content that a server begins with and is reset to, and its endpoints for tests.

use laneway_server::{Config, Server, Storage};

use crate::client::{Answer, Rig};

fn send(rig: &Rig, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    rig.send(method, path, headers, body.to_owned()).unwrap()
}

#[test]
fn the_server_tells_its_health_and_is_reset() {
    let rig = Rig::new();
    assert_eq!((rig.get("/_laneway/health").status, rig.get("/_laneway/health").text()), (200, "ok\n"));
    rig.server.store().put("demo", "k", b"x").unwrap();
    rig.server.store().put("other", "k", b"x").unwrap();
    send(
        &rig,
        "PATCH",
        "/storage/v1/b/demo/o/k",
        &[("content-type", "application/json")],
        r#"{"temporaryHold": true}"#,
    );
    send(&rig, "POST", "/demo/k?uploads", &[], "");
    assert_eq!(send(&rig, "POST", "/_laneway/reset", &[], "").status, 204);
    let buckets = rig.get("/").text().to_owned();
    assert!(buckets.contains("<Name>demo</Name>") && !buckets.contains("<Name>other</Name>"), "{buckets}");
    assert!(rig.server.store().keys("demo").is_empty() && rig.server.uploads_open("demo").is_empty());
}

#[test]
fn a_folder_with_other_files_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let storage = Storage::Disk(folder.path().to_owned());
        Server::start(Config { storage, ..Config::default() })
    };
    drop(start().unwrap());
    drop(start().unwrap());
    std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let refused = start().map(drop).unwrap_err().to_string();
    assert!(refused.contains("notes.txt"), "{refused}");
}

#[test]
fn a_reset_restores_the_files_of_a_seed() {
    let seed = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = seed.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("fixtures/a/b", "first");
    std::fs::create_dir(seed.path().join("bare")).unwrap();
    let rig = Rig::new();
    rig.server.sow(seed.path()).unwrap();
    assert_eq!(rig.get("/fixtures/a/b").text(), "first");
    assert_eq!(rig.get("/bare").status, 200);

    assert_eq!(send(&rig, "PUT", "/fixtures/a/b", &[], "other").status, 200);
    assert_eq!(send(&rig, "PUT", "/fixtures/c", &[], "more").status, 200);
    write("fixtures/d", "second");
    assert_eq!(send(&rig, "POST", "/_laneway/reset", &[], "").status, 204);
    assert_eq!(rig.server.store().keys("fixtures"), ["a/b", "d"]);
    assert_eq!(rig.get("/fixtures/a/b").text(), "first");
    assert_eq!(rig.get("/bare").status, 200);
    assert_eq!(rig.get("/demo").status, 200);
}

#[test]
fn a_seed_that_is_no_bucket_is_named() {
    let seed = tempfile::tempdir().unwrap();
    let rig = Rig::new();
    std::fs::create_dir(seed.path().join("Capital")).unwrap();
    let refused = rig.server.sow(seed.path()).unwrap_err().to_string();
    assert!(refused.contains("Capital"), "{refused}");
    std::fs::remove_dir(seed.path().join("Capital")).unwrap();
    std::fs::write(seed.path().join("stray"), "").unwrap();
    let refused = rig.server.sow(seed.path()).unwrap_err().to_string();
    assert!(refused.contains("stray") && refused.contains("only folders, one for each bucket"), "{refused}");
    let failed = send(&rig, "POST", "/_laneway/reset", &[], "");
    assert_eq!(failed.status, 500);
    assert!(failed.text().contains("stray"), "{}", failed.text());
}
