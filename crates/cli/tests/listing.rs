//! `ls`, `stat`, `cat` and `rm` by the real binary.

use std::io::Read as _;

use laneway_testkit::{Endpoint, Program, Wire, random_bytes};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const SCHEMES: [&str; 2] = ["gs", "s3"];

/// Starts a server with a few objects, and returns it and the program.
fn stocked() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    for (key, len) in [("a", 1), ("p/b", 4700), ("p/c", 0), ("p/q/d", 10)] {
        endpoint.server().store().put("bucket", key, &random_bytes(len, len as usize)).expect("stored");
    }
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

fn urls(scheme: &str, keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| format!("{scheme}://bucket/{key}")).collect()
}

#[test]
fn one_level_is_listed_with_its_prefixes() {
    let (_endpoint, laneway) = stocked();
    for scheme in SCHEMES {
        let ls = |url: &str| {
            let mut lines = laneway.run(["ls", &format!("{scheme}://{url}")]).succeeds().lines();
            lines.sort();
            lines
        };
        assert_eq!(ls("bucket"), urls(scheme, &["a", "p/"]));
        assert_eq!(ls("bucket/p/"), urls(scheme, &["p/b", "p/c", "p/q/"]));
        assert_eq!(ls("bucket/p/b"), urls(scheme, &["p/b"]));
    }
}

#[test]
fn recursively_the_number_of_lines_is_the_number_of_objects() {
    let (_endpoint, laneway) = stocked();
    for scheme in SCHEMES {
        let lines = laneway.run(["ls", "-r", &format!("{scheme}://bucket/")]).succeeds().lines();
        assert_eq!(lines, urls(scheme, &["a", "p/b", "p/c", "p/q/d"]));
        let below = laneway.run(["ls", "-r", &format!("{scheme}://bucket/p/")]).succeeds().lines();
        assert_eq!(below, urls(scheme, &["p/b", "p/c", "p/q/d"]));
    }
}

#[test]
fn more_objects_than_fit_a_page_are_all_listed() {
    let (endpoint, laneway) = stocked();
    for n in 0..2500 {
        endpoint.server().store().put("bucket", &format!("many/{n:04}"), b"").expect("stored");
    }
    for scheme in SCHEMES {
        let lines = laneway.run(["ls", "-r", &format!("{scheme}://bucket/many/")]).succeeds().lines();
        assert_eq!(lines.len(), 2500);
        assert!(lines.is_sorted());
    }
}

#[test]
fn a_long_listing_has_sizes_times_and_a_total() {
    let (_endpoint, laneway) = stocked();
    for scheme in SCHEMES {
        let lines = laneway.run(["ls", "-l", &format!("{scheme}://bucket/p/")]).succeeds().lines();
        let b = lines.iter().find(|line| line.ends_with("/p/b")).expect("b is listed");
        let words: Vec<_> = b.split_whitespace().collect();
        assert_eq!((words.len(), words[0]), (3, "4700"), "{b}");
        assert!(words[1].len() == 20 && words[1].ends_with('Z'), "{b}");
        assert!(lines.contains(&format!("{:34}{scheme}://bucket/p/q/", "")), "{lines:?}");
        assert_eq!(lines.last().map(String::as_str), Some("TOTAL: 2 objects, 4700 bytes (4.59KiB)"));

        let human = laneway.run(["ls", "-lh", &format!("{scheme}://bucket/p/b")]).succeeds().text();
        assert!(human.contains("4.59KiB"), "{human}");
    }
}

#[test]
fn buckets_are_listed_by_the_scheme_alone() {
    let (endpoint, laneway) = stocked();
    endpoint.server().create_bucket("other").expect("made");
    let s3 = laneway.run(["ls", "s3://"]).succeeds().lines();
    assert_eq!(s3, ["s3://bucket/", "s3://other/"]);
    let gs = laneway.with("GOOGLE_CLOUD_PROJECT", "p").run(["ls", "gs://"]).succeeds().lines();
    assert_eq!(gs, ["gs://bucket/", "gs://other/"]);
}

