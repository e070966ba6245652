//! Browsers' requests from other origins, and settings that are kept only on demand.

use serde_json::json;

use crate::client::{Answer, Protocol, Rig};

const RULE: &str = "<CORSConfiguration><CORSRule><AllowedOrigin>https://*.example.com</AllowedOrigin>\
    <AllowedMethod>GET</AllowedMethod><AllowedMethod>PUT</AllowedMethod><AllowedHeader>x-amz-*</AllowedHeader>\
    <ExposeHeader>ETag</ExposeHeader><MaxAgeSeconds>60</MaxAgeSeconds></CORSRule></CORSConfiguration>";

fn send(rig: &Rig, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    rig.send(method, path, headers, body.to_owned()).unwrap()
}

#[test]
fn a_preflight_is_answered_by_the_buckets_rules() {
    let rig = Rig::new();
    let asks = |method: &'static str, headers: &'static str| {
        [
            ("origin", "https://a.example.com"),
            ("access-control-request-method", method),
            ("access-control-request-headers", headers),
        ]
    };
    let none = send(&rig, "OPTIONS", "/demo/k", &asks("PUT", ""), "");
    assert_eq!((none.status, none.element("Code")), (403, "AccessForbidden"));
    assert_eq!(send(&rig, "GET", "/demo?cors", &[], "").element("Code"), "NoSuchCORSConfiguration");
    assert_eq!(send(&rig, "PUT", "/demo?cors", &[], RULE).status, 200);
    assert_eq!(send(&rig, "GET", "/demo?cors", &[], "").element("ExposeHeader"), "ETag");
    let permitted = send(&rig, "OPTIONS", "/demo/k", &asks("PUT", "X-Amz-Date"), "");
    assert_eq!(permitted.status, 200);
    for (name, value) in [
        ("access-control-allow-origin", "https://a.example.com"),
        ("access-control-allow-methods", "GET, PUT"),
        ("access-control-allow-headers", "X-Amz-Date"),
        ("access-control-max-age", "60"),
        ("access-control-expose-headers", "ETag"),
    ] {
        assert_eq!(permitted.header(name), value, "{name}");
    }
    for (method, headers) in [("DELETE", ""), ("PUT", "authorization")] {
        assert_eq!(send(&rig, "OPTIONS", "/demo/k", &asks(method, headers), "").status, 403, "{method}");
    }
    assert_eq!(send(&rig, "OPTIONS", "/demo/k", &[], "").status, 400);
    let put = send(&rig, "PUT", "/demo/k", &[("origin", "https://a.example.com")], "x");
    assert_eq!(put.header("access-control-allow-origin"), "https://a.example.com");
    let stranger = send(&rig, "GET", "/demo/k", &[("origin", "https://other.org")], "");
    assert_eq!((stranger.status, stranger.header("access-control-allow-origin")), (200, ""));
    assert_eq!(send(&rig, "DELETE", "/demo?cors", &[], "").status, 204);
    assert_eq!(send(&rig, "OPTIONS", "/demo/k", &asks("PUT", ""), "").status, 403);
    let wrong = RULE.replace("PUT", "PATCH");
    assert_eq!(send(&rig, "PUT", "/demo?cors", &[], &wrong).element("Code"), "InvalidRequest");
}

#[test]
fn the_json_api_permits_every_origin_and_the_xml_api_asks_the_rules() {
    let rig = Rig::new();
    let origin = ("origin", "https://a.example.com");
    let path = "/storage/v1/b/demo/o/k";
    let preflight = send(&rig, "OPTIONS", path, &[origin, ("access-control-request-method", "DELETE")], "");
    assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (200, origin.1));
    assert_eq!(send(&rig, "GET", path, &[origin], "").header("access-control-allow-origin"), origin.1);
    let cors = json!({"cors": [{"origin": ["*"], "method": ["GET"], "responseHeader": ["ETag"], "maxAgeSeconds": 5}]});
    let set =
        send(&rig, "PATCH", "/storage/v1/b/demo", &[("content-type", "application/json")], &cors.to_string());
    assert_eq!(set.json()["cors"], cors["cors"]);
    let google = [origin, ("x-goog-api-version", "2"), ("access-control-request-method", "GET")];
    let answer = send(&rig, "OPTIONS", "/demo/k", &google, "");
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, "*"));
}

