//! Locks and holds in both dialects: the requests that they refuse, and those that they let through.

use serde_json::{Value, json};

use crate::client::{Answer, Rig};

const PROTECTED: &str = "Access Denied because object protected by object lock.";
const MD5_OF_X: (&str, &str) = ("content-md5", "ndTkYSaMgDT1yFZOFVxnpg==");

fn send(rig: &Rig, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<String>) -> Answer {
    rig.send(method, path, headers, body.into()).unwrap()
}

/// Returns a server with a bucket `vault` that S3's Object Lock protects.
fn locking() -> Rig {
    let rig = Rig::new();
    let made = send(&rig, "PUT", "/vault", &[("x-amz-bucket-object-lock-enabled", "true")], "");
    assert_eq!(made.status, 200);
    rig
}

fn code(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.element("Code"))
}

fn retention(mode: &str, until: &str) -> String {
    format!("<Retention><Mode>{mode}</Mode><RetainUntilDate>{until}</RetainUntilDate></Retention>")
}

/// Writes `vault/k` and returns the path of its version.
fn version(rig: &Rig) -> String {
    let put = send(rig, "PUT", "/vault/k", &[], "x");
    assert_eq!(put.status, 200);
    format!("/vault/k?versionId={}", put.header("x-amz-version-id"))
}

#[test]
fn a_bucket_with_object_lock_keeps_versions_and_tells_its_configuration() {
    let rig = locking();
    assert!(send(&rig, "GET", "/vault?versioning", &[], "").text().contains("<Status>Enabled</Status>"));
    let answer = send(&rig, "GET", "/vault?object-lock", &[], "");
    assert_eq!((answer.status, answer.element("ObjectLockEnabled")), (200, "Enabled"));
    let suspend = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>";
    let refused = send(&rig, "PUT", "/vault?versioning", &[], suspend);
    assert_eq!(code(&refused), (409, "InvalidBucketState"));
    let none = send(&rig, "GET", "/demo?object-lock", &[], "");
    assert_eq!(code(&none), (404, "ObjectLockConfigurationNotFoundError"));
    let enabled =
        "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>";
    assert_eq!(code(&send(&rig, "PUT", "/demo?object-lock", &[], enabled)), (409, "InvalidBucketState"));
    let versions = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    assert_eq!(send(&rig, "PUT", "/demo?versioning", &[], versions).status, 200);
    assert_eq!(send(&rig, "PUT", "/demo?object-lock", &[], enabled).status, 200, "it keeps versions now");
}

#[test]
fn a_default_retention_is_given_to_new_objects() {
    let rig = locking();
    let configure = |rule: &str| {
        let body = format!(
            "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>{rule}</DefaultRetention></Rule></ObjectLockConfiguration>"
        );
        send(&rig, "PUT", "/vault?object-lock", &[], body)
    };
    for (rule, refusal) in [
        ("<Mode>GOVERNANCE</Mode><Days>1</Days><Years>1</Years>", "MalformedXML"),
        ("<Mode>governance</Mode><Days>1</Days>", "MalformedXML"),
        ("<Mode>GOVERNANCE</Mode>", "MalformedXML"),
        ("<Mode>GOVERNANCE</Mode><Days>0</Days>", "InvalidArgument"),
        ("<Mode>GOVERNANCE</Mode><Years>-1</Years>", "InvalidArgument"),
        ("<Mode>GOVERNANCE</Mode><Days>36501</Days>", "InvalidArgument"),
    ] {
        assert_eq!(code(&configure(rule)), (400, refusal), "{rule}");
    }
    assert_eq!(configure("<Mode>COMPLIANCE</Mode><Days>1</Days>").status, 200);
    let answer = send(&rig, "GET", "/vault?object-lock", &[], "");
    assert_eq!((answer.element("Mode"), answer.element("Days")), ("COMPLIANCE", "1"));
    assert_eq!(code(&send(&rig, "PUT", "/vault/k", &[], "x")), (400, "InvalidRequest"), "without a checksum");
    let put = send(&rig, "PUT", "/vault/k", &[MD5_OF_X], "x");
    assert_eq!(put.status, 200);
    let head = send(&rig, "HEAD", "/vault/k", &[], "");
    assert_eq!(head.header("x-amz-object-lock-mode"), "COMPLIANCE");
    let path = format!("/vault/k?versionId={}", put.header("x-amz-version-id"));
    let bypass = [("x-amz-bypass-governance-retention", "true")];
    assert_eq!(code(&send(&rig, "DELETE", &path, &bypass, "")), (403, "AccessDenied"));
}