#[test]
fn without_a_url_the_buckets_of_each_store_that_is_set_up_are_listed() {
    let (_endpoint, laneway) = stocked();
    let both = laneway.run(["ls", "--project", "p"]).succeeds().lines();
    assert_eq!(both, ["gs://bucket/", "s3://bucket/"]);
    let run = laneway.run(["ls"]).succeeds();
    assert_eq!(run.lines(), ["s3://bucket/"]);
    for says in ["gs:// is skipped", "--project", "az:// is skipped", "AZURE_STORAGE_ACCOUNT"] {
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
    let bare = laneway.without("AWS_ACCESS_KEY_ID").without("AWS_SECRET_ACCESS_KEY");
    let run = bare.run(["ls"]).exits(1);
    for says in ["--project", "laneway help credentials", "no store is set up"] {
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
}

#[test]
fn a_listing_for_programs_has_a_record_for_each_entry() {
    let (_endpoint, laneway) = stocked();
    for scheme in SCHEMES {
        let records = laneway.run(["ls", "--json", &format!("{scheme}://bucket/p/")]).succeeds().json();
        let b = records.iter().find(|r| r["url"] == format!("{scheme}://bucket/p/b")).expect("b is listed");
        assert_eq!((b["kind"].as_str(), b["size"].as_u64()), (Some("object"), Some(4700)));
        assert!(b["updated"].as_str().is_some_and(|time| time.ends_with('Z')));
        let prefixes: Vec<_> =
            records.iter().filter(|r| r["kind"] == "prefix").map(|r| r["url"].clone()).collect();
        assert_eq!(prefixes, [format!("{scheme}://bucket/p/q/")]);
    }
}

#[test]
fn du_counts_objects_folders_and_all_together() {
    let (_endpoint, laneway) = stocked();
    for scheme in SCHEMES {
        let url = |key: &str| format!("{scheme}://bucket/{key}");
        let line = |bytes: u64, key: &str| format!("{bytes:<11}  {}", url(key));
        let below =
            [line(4700, "p/b"), line(0, "p/c"), line(10, "p/q/d"), line(10, "p/q/"), line(4710, "p/")];
        assert_eq!(laneway.run(["du", &url("p")]).succeeds().lines(), below);
        assert_eq!(laneway.run(["du", &url("p/")]).succeeds().lines(), below);
        let all = laneway.run(["du", &url("")]).succeeds().lines();
        assert_eq!(all.first(), Some(&line(1, "a")));
        assert_eq!(all.last(), Some(&line(4711, "")));
        assert_eq!(laneway.run(["du", "-s", &url("p/")]).succeeds().lines(), [line(4710, "p/")]);
        let two =
            laneway.run(["du", "-sc", "--readable-sizes", &url("p/b"), &url("p/q*")]).succeeds().lines();
        assert_eq!(
            two,
            [
                format!("{:<11}  {}", "4.59KiB", url("p/b")),
                format!("{:<11}  {}", "10B", url("p/q*")),
                format!("{:<11}  total", "4.60KiB"),
            ]
        );
        let record = laneway.run(["du", "-s", "--json", &url("p/")]).succeeds().record("usage");
        assert_eq!((record["objects"].as_u64(), record["bytes"].as_u64()), (Some(3), Some(4710)));
        assert_eq!(record["url"], url("p/"));
        let text = laneway.run(["du", "-s", "--include", "q/**", &url("p/")]).succeeds().text();
        assert!(text.starts_with("10 "), "{text}");
        laneway.run(["du", &url("none/")]).exits(1);
    }
}

#[test]
fn du_counts_what_an_inventory_shows_and_lists_nothing() {
    let (endpoint, laneway) = stocked();
    let laneway = laneway.in_folder(endpoint.folder());
    let write = |lines: &[String]| {
        std::fs::write(endpoint.folder().join("i"), lines.join("\n")).expect("written");
    };
    for scheme in SCHEMES {
        let url = |key: &str| format!("{scheme}://bucket/{key}");
        let expected = laneway.run(["du", &url("p/")]).succeeds().lines();
        let mut lines = laneway.run(["ls", "-r", "--json", &url("")]).succeeds().lines();
        write(&lines);
        let listed = endpoint.server().counters().requests_by_verb.get("list").copied();
        assert_eq!(laneway.run(["du", "--inventory", "i", &url("p/")]).succeeds().lines(), expected);
        let filtered = ["du", "-s", "--inventory", "i", "--include", "q/**", &url("p")];
        assert!(laneway.run(filtered).succeeds().text().starts_with("10 "));
        lines.retain(|line| line.contains("/p/"));
        lines.reverse();
        write(&lines);
        laneway.run(["du", "--inventory", "i", &url("p")]).exits(1).complains(&["i:2: ", "unsorted"]);
        assert!(
            laneway.run(["du", "-s", "--inventory", "i", &url("p")]).succeeds().text().starts_with("4710 ")
        );
        laneway.run(["du", "--inventory", "i", &url("none/")]).exits(1);
        // One pass over the inventory computes all sums, in any order.
        let sums = ["du", "-s", "-c", "--inventory", "i", &url("p"), &url("p/q/"), &url("none")];
        let run = laneway.run(sums).exits(1);
        let counted: Vec<_> =
            run.lines().iter().map(|line| line.split_whitespace().next().map(str::to_owned)).collect();
        assert_eq!(counted, ["4710", "10", "4720"].map(|sum| Some(sum.to_owned())));
        run.complains(&[&url("none"), "nothing below this URL"]);
        lines.reverse();
        write(&lines);
        let run = laneway.run(["du", "--inventory", "i", &url("p/"), &url("p/q/")]).succeeds();
        assert!(run.lines().len() > expected.len() && run.lines().starts_with(&expected), "{}", run.text());
        for (refused, why) in [
            (vec![url("p"), format!("{scheme}://other/q")], "in several"),
            (vec![url("p*")], "one bucket or prefix"),
            (vec![url("p*"), url("q")], "a bucket or prefix"),
        ] {
            let command = ["du", "--inventory", "i"].map(str::to_owned).into_iter().chain(refused);
            laneway.run(command).exits(2).complains(&["i: ", why]);
        }
        assert_eq!(endpoint.server().counters().requests_by_verb.get("list").copied(), listed);
    }
}

#[test]
fn an_empty_bucket_is_no_failure() {
    let (endpoint, laneway) = stocked();
    endpoint.server().create_bucket("empty").expect("made");
    for scheme in SCHEMES {
        assert!(laneway.run(["ls", &format!("{scheme}://empty")]).succeeds().text().is_empty());
        assert!(laneway.run(["ls", "-r", &format!("{scheme}://empty/")]).succeeds().text().is_empty());
        laneway.run(["ls", &format!("{scheme}://empty/none/")]).exits(1);
    }
}

#[test]
fn stat_shows_what_the_store_knows() {
    let (_endpoint, laneway) = stocked();
    for scheme in SCHEMES {
        let url = format!("{scheme}://bucket/p/b");
        let text = laneway.run(["stat", &url]).succeeds().text();
        assert!(text.starts_with(&format!("{url}:\n")), "{text}");
        assert!(text.contains("4700 (4.59KiB)"), "{text}");
        let record = laneway.run(["stat", "--json", &url]).succeeds().record("object");
        assert_eq!(record["size"], 4700);
    }
    let record = laneway.run(["stat", "--json", "gs://bucket/p/b"]).succeeds().record("object");
    assert!(record["generation"].as_u64().is_some() && record["crc32c"].is_string(), "{record}");
}

#[test]
fn cat_takes_ranges_as_http_counts_them() {
    let (endpoint, laneway) = stocked();
    let bytes = random_bytes(4700, 4700);
    assert_eq!(endpoint.server().store().read("bucket", "p/b").expect("there"), bytes);
    for scheme in SCHEMES {
        let url = format!("{scheme}://bucket/p/b");
        for (range, expected) in [
            ("0-0", &bytes[..1]),
            ("10-19", &bytes[10..20]),
            ("4690-", &bytes[4690..]),
            ("-7", &bytes[4693..]),
            ("4000-99999", &bytes[4000..]),
            ("10-19,-7,0-0", &[&bytes[10..20], &bytes[4693..], &bytes[..1]].concat()),
            ("0-9, 0-9,5-14", &[&bytes[..10], &bytes[..10], &bytes[5..15]].concat()),
        ] {
            assert_eq!(
                laneway.run(["cat", "--range", range, &url]).succeeds().stdout,
                expected,
                "{range} of {url}"
            );
        }
        laneway.run(["cat", "--range", "4700-", &url]).exits(1).complains(&[&url]);
        for range in ["9-1", "0-1,9-1", "0-1,"] {
            assert!(laneway.run(["cat", "--range", range, &url]).exits(2).stdout.is_empty(), "{range}");
        }
        // An unsatisfiable range prints nothing at all, because later bytes would take its place.
        for range in ["0-1,4700-,5-9", "0-1,4700-4701,5-9", "0-1,99999-"] {
            let run = laneway.run(["cat", "--range", range, &url]).exits(1).complains(&[&url]);
            assert!(run.stdout.is_empty(), "{range}");
        }
        assert!(laneway.run(["cat", &format!("{scheme}://bucket/p/c")]).succeeds().stdout.is_empty());
        let both = laneway.run(["cat", &format!("{scheme}://bucket/a"), &url]).succeeds().stdout;
        assert_eq!(both.len(), 4701);
    }
}

/// Short ranges are collected in memory, long ones are written as they arrive. Either way all bytes come from
/// one version.
#[test]
fn several_ranges_of_cat_are_of_one_state_of_the_object() {
    const MIB: usize = 1 << 20;
    let (endpoint, laneway) = stocked();
    let (first, second) = (random_bytes(1, 40 * MIB), random_bytes(2, 40 * MIB));
    let store = endpoint.server().store();
    for scheme in SCHEMES {
        let url = format!("{scheme}://bucket/large");
        store.put("bucket", "large", &first).expect("put");
        let ranges = "-5,0-9,1048576-20971519,100-8388707,100-8388707,7-";
        let expected = [
            &first[40 * MIB - 5..],
            &first[..10],
            &first[MIB..20 * MIB],
            &first[100..8 * MIB + 100],
            &first[100..8 * MIB + 100],
            &first[7..],
        ]
        .concat();
        let run = laneway.run(["cat", "--range", ranges, &url]).succeeds();
        assert!(run.stdout == expected, "{scheme}: {} bytes", run.stdout.len());

        // The pipe fills up long before the object has been read.
        let mut reading = laneway.start(["cat", "--range", "0-9,7-,5-", &url]);
        let mut begun = vec![0; 10];
        let mut stdout = reading.stdout();
        stdout.read_exact(&mut begun).expect("it begins");
        assert!(begun == first[..10]);
        store.put("bucket", "large", &second).expect("put");
        let mut rest = Vec::new();
        stdout.read_to_end(&mut rest).expect("it ends");
        assert!(first[7..].starts_with(&rest), "{scheme}: {} bytes of a mixture", rest.len());
        reading.end().exits(1).complains(&[&url]);
    }
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let (endpoint, laneway) = stocked();
    endpoint.server().store().put("bucket", "large", &random_bytes(1, 5 << 20)).expect("stored");
    for n in 0..3000 {
        let key = format!("many/{}{n:04}", "x".repeat(200));
        endpoint.server().store().put("bucket", &key, b"").expect("stored");
    }
    for arguments in [&["cat", "s3://bucket/large"][..], &["ls", "-r", "s3://bucket/"]] {
        let mut running = laneway.start(arguments);
        drop(running.stdout());
        let run = running.end().exits(0);
        assert_eq!(run.stderr, "");
    }
}

#[test]
fn rm_takes_one_object_at_its_word() {
    for scheme in SCHEMES {
        let (endpoint, laneway) = stocked();
        laneway.run(["rm", &format!("{scheme}://bucket/a")]).succeeds();
        assert_eq!(endpoint.server().store().keys("bucket"), ["p/b", "p/c", "p/q/d"]);
        // A prefix is not an object. Without -r nothing below it is removed.
        laneway.run(["rm", &format!("{scheme}://bucket/p/")]).exits(2).complains(&["p/", "-r"]);
        assert_eq!(endpoint.server().store().keys("bucket"), ["p/b", "p/c", "p/q/d"]);
    }
}

#[test]
fn rm_r_with_yes_removes_everything_below_and_nothing_beside() {
    for scheme in SCHEMES {
        let (endpoint, laneway) = stocked();
        endpoint.server().store().put("bucket", "pp", b"beside").expect("stored");
        for n in 0..1200 {
            endpoint.server().store().put("bucket", &format!("p/many/{n}"), b"").expect("stored");
        }
        let run = laneway.run(["rm", "-r", "--yes", &format!("{scheme}://bucket/p/")]).succeeds();
        assert_eq!(endpoint.server().store().keys("bucket"), ["a", "pp"]);
        assert!(run.stderr.starts_with("1203 objects removed in "), "{}", run.stderr);
    }
}

#[test]
fn rm_takes_patterns() {
    for scheme in SCHEMES {
        let (endpoint, laneway) = stocked();
        laneway.run(["rm", "--yes", "-q", &format!("{scheme}://bucket/p/*")]).succeeds();
        assert_eq!(endpoint.server().store().keys("bucket"), ["a", "p/q/d"]);
    }
}

#[test]
fn h_is_help_unless_a_long_listing_makes_it_sizes() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    endpoint.server().store().put("bucket", "k", &[0; 4700]).expect("stored");
    for arguments in [&["ls", "-h"][..], &["ls", "-h", "gs://bucket"], &["ls", "--help"]] {
        let text = laneway.run(arguments).succeeds().text();
        assert!(
            text.contains("Usage: laneway ls") && text.contains("--s3-endpoint"),
            "{arguments:?}: {text}"
        );
    }
    assert!(laneway.run(["ls", "-lh", "gs://bucket"]).succeeds().text().contains("4.59KiB"));
    assert!(
        laneway.run(["ls", "-l", "--readable-sizes", "gs://bucket"]).succeeds().text().contains("4.59KiB")
    );
    assert_eq!(
        laneway.run(["ls", "-lh"]).succeeds().lines().last().map(|line| line.trim().to_owned()),
        Some("s3://bucket/".to_owned())
    );
}

#[test]
fn wildcards_mean_what_matches_to_every_verb_that_looks() {
    for scheme in SCHEMES {
        let (endpoint, laneway) = stocked();
        for key in ["site/x", "site/y/z", "suite/x"] {
            endpoint.server().store().put("bucket", key, key.as_bytes()).expect("stored");
        }
        let url = |key: &str| format!("{scheme}://bucket/{key}");
        assert_eq!(laneway.run(["ls", &url("s?te/")]).succeeds().lines(), [url("site/y/"), url("site/x")]);
        assert_eq!(laneway.run(["ls", &url("s*te/")]).succeeds().lines().len(), 3);
        assert_eq!(
            laneway.run(["ls", "-r", &url("s?te/")]).succeeds().lines(),
            [url("site/x"), url("site/y/z")]
        );
        assert_eq!(laneway.run(["cat", &url("s*/x")]).succeeds().text(), "site/xsuite/x");
        let stat = laneway.run(["stat", &url("s*/x")]).succeeds();
        assert_eq!(stat.lines().iter().filter(|line| line.contains("://")).count(), 2, "{}", stat.text());
        laneway.run(["cat", &url("no*")]).exits(1).complains(&["no*"]);
        laneway.run(["stat", &url("no*")]).exits(1).complains(&["no*"]);
        laneway.run(["cp", "-q", "-r", &url("s?te/"), "to/"]).succeeds();
        assert!(endpoint.folder().join("to/site/y/z").is_file());
        for verb in ["ls", "cat", "stat"] {
            let bucket = format!("{scheme}://buck*/k");
            laneway.run([verb, &bucket]).exits(2).complains(&["wildcards", "buck*"]);
        }
    }
}