#[test]
fn a_bucket_has_tags() {
    let rig = Rig::new();
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>";
    let none = send(&rig, "GET", "/demo?tagging", &[], "");
    assert_eq!(
        (none.status, none.element("Code"), none.element("BucketName")),
        (404, "NoSuchTagSet", "demo")
    );
    assert_eq!(send(&rig, "PUT", "/demo?tagging", &[], tags).status, 200);
    assert_eq!(send(&rig, "GET", "/demo?tagging", &[], "").element("Value"), "1");
    let twice = tags.replace("</TagSet>", "<Tag><Key>a</Key><Value>2</Value></Tag></TagSet>");
    assert_eq!(send(&rig, "PUT", "/demo?tagging", &[], &twice).element("Code"), "InvalidTag");
    assert_eq!(send(&rig, "DELETE", "/demo?tagging", &[], "").status, 204);
    assert_eq!(send(&rig, "GET", "/demo?tagging", &[], "").status, 404);
}

#[test]
fn permissions_and_the_service_account_are_answered() {
    let rig = Rig::new();
    send(&rig, "POST", "/upload/storage/v1/b/demo/o?uploadType=media&name=k", &[], "x");
    for path in ["/storage/v1/b/demo/iam", "/storage/v1/b/demo/o/k/iam"] {
        let asked = format!(
            "{path}/testPermissions?permissions=storage.objects.get&permissions=storage.objects.list"
        );
        let answer = send(&rig, "GET", &asked, &[], "").json();
        assert_eq!(answer["permissions"], json!(["storage.objects.get", "storage.objects.list"]));
        assert_eq!(send(&rig, "GET", path, &[], "").status, 501);
    }
    let account = send(&rig, "GET", "/storage/v1/projects/p/serviceAccount", &[], "").json();
    assert!(account["email_address"].as_str().unwrap().contains('@'));
    for (method, path, name) in [
        ("GET", "/storage/v1/b/demo/acl", "acl"),
        ("GET", "/storage/v1/b/demo/notificationConfigs", "notificationConfigs"),
        ("GET", "/storage/v1/b/demo/o/k/acl", "acl"),
        ("GET", "/storage/v1/projects/p/hmacKeys", "hmacKeys"),
    ] {
        let lacking = send(&rig, method, path, &[], "");
        assert_eq!(lacking.status, 501, "{path}");
        assert!(lacking.json()["error"]["message"].as_str().unwrap().contains(name), "{}", lacking.text());
    }
}

#[test]
fn what_nothing_enforces_is_kept_only_on_demand() {
    let policy = r#"{"Statement":[]}"#;
    let public = [("x-amz-acl", "public-read")];
    let rig = Rig::new();
    for path in ["/demo?policy", "/demo?lifecycle"] {
        let refused = send(&rig, "PUT", path, &[], policy);
        assert_eq!((refused.status, refused.element("Code")), (501, "NotImplemented"), "{path}");
        assert!(path.ends_with(refused.element("Subresource")), "{}", refused.text());
    }
    assert_eq!(send(&rig, "PUT", "/demo/k", &public, "x").status, 501);
    assert_eq!(send(&rig, "PUT", "/demo/k", &[("x-amz-acl", "private")], "x").status, 200);

    let rig = Rig::with(Protocol::PlainH1, |config| config.accept_unenforced = true);
    assert_eq!(send(&rig, "PUT", "/demo/k", &public, "x").status, 200);
    assert_eq!(send(&rig, "GET", "/demo?policy", &[], "").element("Code"), "NoSuchBucketPolicy");
    assert_eq!(send(&rig, "PUT", "/demo?policy", &[], policy).status, 204);
    assert_eq!(send(&rig, "GET", "/demo?policy", &[], "").text(), policy);
    assert_eq!(send(&rig, "DELETE", "/demo?policy", &[], "").status, 204);
    assert_eq!(send(&rig, "GET", "/demo?policy", &[], "").status, 404);
    let json = [("content-type", "application/json")];
    let iam = r#"{"bindings": [{"role": "r", "members": ["m"]}]}"#;
    assert_eq!(send(&rig, "PUT", "/storage/v1/b/demo/iam", &json, iam).status, 200);
    assert_eq!(send(&rig, "GET", "/storage/v1/b/demo/iam", &[], "").json()["bindings"][0]["role"], "r");
    let lifecycle = r#"{"lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {"age": 1}}]}}"#;
    let kept = send(&rig, "PATCH", "/storage/v1/b/demo", &json, lifecycle);
    assert_eq!(kept.json()["lifecycle"]["rule"][0]["action"]["type"], "Delete");
}