#[test]
fn a_retained_version_stays_and_only_governance_gives_way_to_the_bypass() {
    let bypass = [("x-amz-bypass-governance-retention", "true")];
    for (mode, gives_way) in [("GOVERNANCE", true), ("COMPLIANCE", false)] {
        let rig = locking();
        let path = version(&rig);
        let at = format!("{path}&retention");
        assert_eq!(
            code(&send(&rig, "GET", &at, &[], "")),
            (404, "NoSuchObjectLockConfiguration"),
            "nothing is set"
        );
        assert_eq!(send(&rig, "PUT", &at, &[], retention(mode, "2127-01-31T00:00:00Z")).status, 200);
        let answer = send(&rig, "GET", &at, &[], "");
        assert_eq!(answer.element("Mode"), mode);
        assert!(answer.element("RetainUntilDate").starts_with("2127-01-31T00:00:00"), "{}", answer.text());

        let refused = send(&rig, "DELETE", &path, &[], "");
        assert_eq!(code(&refused), (403, "AccessDenied"));
        assert_eq!(refused.element("Message"), PROTECTED);
        let version = path.split_once('=').unwrap().1;
        let many = format!(
            "<Delete><Object><Key>k</Key><VersionId>{version}</VersionId></Object><Object><Key>none</Key></Object></Delete>"
        );
        let many = send(&rig, "POST", "/vault?delete", &[], many);
        assert_eq!((many.status, many.element("Code")), (200, "AccessDenied"), "{}", many.text());

        let shorter = retention(mode, "2126-01-31T00:00:00Z");
        assert_eq!(code(&send(&rig, "PUT", &at, &[], shorter.clone())), (403, "AccessDenied"));
        let longer = retention(mode, "2128-01-31T00:00:00Z");
        assert_eq!(send(&rig, "PUT", &at, &[], longer).status, 200);
        let other = if gives_way { "COMPLIANCE" } else { "GOVERNANCE" };
        let other = retention(other, "2129-01-31T00:00:00Z");
        assert_eq!(code(&send(&rig, "PUT", &at, &[], other)), (403, "AccessDenied"));
        assert_eq!(send(&rig, "PUT", &at, &bypass, shorter).status, if gives_way { 200 } else { 403 });

        // A new version or a delete marker may still cover the locked version.
        assert_eq!(send(&rig, "PUT", "/vault/k", &[], "new").status, 200);
        let covered = send(&rig, "DELETE", "/vault/k", &[], "");
        assert_eq!((covered.status, covered.header("x-amz-delete-marker")), (204, "true"));
        assert_eq!(send(&rig, "GET", &path, &[], "").text(), "x");
        assert_eq!(send(&rig, "DELETE", &path, &bypass, "").status, if gives_way { 204 } else { 403 });
    }
}

#[test]
fn an_empty_retention_takes_governance_away_with_the_bypass() {
    let rig = locking();
    let path = version(&rig);
    let at = format!("{path}&retention");
    send(&rig, "PUT", &at, &[], retention("GOVERNANCE", "2127-01-31T00:00:00Z"));
    let bypass = [("x-amz-bypass-governance-retention", "true")];
    assert_eq!(code(&send(&rig, "PUT", &at, &[], "<Retention></Retention>")), (403, "AccessDenied"));
    assert_eq!(send(&rig, "PUT", &at, &bypass, "<Retention></Retention>").status, 200);
    assert_eq!(send(&rig, "DELETE", &path, &[], "").status, 204);
}

