//! Archived objects of the S3 dialect, and their restoration.

use std::time::Duration;

use laneway_server::Attributes;

use crate::client::{Answer, Protocol, Rig};

const RESTORE: &str = "<RestoreRequest xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Days>2</Days>\
                       <GlacierJobParameters><Tier>Expedited</Tier></GlacierJobParameters></RestoreRequest>";

/// Returns a server whose restorations take this long.
fn rig(restores_take: Duration) -> Rig {
    Rig::with(Protocol::PlainH1, |config| config.s3.restores_take = restores_take)
}

fn cold(rig: &Rig, key: &str, class: &str) {
    let path = format!("/demo/{key}");
    assert_eq!(rig.send("PUT", &path, &[("x-amz-storage-class", class)], "cold").unwrap().status, 200);
}

fn restore(rig: &Rig, key: &str) -> Answer {
    rig.send("POST", &format!("/demo/{key}?restore"), &[], RESTORE).unwrap()
}

fn head(rig: &Rig, key: &str) -> Answer {
    rig.send("HEAD", &format!("/demo/{key}"), &[], "").unwrap()
}

/// Returns a listing, with or without a request for the restore status.
fn listed(rig: &Rig, query: &str, asks: bool) -> Answer {
    let asking = [("x-amz-optional-object-attributes", "RestoreStatus")];
    rig.send("GET", &format!("/demo?{query}"), if asks { &asking } else { &[] }, "").unwrap()
}

#[test]
fn who_reads_or_copies_what_is_archived_is_told_its_class() {
    let rig = Rig::new();
    for class in ["GLACIER", "DEEP_ARCHIVE"] {
        cold(&rig, "k", class);
        let copy = [("x-amz-copy-source", "demo/k")];
        for refused in [rig.get("/demo/k"), rig.send("PUT", "/demo/to", &copy, "").unwrap()] {
            assert_eq!((refused.status, refused.element("Code")), (403, "InvalidObjectState"));
            assert_eq!((refused.element("StorageClass"), refused.element("AccessTier")), (class, ""));
            assert!(refused.headers.keys().all(|name| !name.as_str().starts_with("archived")));
        }
        let head = head(&rig, "k");
        assert_eq!((head.status, head.header("x-amz-restore")), (200, ""));
    }
}

#[test]
fn who_reads_what_is_tiered_into_an_archive_is_told_its_tier() {
    let rig = rig(Duration::ZERO);
    let attributes = Attributes {
        storage_class: Some("INTELLIGENT_TIERING".into()),
        archive_status: Some("ARCHIVE_ACCESS".into()),
        ..Attributes::default()
    };
    rig.server.store().put_with("demo", "k", b"cold", attributes).unwrap();
    assert_eq!(head(&rig, "k").header("x-amz-archive-status"), "ARCHIVE_ACCESS");
    let refused = rig.get("/demo/k");
    assert_eq!((refused.status, refused.element("Code")), (403, "InvalidObjectState"));
    assert_eq!(refused.element("StorageClass"), "INTELLIGENT_TIERING");
    assert_eq!(refused.element("AccessTier"), "ARCHIVE_ACCESS");
    let refused = restore(&rig, "k");
    assert_eq!((refused.status, refused.element("Code")), (400, "InvalidArgument"));
    assert!(refused.element("Message").contains("Do not specify Days"), "{}", refused.text());
    assert_eq!(rig.send("POST", "/demo/k?restore", &[], "<RestoreRequest/>").unwrap().status, 202);
    let head = head(&rig, "k");
    assert_eq!((head.header("x-amz-archive-status"), head.header("x-amz-restore")), ("", ""));
    assert_eq!(rig.get("/demo/k").text(), "cold");
}

#[test]
fn a_restore_goes_on_for_a_while_and_is_told_where_it_is_asked_for() {
    let rig = rig(Duration::from_secs(3600));
    cold(&rig, "k", "GLACIER");
    assert_eq!(listed(&rig, "list-type=2", true).element("RestoreStatus"), "", "it was never restored");
    let modified = head(&rig, "k").header("last-modified").to_owned();
    assert_eq!(restore(&rig, "k").status, 202);
    let again = restore(&rig, "k");
    assert_eq!((again.status, again.element("Code")), (409, "RestoreAlreadyInProgress"));
    assert_eq!(rig.get("/demo/k").element("Code"), "InvalidObjectState");
    let head = head(&rig, "k");
    assert_eq!(head.header("x-amz-restore"), "ongoing-request=\"true\"");
    assert_eq!(head.header("last-modified"), modified);
    for query in ["", "list-type=2"] {
        assert_eq!(listed(&rig, query, true).element("IsRestoreInProgress"), "true");
        assert_eq!(listed(&rig, query, false).element("RestoreStatus"), "");
    }
    let other = [("x-amz-optional-object-attributes", "Owner")];
    assert_eq!(rig.send("GET", "/demo?list-type=2", &other, "").unwrap().element("Code"), "InvalidArgument");
}

#[test]
fn a_restored_object_is_read_and_copied_until_its_copy_goes() {
    let rig = rig(Duration::ZERO);
    cold(&rig, "k", "DEEP_ARCHIVE");
    assert_eq!([restore(&rig, "k").status, restore(&rig, "k").status], [202, 200]);
    let state = head(&rig, "k").header("x-amz-restore").to_owned();
    let until = state.strip_prefix("ongoing-request=\"false\", expiry-date=\"").unwrap_or_default();
    assert!(until.ends_with(" 00:00:00 GMT\""), "{state}");
    let got = rig.get("/demo/k");
    assert_eq!((got.text(), got.header("x-amz-restore")), ("cold", state.as_str()));
    let page = listed(&rig, "list-type=2", true);
    assert_eq!(page.element("IsRestoreInProgress"), "false");
    assert!(page.element("RestoreExpiryDate").contains("T00:00:00"));
    let copy = [("x-amz-copy-source", "demo/k")];
    assert_eq!(rig.send("PUT", "/demo/to", &copy, "").unwrap().status, 200);
    assert_eq!(head(&rig, "to").header("x-amz-restore"), "");
}

#[test]
fn what_is_at_hand_is_not_restored() {
    let rig = Rig::new();
    for class in ["STANDARD", "GLACIER_IR"] {
        cold(&rig, "k", class);
        let refused = restore(&rig, "k");
        assert_eq!((refused.status, refused.element("Code")), (403, "InvalidObjectState"));
        assert!(refused.element("Message").starts_with("Restore is not allowed"));
        assert_eq!(refused.element("StorageClass"), class);
    }
    assert_eq!(restore(&rig, "missing").element("Code"), "NoSuchKey");
}
