//! Stores whose listings can't be what is there: no command takes them for that, and none removes anything by what they don't show.

use std::fs;

use laneway_testkit::{Asked, Program, Scripted, answer};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

/// Pages: the keys of each, and the token of the next one.
type Pages = &'static [(&'static [&'static str], Option<&'static str>)];

/// What is wrong, the pages that show it, and what of the complaint tells it.
const LISTINGS: [(&str, Pages, &str); 3] = [
    ("a page that leads to itself", &[(&["p/a"], Some("1")), (&["p/c"], Some("1"))], "has come before"),
    ("a page that comes again", &[(&["p/a", "p/b"], Some("1")), (&["p/a", "p/b"], None)], "repeats itself"),
    ("keys that nobody asked for", &[(&["p/a", "q/x"], None)], "none of those"),
];

/// Listings in an order of the store's own, as Storj's are.
const UNSORTED: [Pages; 2] =
    [&[(&["p/c", "p/d"], Some("1")), (&["p/a"], None)], &[(&["p/d", "p/c", "p/a"], None)]];

/// Serves the pages in both dialects, and an object of one byte under any key.
fn serve(pages: Pages) -> Scripted {
    Scripted::serve(move |asked: &Asked| {
        let token = |name: &str| {
            let (_, rest) = asked.target.split_once(&format!("{name}="))?;
            rest.split('&').next()?.parse::<usize>().ok()
        };
        let s3 = asked.target.contains("list-type=2");
        let gcs = asked.target.starts_with("/storage/v1/b/bucket/o?");
        let (keys, next) = pages[token("continuation-token").or_else(|| token("pageToken")).unwrap_or(0)];
        match (asked.method.as_str(), s3, gcs) {
            ("GET", true, _) => {
                let of = |key: &&str| {
                    format!(
                        "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
                         <ETag>\"e\"</ETag><Size>1</Size></Contents>"
                    )
                };
                let entries: String = keys.iter().map(of).collect();
                let token = next.map(|next| format!("<NextContinuationToken>{next}</NextContinuationToken>"));
                let (is_truncated, token) = (next.is_some(), token.unwrap_or_default());
                let body = format!(
                    "<ListBucketResult><IsTruncated>{is_truncated}</IsTruncated>{entries}{token}</ListBucketResult>"
                );
                answer(200, &[("Content-Type", "application/xml")], body)
            }
            ("GET", _, true) => {
                let of = |key: &&str| {
                    format!(
                        r#"{{"name":"{key}","bucket":"bucket","size":"1","generation":"1","updated":"2026-01-01T00:00:00Z"}}"#
                    )
                };
                let items = keys.iter().map(of).collect::<Vec<_>>().join(",");
                let token = next.map(|next| format!(r#","nextPageToken":"{next}""#)).unwrap_or_default();
                let body = format!(r#"{{"kind":"storage#objects","items":[{items}]{token}}}"#);
                answer(200, &[("Content-Type", "application/json")], body)
            }
            ("GET" | "HEAD", ..) => answer(200, &[("ETag", "\"e\""), ("x-goog-generation", "1")], "x"),
            _ => answer(403, &[], ""),
        }
    })
}

#[test]
fn an_impossible_listing_ends_every_command_and_removes_nothing() {
    for (about, pages, why) in LISTINGS {
        let server = serve(pages);
        let home = tempfile::tempdir().expect("a folder");
        let program = Program::new(LANEWAY, home.path())
            .with("AWS_ENDPOINT_URL", server.url())
            .with("STORAGE_EMULATOR_HOST", server.url())
            .with("AWS_ACCESS_KEY_ID", "laneway")
            .with("AWS_SECRET_ACCESS_KEY", "secret")
            .with("AWS_REGION", "us-east-1")
            .in_folder(home.path());
        for scheme in ["s3", "gs"] {
            let url = format!("{scheme}://bucket/p/");
            let kept = home.path().join(scheme);
            fs::create_dir(&kept).expect("a folder");
            fs::write(kept.join("kept"), "").expect("written");
            for command in [
                &["ls", "-r", &url][..],
                &["du", "-s", &url],
                &["cp", "-r", &url, "copied"],
                &["sync", "--delete", &url, scheme],
                &["verify", &url, scheme],
                &["rm", "-r", "--dry-run", &url],
            ] {
                let run = program.run(command).exits(1);
                // Pages that come again may be those of a store without order.
                let is_refused =
                    matches!(command[0], "sync" | "verify") && run.stderr.contains("in no order");
                assert!(run.stderr.contains(why) || is_refused, "{about}, {command:?}: {}", run.stderr);
            }
            assert!(kept.join("kept").exists(), "{about}: {scheme}");
        }
        // Batches are POSTs.
        let asked = server.asked();
        let is_read = |asked: &&Asked| matches!(asked.method.as_str(), "GET" | "HEAD");
        assert_eq!(asked.iter().find(|asked| !is_read(asked)).map(|asked| &asked.target), None, "{about}");
    }
}

#[test]
fn a_listing_without_order_ends_only_what_compares() {
    for pages in UNSORTED {
        let server = serve(pages);
        let home = tempfile::tempdir().expect("a folder");
        let program = Program::new(LANEWAY, home.path())
            .with("AWS_ENDPOINT_URL", server.url())
            .with("STORAGE_EMULATOR_HOST", server.url())
            .with("AWS_ACCESS_KEY_ID", "laneway")
            .with("AWS_SECRET_ACCESS_KEY", "secret")
            .with("AWS_REGION", "us-east-1")
            .in_folder(home.path());
        for scheme in ["s3", "gs"] {
            let url = format!("{scheme}://bucket/p/");
            let run = program.run(["ls", "-r", &url]).exits(0);
            let listed = run.text();
            let mut keys: Vec<_> =
                listed.lines().map(|line| line.rsplit('/').next().unwrap_or_default()).collect();
            keys.sort_unstable();
            assert_eq!(keys, ["a", "c", "d"], "{listed}");
            program.run(["rm", "-r", "--dry-run", &url]).exits(0);
            program.run(["cp", "-r", &url, scheme]).exits(0);
            for command in [&["sync", "--delete", &url, scheme][..], &["verify", &url, scheme]] {
                let run = program.run(command).exits(1);
                assert!(run.stderr.contains("in no order") && run.stderr.contains("cp -r"), "{}", run.stderr);
            }
            let run = program.run(["du", &url]).exits(1);
            assert!(run.stderr.contains("use -s for the total"), "{}", run.stderr);
            program.run(["du", "-s", &url]).exits(0);
        }
    }
}

/// GCS's pages say nothing but where to go on.
#[test]
fn a_truncated_s3_page_that_comes_again_is_an_error() {
    let body = "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>p/a</Key><Size>1</Size></Contents></ListBucketResult>";
    let server = Scripted::serve(move |_| answer(200, &[("Content-Type", "application/xml")], body));
    let home = tempfile::tempdir().expect("a folder");
    let program = Program::new(LANEWAY, home.path())
        .with("AWS_ENDPOINT_URL", server.url())
        .with("AWS_ACCESS_KEY_ID", "laneway")
        .with("AWS_SECRET_ACCESS_KEY", "secret")
        .with("AWS_REGION", "us-east-1");
    program
        .run(["ls", "-r", "s3://bucket/p/"])
        .exits(1)
        .complains(&["the listing says that it is truncated, but doesn't go on behind"]);
}