#[test]
fn a_legal_hold_keeps_a_version_until_it_is_lifted() {
    let rig = locking();
    let path = version(&rig);
    let at = format!("{path}&legal-hold");
    let hold = |status: &str| format!("<LegalHold><Status>{status}</Status></LegalHold>");
    assert_eq!(code(&send(&rig, "GET", &at, &[], "")), (404, "NoSuchObjectLockConfiguration"));
    assert_eq!(code(&send(&rig, "PUT", &at, &[], hold("on"))), (400, "MalformedXML"));
    assert_eq!(send(&rig, "PUT", &at, &[], hold("ON")).status, 200);
    assert_eq!(send(&rig, "GET", &at, &[], "").element("Status"), "ON");
    let bypass = [("x-amz-bypass-governance-retention", "true")];
    assert_eq!(code(&send(&rig, "DELETE", &path, &bypass, "")), (403, "AccessDenied"));
    assert_eq!(send(&rig, "PUT", &at, &[], hold("OFF")).status, 200);
    assert_eq!(send(&rig, "HEAD", &path, &[], "").header("x-amz-object-lock-legal-hold"), "OFF");
    assert_eq!(send(&rig, "DELETE", &path, &[], "").status, 204);
}

#[test]
fn headers_of_a_lock_need_a_bucket_that_has_locks_and_a_checksum() {
    let rig = locking();
    let lock = [
        ("x-amz-object-lock-mode", "GOVERNANCE"),
        ("x-amz-object-lock-retain-until-date", "2127-01-31T00:00:00Z"),
        ("x-amz-object-lock-legal-hold", "ON"),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&lock[..], more].concat();
    assert_eq!(code(&send(&rig, "PUT", "/vault/k", &lock, "x")), (400, "InvalidRequest"), "no checksum");
    assert_eq!(code(&send(&rig, "PUT", "/demo/k", &with(&[MD5_OF_X]), "x")), (400, "InvalidRequest"));
    assert_eq!(code(&send(&rig, "POST", "/demo/k?uploads", &lock, "")), (400, "InvalidRequest"));
    assert!(rig.server.store().keys("demo").is_empty());
    let put = send(&rig, "PUT", "/vault/k", &with(&[MD5_OF_X]), "x");
    assert_eq!(put.status, 200);
    let path = format!("/vault/k?versionId={}", put.header("x-amz-version-id"));
    assert_eq!(code(&send(&rig, "DELETE", &path, &[], "")), (403, "AccessDenied"));
    let copy = send(&rig, "PUT", "/vault/copy", &[("x-amz-copy-source", "/vault/k")], "");
    assert_eq!(copy.status, 200);
    let head = send(&rig, "HEAD", "/vault/copy", &[], "");
    assert_eq!(
        (head.header("x-amz-object-lock-mode"), head.header("x-amz-object-lock-legal-hold")),
        ("", "")
    );
    for path in ["/demo/k?retention", "/demo/k?legal-hold"] {
        send(&rig, "PUT", "/demo/k", &[], "x");
        assert_eq!(code(&send(&rig, "GET", path, &[], "")), (400, "InvalidRequest"), "{path}");
    }
    let bypass = [("x-amz-bypass-governance-retention", "false")];
    assert_eq!(code(&send(&rig, "DELETE", "/demo/k", &bypass, "")), (400, "InvalidArgument"));
    let wrong = [("x-amz-object-lock-legal-hold", "yes")];
    assert_eq!(code(&send(&rig, "PUT", "/vault/k", &wrong, "x")), (400, "InvalidArgument"));
}

#[test]
fn locks_outlive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let root = folder.path().to_owned();
        Rig::with(crate::client::Protocol::PlainH1, move |config| {
            config.storage = laneway_server::Storage::Disk(root);
        })
    };
    let rig = start();
    send(&rig, "PUT", "/vault", &[("x-amz-bucket-object-lock-enabled", "true")], "");
    let path = version(&rig);
    send(&rig, "PUT", &format!("{path}&retention"), &[], retention("COMPLIANCE", "2127-01-31T00:00:00Z"));
    json(&rig, "PATCH", "/storage/v1/b/demo", &json!({"retentionPolicy": {"retentionPeriod": 3600}}));
    drop(rig);
    let rig = start();
    assert_eq!(code(&send(&rig, "DELETE", &path, &[], "")), (403, "AccessDenied"));
    let bucket = json(&rig, "GET", "/storage/v1/b/demo", &Value::Null).json();
    assert_eq!(
        (&bucket["metageneration"], &bucket["retentionPolicy"]["retentionPeriod"]),
        (&json!("2"), &json!("3600"))
    );
}

fn json(rig: &Rig, method: &str, path: &str, body: &Value) -> Answer {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    send(rig, method, path, &[("content-type", "application/json")], text)
}

fn reason(answer: &Answer) -> (u16, String) {
    (answer.status, answer.json()["error"]["errors"][0]["reason"].as_str().unwrap().to_owned())
}

const K: &str = "/storage/v1/b/demo/o/k";
const UPLOAD: &str = "/upload/storage/v1/b/demo/o?uploadType=media&name=k";

#[test]
fn a_held_object_is_neither_deleted_nor_replaced_nor_moved() {
    for (hold, kind) in [("temporaryHold", "Temporary"), ("eventBasedHold", "Event-Based")] {
        for keeps_versions in [false, true] {
            let rig = Rig::new();
            json(&rig, "PATCH", "/storage/v1/b/demo", &json!({"versioning": {"enabled": keeps_versions}}));
            send(&rig, "POST", UPLOAD, &[], "old");
            let held = json(&rig, "PATCH", K, &json!({hold: true}));
            assert_eq!((held.status, &held.json()[hold]), (200, &json!(true)));
            let refused = json(&rig, "DELETE", K, &Value::Null);
            assert_eq!(reason(&refused), (403, "forbidden".to_owned()));
            let message = format!(
                "Object 'demo/k' is under active {kind} hold and cannot be deleted, overwritten or archived until hold is removed."
            );
            assert_eq!(refused.json()["error"]["message"], message);
            send(&rig, "POST", "/upload/storage/v1/b/demo/o?uploadType=media&name=other", &[], "new");
            let source = json!({"sourceObjects": [{"name": "other"}]});
            for (method, path, body) in [
                ("POST", UPLOAD, json!("new")),
                ("POST", "/storage/v1/b/demo/o/other/copyTo/b/demo/o/k", json!({})),
                ("POST", "/storage/v1/b/demo/o/other/rewriteTo/b/demo/o/k", json!({})),
                ("POST", "/storage/v1/b/demo/o/k/compose", source),
                ("POST", "/storage/v1/b/demo/o/k/moveTo/o/moved", Value::Null),
                ("POST", "/storage/v1/b/demo/o/other/moveTo/o/k", Value::Null),
            ] {
                assert_eq!(json(&rig, method, path, &body).status, 403, "{path}");
            }
            let mut keys = rig.server.store().keys("demo");
            keys.sort();
            assert_eq!(keys, ["k", "other"]);
            assert_eq!(rig.server.store().read("demo", "k").unwrap(), b"old");
            let stale = json(&rig, "DELETE", &format!("{K}?ifGenerationMatch=1"), &Value::Null);
            assert_eq!(stale.status, 412, "a condition comes first");
            assert_eq!(json(&rig, "PATCH", K, &json!({"metadata": {"a": "1"}})).status, 200);
            let released = json(&rig, "PATCH", K, &json!({hold: false})).json();
            assert_eq!(released[hold], false);
            assert_eq!(json(&rig, "DELETE", K, &Value::Null).status, 204);
        }
    }
}

#[test]
fn a_session_over_a_held_object_is_refused_at_its_end() {
    let rig = Rig::new();
    send(&rig, "POST", UPLOAD, &[], "old");
    json(&rig, "PATCH", K, &json!({"temporaryHold": true}));
    let begun = send(&rig, "POST", "/upload/storage/v1/b/demo/o?uploadType=resumable&name=k", &[], "");
    assert_eq!(begun.status, 200);
    let at = begun.header("location").split_once(&rig.server.url()).unwrap().1.to_owned();
    assert_eq!(reason(&send(&rig, "PUT", &at, &[], "new")), (403, "forbidden".to_owned()));
    assert_eq!(rig.server.store().read("demo", "k").unwrap(), b"old");
}

#[test]
fn the_xml_api_names_the_hold_and_the_policy() {
    let rig = Rig::new();
    let google = [("x-goog-api-version", "2")];
    send(&rig, "POST", UPLOAD, &[], "old");
    json(&rig, "PATCH", K, &json!({"temporaryHold": true}));
    let refused = send(&rig, "PUT", "/demo/k", &google, "new");
    assert_eq!(code(&refused), (403, "ObjectUnderActiveHold"));
    assert!(refused.element("Details").contains("under active Temporary hold"), "{}", refused.text());
    json(&rig, "PATCH", K, &json!({"temporaryHold": false}));
    json(&rig, "PATCH", "/storage/v1/b/demo", &json!({"retentionPolicy": {"retentionPeriod": "3600"}}));
    assert_eq!(code(&send(&rig, "DELETE", "/demo/k", &google, "")), (403, "RetentionPolicyNotMet"));
    let locked = [("x-goog-api-version", "2"), ("x-goog-object-lock-mode", "COMPLIANCE")];
    let lacking = send(&rig, "PUT", "/demo/other", &locked, "x");
    assert_eq!(code(&lacking), (501, "NotImplemented"));
    assert!(lacking.element("Message").contains("x-goog-object-lock-mode"), "{}", lacking.text());
}

#[test]
fn a_policy_keeps_old_and_new_objects_and_a_locked_one_only_grows() {
    let rig = Rig::new();
    send(&rig, "POST", UPLOAD, &[], "old");
    let patch = |body: &Value| json(&rig, "PATCH", "/storage/v1/b/demo", body);
    let set = patch(&json!({"retentionPolicy": {"retentionPeriod": "3600"}})).json();
    assert_eq!(
        (&set["retentionPolicy"]["retentionPeriod"], &set["metageneration"]),
        (&json!("3600"), &json!("2"))
    );
    let kept = json(&rig, "GET", K, &Value::Null).json();
    assert_ne!(kept["retentionExpirationTime"], Value::Null);
    let refused = json(&rig, "DELETE", K, &Value::Null);
    assert_eq!(reason(&refused), (403, "retentionPolicyNotMet".to_owned()));
    assert!(
        refused.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("cannot be deleted or overwritten until")
    );
    assert_eq!(send(&rig, "POST", UPLOAD, &[], "new").status, 403);

    let lock = |query: &str| {
        json(&rig, "POST", &format!("/storage/v1/b/demo/lockRetentionPolicy{query}"), &json!({}))
    };
    assert_eq!(reason(&lock("")), (400, "required".to_owned()));
    assert_eq!(reason(&lock("?ifMetagenerationMatch=1")), (412, "conditionNotMet".to_owned()));
    let locked = lock("?ifMetagenerationMatch=2");
    assert_eq!((locked.status, &locked.json()["retentionPolicy"]["isLocked"]), (200, &json!(true)));
    assert_eq!(
        reason(&lock("?ifMetagenerationMatch=3")),
        (400, "invalid".to_owned()),
        "it is locked already"
    );
    assert_eq!(reason(&patch(&json!({"retentionPolicy": null}))), (403, "retentionPolicyNotMet".to_owned()));
    let shorter = patch(&json!({"retentionPolicy": {"retentionPeriod": 1}}));
    assert_eq!(reason(&shorter), (403, "forbidden".to_owned()));
    assert_eq!(patch(&json!({"retentionPolicy": {"retentionPeriod": 7200}})).status, 200);
    // In a bucket with versions, a delete may make a retained object noncurrent, but can't remove it.
    assert_eq!(patch(&json!({"versioning": {"enabled": true}})).status, 200);
    let generation = kept["generation"].as_str().unwrap();
    assert_eq!(json(&rig, "DELETE", K, &Value::Null).status, 204);
    assert_eq!(json(&rig, "DELETE", &format!("{K}?generation={generation}"), &Value::Null).status, 403);
}

#[test]
fn a_default_hold_is_put_on_new_objects_and_defers_the_policy() {
    let rig = Rig::new();
    let settings = json!({"defaultEventBasedHold": true, "retentionPolicy": {"retentionPeriod": 3600}});
    assert_eq!(json(&rig, "PATCH", "/storage/v1/b/demo", &settings).json()["defaultEventBasedHold"], true);
    let made = send(&rig, "POST", UPLOAD, &[], "x").json();
    assert_eq!((&made["eventBasedHold"], &made["retentionExpirationTime"]), (&json!(true), &Value::Null));
    let released = json(&rig, "PATCH", K, &json!({"eventBasedHold": false})).json();
    assert_ne!(released["retentionExpirationTime"], Value::Null);
    assert_eq!(reason(&json(&rig, "DELETE", K, &Value::Null)), (403, "retentionPolicyNotMet".to_owned()));
    let list = json(&rig, "GET", "/storage/v1/b/demo/o", &Value::Null).json();
    assert_eq!(list["items"][0]["retentionExpirationTime"], released["retentionExpirationTime"]);
}

#[test]
fn an_objects_own_retention_needs_a_bucket_that_was_made_for_it() {
    let rig = Rig::new();
    let retention = |mode: &str, until: &str| json!({"retention": {"mode": mode, "retainUntilTime": until}});
    send(&rig, "POST", UPLOAD, &[], "x");
    let unlocked = retention("Unlocked", "2127-01-31T00:00:00Z");
    assert_eq!(reason(&json(&rig, "PATCH", K, &unlocked)), (400, "invalid".to_owned()));
    let made =
        json(&rig, "POST", "/storage/v1/b?project=p&enableObjectRetention=true", &json!({"name": "vault"}));
    assert_eq!(made.json()["objectRetention"]["mode"], "Enabled");
    send(&rig, "POST", "/upload/storage/v1/b/vault/o?uploadType=media&name=k", &[], "x");
    let k = "/storage/v1/b/vault/o/k";
    let set = json(&rig, "PATCH", k, &unlocked);
    assert_eq!((set.status, &set.json()["retention"]["mode"]), (200, &json!("Unlocked")));
    assert_eq!(reason(&json(&rig, "DELETE", k, &Value::Null)), (403, "retentionPolicyNotMet".to_owned()));
    let shorter = retention("Unlocked", "2126-01-31T00:00:00Z");
    assert_eq!(reason(&json(&rig, "PATCH", k, &shorter)), (403, "forbidden".to_owned()));
    let overriding = format!("{k}?overrideUnlockedRetention=true");
    assert_eq!(json(&rig, "PATCH", &overriding, &shorter).status, 200);
    assert_eq!(json(&rig, "PATCH", &overriding, &json!({"retention": null})).status, 200);
    assert_eq!(json(&rig, "DELETE", k, &Value::Null).status, 204);
}
