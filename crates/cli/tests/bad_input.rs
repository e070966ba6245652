//! Bad input. The program prints one line on stderr that names the object and the cause. It exits with the documented status, and neither
//! loses data nor leaves a half-written file.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use laneway_server::{Config, Faults};
use laneway_testkit::{Endpoint, Program, Scripted, Wire, answer, random_bytes};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

fn plain() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("the folder is read")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A command, its exit status, and a text that a line of stderr contains. With status 0 the text may be on stdout as well.
///
/// These exist beforehand: `f`, `tree/a`, `tree/b`, `empty/`, `lines` (a line for `run` that has an option of all verbs)
/// and `not-json`. The bucket has `k`, `p/a` and `p/b`.
const CASES: &[(&str, i32, &str)] = &[
    // Input whose error message was poor in an earlier version.
    ("verify nodir gs://bucket/p", 2, "nodir: does not exist"),
    ("verify f gs://bucket/p", 2, "f: is a file"),
    ("verify tree gs://bucket/p", 1, "b: "),
    ("sync gs://bucket/none tree", 1, "gs://bucket/none: does not exist"),
    ("sync s3://bucket/none tree --delete", 1, "s3://bucket/none: does not exist"),
    ("sync none gs://bucket/q", 1, "none: "),
    ("serve --loss 90%", 2, "at most 50%"),
    ("serve --served-connections 0", 2, "--served-connections"),
    ("cp f gs://bucket/{long}", 1, "1024"),
    ("cp f s3://bucket/{long}", 1, "KeyTooLong"),
    ("mb gs://UPPER", 1, "UPPER"),
    ("mb s3://UPPER", 1, "InvalidBucketName"),
    ("rm gs://bucket/none*", 1, "no objects match gs://bucket/none*"),
    ("rm -r s3://bucket/none*", 1, "no objects match s3://bucket/none*"),
    ("cp gs://bucket/none* d/", 1, "no objects match gs://bucket/none*"),
    ("mv s3://bucket/*.none d/", 1, "no objects match s3://bucket/*.none"),
    ("cp gs://bucket/p x", 1, "gs://bucket/p: is a prefix with objects below it; use -r"),
    ("cp s3://bucket/p x", 1, "s3://bucket/p: is a prefix with objects below it; use -r"),
    ("mv gs://bucket/p x", 1, "is a prefix with objects below it; use -r"),
    ("rm gs://bucket/p", 1, "gs://bucket/p: is a prefix with objects below it; use -r"),
    ("rm s3://bucket/p", 1, "s3://bucket/p: is a prefix with objects below it; use -r"),
    ("cp f gs://bucket/x --max-connections NaN", 2, "not a number between 1 and 65535"),
    ("cp f gs://bucket/x --max-connections 99999999999999999999", 2, "not a number between 1 and 65535"),
    ("cp f gs://bucket/x --max-connections 0", 2, "not a number between 1 and 65535"),
    ("sync tree gs://bucket/q --delete --max-delete -1", 2, "expects a count of 0 or more"),
    ("sync tree gs://bucket/q --delete --max-delete few", 2, "expects a count of 0 or more"),
    ("sync tree gs://bucket/q --delete --max-delete 99999999999999999999", 2, "expects a count of 0 or more"),
    ("cp f gs://bucket/x --metadata 'a b=c'", 2, "the name \"a b\" may hold only letters, digits"),
    ("cp f gs://bucket/x --metadata 'ä=c'", 2, "may hold only letters, digits"),
    ("cp f gs://bucket/x --metadata a", 2, "write it as key=value"),
    ("cp f gs://bucket/x --metadata =a", 2, "write it as key=value"),
    ("run lines", 2, "--anonymous belongs before run: laneway --anonymous run ..."),
    ("run runs", 2, "`run` can't be used inside `run`"),
    ("run serves", 2, "`serve` can't be used inside `run`"),
    ("run cats", 2, "`cat` can't be used inside `run`"),
    ("mv - gs://bucket/x", 2, "standard input can't be moved"),
    // Options of other tools.
    ("cp -R tree gs://bucket/one/", 0, "2 files"),
    ("ls -R gs://bucket", 0, "gs://bucket/p/a"),
    ("sync -r tree gs://bucket/two", 0, "2 files copied"),
    ("sync -R tree gs://bucket/two", 0, "2 unchanged"),
    ("rm -f gs://bucket/none", 0, "removed"),
    ("rm -f s3://bucket/none", 0, "removed"),
    ("rm -rf gs://bucket/none/", 0, "removed"),
    ("rm -rf s3://bucket/none/", 0, "removed"),
    ("rm -f gs://nowhere/k", 1, "gs://nowhere/k"),
    ("rm -f s3://nowhere/k", 1, "s3://nowhere/k"),
    ("rm --force gs://bucket/none", 0, "removed"),
    ("sync -n tree gs://bucket/three", 0, "would copy 2 files"),
    ("sync --dryrun tree gs://bucket/three", 0, "would copy 2 files"),
    ("cp --dryrun f gs://bucket/three", 0, "would copy 1 file"),
    ("sync -d tree gs://bucket/three", 2, "-d: use --delete"),
    ("sync --size-only tree gs://bucket/p", 0, "2 unchanged"),
    ("sync -u tree gs://bucket/p", 0, "0 files copied"),
    ("sync --update tree gs://bucket/p", 0, "0 files copied"),
    ("sync --update --size-only tree gs://bucket/p", 2, "cannot be used with"),
    ("cp -u f gs://bucket/x", 2, "use sync"),
    ("cp --size-only f gs://bucket/x", 2, "use sync"),
    ("cp -c f gs://bucket/x", 2, "use sync"),
    ("cp --checksum f gs://bucket/x", 2, "use sync"),
    ("verify -c gs://bucket/p s3://bucket/p", 0, "2 objects match by md5"),
    ("verify --checksum gs://bucket/p s3://bucket/p", 0, "2 objects match"),
    ("verify --size-only tree gs://bucket/p", 0, "2 objects match by name and size"),
    ("cp --no-progress f gs://bucket/x", 0, "1 file"),
    ("cp --only-show-errors gs://bucket/none x", 1, "gs://bucket/none"),
    ("du -h gs://bucket/p", 0, "gs://bucket/p/"),
    ("du -sh gs://bucket/p", 0, "2B"),
    ("du --human-readable gs://bucket/p", 0, "1B"),
    ("du --max-depth 0 gs://bucket", 0, "gs://bucket/"),
    ("du --max-depth 1 gs://bucket", 0, "gs://bucket/p/"),
    ("du --max-depth x gs://bucket", 2, "expects a count of 0 or more"),
    ("ls --limit 1 gs://bucket/p/", 0, "gs://bucket/p/a"),
    ("ls --limit -1 gs://bucket/p/", 2, "-1"),
    ("ls --limit few gs://bucket/p/", 2, "expects a count of 0 or more"),
    ("ls --human-readable -l gs://bucket/k", 0, "gs://bucket/k"),
    ("ls --no-sign-request gs://bucket/k", 0, "gs://bucket/k"),
    ("ls --endpoint-url http://127.0.0.1:1 --retry-for 0 s3://bucket", 1, "127.0.0.1:1"),
    (
        "cp --content-disposition inline --content-language de --content-encoding br --cache-control no-store f s3://bucket/x",
        0,
        "1 file",
    ),
    ("sync --content-language de --cache-control no-store tree gs://bucket/four", 0, "2 files copied"),
    ("cp -p f gs://bucket/x", 0, "1 file"),
    ("sync -P tree gs://bucket/five", 0, "2 files copied"),
    ("presign s3://bucket/k", 0, "X-Amz-Signature"),
    ("signurl s3://bucket/k", 0, "X-Amz-Signature"),
    ("copy f gs://bucket/x", 0, "1 file"),
    ("move gs://bucket/x x", 0, "1 file moved"),
    ("rsync tree gs://bucket/two", 0, "2 unchanged"),
    ("cp -m f gs://bucket/x", 2, "-m: not needed: Laneway chooses these settings by itself"),
    ("cp --part-size 5M f gs://bucket/x", 2, "--part-size: not needed"),
    ("cp --part-size=5M f gs://bucket/x", 2, "--part-size: not needed"),
    ("sync --concurrency 8 tree gs://bucket/x", 2, "--concurrency: not needed"),
    ("cp --transfers 8 f gs://bucket/x", 2, "--transfers: not needed"),
    ("sync --acl private tree gs://bucket/x/", 0, "2 files copied"),
    ("setmeta --grants a=b gs://bucket/k", 2, "--grants: use --acl NAME"),
    ("ls --no-verify-ssl gs://bucket", 2, "use --ca-cert FILE to trust a certificate"),
    ("ls --insecure gs://bucket", 2, "use --ca-cert FILE"),
    ("cp --retries 3 f gs://bucket/x", 2, "use --retry-for"),
    ("mb --project other gs://another", 0, "made gs://another"),
    ("cp --sse-kms-key-id k f s3://bucket/x", 2, "use --kms-key"),
    ("sync -e tree gs://bucket/x", 2, "use --ignore-symlinks"),
    ("cp --progress f gs://bucket/x", 2, "--progress: not needed"),
    ("upload f gs://bucket/x", 2, "upload: use cp"),
    ("gsutil cp f gs://bucket/x", 2, "write the verb after laneway"),
    ("s3 cp f s3://bucket/x", 2, "write the verb after laneway"),
    ("configure", 2, "uses the credentials of gcloud and aws"),
    ("cp --predefined-acl private f s3://bucket/x", 0, "1 file"),
    ("ls -r --max-size 10Gi gs://bucket/p", 0, "gs://bucket/p/a"),
    ("sync --no-clobber tree gs://bucket/x", 2, "use --ignore-existing"),
    ("sync --compare-dest d tree gs://bucket/x", 2, "--compare-dest: not supported"),
    ("cp f gs://bucket/x --bandwidth-limit 10M", 0, "1 file"),
    ("cp f gs://bucket/x --bwlimit 10M", 2, "use --bandwidth-limit"),
    ("ls -r --min-size 1k gs://bucket/p", 0, "nothing passes the filters"),
    ("ls -r --max-size 10G gs://bucket/p", 0, "gs://bucket/p/a"),
    ("sync --checksum --size-only tree gs://bucket/x", 2, "cannot be used with"),
    // Schemes and URLs.
    ("cp ftp://host/file .", 2, "unknown scheme ftp://"),
    ("ls http://host/file", 2, "unknown scheme http://"),
    ("ls az://container", 1, "no storage account is set"),
    ("cat s3:///key", 2, "names no bucket"),
    ("cp gs:///key x", 2, "names no bucket"),
    ("rm gs://", 2, "names no bucket"),
    ("sync gs:// tree", 2, "gs://"),
    ("cp '' gs://bucket/x", 2, "the name is empty"),
    ("ls ''", 2, "the name is empty"),
    ("ls gs://buck*t", 2, "wildcards match keys"),
    ("ls gs://user:password@bucket", 2, "a URL can't hold a user or a password"),
    ("cp f gs://bucket#1/x", 1, "bucket#1"),
    ("ls f", 2, "this is a local path"),
    ("cat f", 2, "this is a local path"),
    ("stat f", 2, "this is a local path"),
    ("rm f", 2, "this is a local path"),
    ("du f", 2, "this is a local path"),
    ("sign f", 2, "this is a local path"),
    ("mb f", 2, "f"),
    ("rb f", 2, "f"),
    ("setmeta --content-type a/b f", 2, "f"),
    ("ls -", 2, "-: name an object"),
    ("rm -", 2, "-: name an object"),
    ("mb gs://bucket/k", 2, "gs://bucket/k"),
    ("rb gs://bucket/k", 2, "gs://bucket/k"),
    ("mb s3://ab", 1, "InvalidBucketName"),
    // Sources that don't exist.
    ("ls gs://nowhere", 1, "gs://nowhere"),
    ("ls s3://nowhere", 1, "NoSuchBucket"),
    ("du gs://nowhere", 1, "gs://nowhere"),
    ("ls gs://bucket/none", 1, "there is no such object or prefix"),
    ("ls gs://bucket/none/*", 1, "there is no such object or prefix"),
    ("cat gs://bucket/none", 1, "not found"),
    ("stat s3://bucket/none", 1, "not found"),
    ("rm gs://bucket/none", 1, "not found"),
    ("rm s3://bucket/none", 1, "not found"),
    ("cp gs://bucket/none x", 1, "not found"),
    ("cp s3://bucket/none x", 1, "not found"),
    ("mv s3://bucket/none x", 1, "not found"),
    ("cp gs://bucket/none gs://bucket/other", 1, "not found"),
    ("setmeta --content-type a/b gs://bucket/none", 1, "not found"),
    ("cp -r gs://bucket/none/ y", 1, "no object lies under this prefix"),
    ("rm -r gs://bucket/none/", 1, "no object lies under this prefix"),
    ("cp none gs://bucket/", 1, "none"),
    ("cp -r none/ s3://bucket/", 1, "none"),
    ("mv none gs://bucket/", 1, "none"),
    ("hash none", 1, "none"),
    ("run none", 2, "none: can't be read"),
    ("cp -r tree gs://bucket/x --files-from none", 1, "none"),
    ("rm --files-from none", 1, "none"),
    ("cp -r tree gs://bucket/x --files-from none --newer 7d", 2, "can't be combined"),
    ("rm --files-from none gs://bucket/x --exclude *.tmp", 2, "can't be combined"),
    ("sync tree gs://bucket/x --exclude-from none", 2, "none"),
    ("rb gs://nowhere", 1, "gs://nowhere"),
    ("--ca-cert none ls gs://bucket", 2, "CA file none"),
    // Combinations that the program refuses.
    ("cp f f2", 2, "one end of a copy has to be in a store"),
    ("sync tree empty", 2, "one end of a sync has to be in a store"),
    ("verify gs://bucket/p gs://bucket/p", 2, "can't be compared with itself"),
    ("verify gs://bucket/* s3://bucket/p", 2, "patterns can't be compared"),
    ("verify - gs://bucket/p", 2, "is not a folder"),
    ("cp gs://bucket/k gs://bucket/k", 2, "can't be copied to itself"),
    ("cp -r gs://bucket/p gs://bucket/p/q", 2, "can't be copied to itself"),
    ("cp tree gs://bucket/x", 2, "-r"),
    ("cp gs://bucket/p/ x", 2, "names a folder; use -r"),
    ("rm gs://bucket/p/", 2, "names a folder; use -r"),
    ("cp f tree gs://bucket/one", 2, "end it with a slash"),
    ("cp gs://bucket/p/* x", 2, "end it with a slash"),
    ("cp - gs://bucket/", 2, "standard input has no name"),
    ("cp -r gs://bucket/p -", 2, "standard output takes one object"),
    ("cp -z txt gs://bucket/k x", 2, "compressed"),
    ("cp -z '' f gs://bucket/x", 2, "extension"),
    ("cp --json gs://bucket/k -", 2, "standard output carries the object's bytes"),
    ("cp f gs://bucket/x --expect-size 1", 0, "1 file"),
    ("cp gs://bucket/k x --expect-size 1", 2, "only for uploads from standard input"),
    ("sync gs://bucket/p gs://bucket/p/q", 2, "overlap"),
    ("sync tree gs://bucket/q --max-delete 1", 2, "--delete"),
    ("sync tree gs://bucket/q --existing --ignore-existing", 2, "cannot be used with"),
    ("ls gs://bucket --exclude x", 2, "-r"),
    ("du --summarize --max-depth 1 gs://bucket", 2, "cannot be used with"),
    ("cp f gs://bucket/x --lock-mode governance", 2, "--lock-until"),
    ("cp f gs://bucket/x --lock-mode soft --lock-until 2030-01-01", 2, "governance or compliance"),
    ("cp f gs://bucket/x --lock-mode governance --lock-until soon", 2, "2027-01-31"),
    // Invalid values.
    ("cp f gs://bucket/x --header 'Content-Length: 5'", 2, "only Laneway may set"),
    ("cp f gs://bucket/x --header 'Host: elsewhere'", 2, "only Laneway may set"),
    ("cp f gs://bucket/x --header nothing", 2, "'Name: value'"),
    ("cp f gs://bucket/x --bandwidth-limit fast", 2, "100Mbit/s"),
    ("cp f gs://bucket/x --bandwidth-limit 0M", 2, "100Mbit/s"),
    ("cp f gs://bucket/x --bandwidth-limit -1M", 2, "-1"),
    ("cp f gs://bucket/x --retry-for soon", 2, "50ms"),
    ("cp f gs://bucket/x --retry-for 5", 2, "50ms"),
    ("cp - gs://bucket/x --expect-size many", 2, "256KiB"),
    ("cp - gs://bucket/x --expect-size 99999999999999999999T", 2, "256KiB"),
    ("ls -r --newer yesterday gs://bucket", 2, "36h"),
    ("ls -r --exclude / gs://bucket", 2, "not a pattern"),
    ("ls --s3-addressing sideways s3://bucket", 2, "sideways"),
    ("ls --s3-endpoint ftp://host s3://bucket", 1, "ftp://host"),
    ("cat --range 5-1 gs://bucket/k", 2, "5-1"),
    ("cat --range x gs://bucket/k", 2, "x"),
    ("cat --range 9-10 gs://bucket/k", 1, "range"),
    ("serve --rtt soon", 2, "50ms"),
    ("serve --bandwidth wide", 2, "100Mbit/s"),
    ("serve --connection-bandwidth thin", 2, "100Mbit/s"),
    ("serve --connection-bandwidth 0MB/s", 2, "100Mbit/s"),
    ("serve --reset-surplus", 2, "--served-connections"),
    ("serve --max-streams -1", 2, "-1"),
    ("serve --max-streams x", 2, "expects a count of 0 or more"),
    ("serve --fault 'get explode'", 2, "explode"),
    ("serve --like azure", 2, "azure"),
    ("serve --bucket Capital", 2, "Capital"),
    ("sign --expires soon s3://bucket/k", 2, "soon"),
    ("sign --expires 30d s3://bucket/k", 1, "at most 7 days"),
    ("completions cobol", 2, "cobol"),
    // Commands.
    ("", 2, "Usage"),
    ("upload f gs://bucket/x", 2, "upload"),
    ("cp", 2, "<SRC>"),
    ("cp f", 2, "<DST>"),
    ("sync tree", 2, "<DST>"),
    ("rm", 2, "<URL>"),
    ("du", 2, "<URL>"),
    ("cp --no-such-option f gs://bucket/x", 2, "--no-such-option"),
    ("cp -f f gs://bucket/x", 2, "'-f'"),
    ("sync --dry-rum tree gs://bucket/x", 2, "--dry-run"),
    ("cp f gs://bucket/x --manifest f", 1, "not a manifest"),
    ("ls --inventory f gs://bucket", 2, "--inventory"),
    ("du --inventory not-json gs://bucket", 1, "not-json"),
];

/// The standard library's wording of errors, and advice that doesn't help. No message may contain them.
const RAW: &[&str] =
    &["os error", "invalid digit found", "number too large", "from empty string", "as a value, use"];

#[test]
fn each_case_of_bad_input_gets_its_answer() {
    let (endpoint, laneway) = plain();
    for key in ["k", "p/a", "p/b"] {
        endpoint.server().store().put("bucket", key, b"x").expect("stored");
    }
    for folder in ["tree", "empty"] {
        fs::create_dir(endpoint.folder().join(folder)).expect("made");
    }
    for (name, text) in [
        ("f", "x"),
        ("tree/a", "x"),
        ("tree/b", "y"),
        ("lines", "cp f gs://bucket/x --anonymous\n"),
        ("runs", "run x\n"),
        ("serves", "serve\n"),
        ("cats", "cat gs://bucket/k\n"),
        ("not-json", "{\n"),
    ] {
        fs::write(endpoint.folder().join(name), text).expect("written");
    }
    // Make the tree's files older than any object.
    let before = std::time::UNIX_EPOCH;
    for name in ["tree/a", "tree/b"] {
        let file = fs::File::options().write(true).open(endpoint.folder().join(name)).expect("opened");
        file.set_modified(before).expect("set");
    }
    let laneway = laneway.with("GOOGLE_CLOUD_PROJECT", "project");
    let mut wrong = Vec::new();
    for (command, status, says) in CASES {
        let command = command.replace("{long}", &"x".repeat(1500));
        let run = laneway.run(shlex::split(&command).expect("a command"));
        let all = if *status == 0 { run.text() + &run.stderr } else { run.stderr.clone() };
        let is_said = all.lines().any(|line| line.contains(says));
        let raw = RAW.iter().find(|raw| all.contains(*raw));
        if run.status != Some(*status) || !is_said || raw.is_some() {
            let command = command.chars().take(100).collect::<String>();
            wrong.push(format!("{command}\n    {:?} {}", run.status, all.trim_end()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

#[test]
fn compressing_nothing_or_on_the_way_down_is_bad_usage() {
    let (endpoint, laneway) = plain();
    fs::write(endpoint.folder().join("f.txt"), "x").expect("written");
    endpoint.server().store().put("bucket", "k.txt", b"x").expect("stored");
    for extensions in ["", "txt,", ".", "a/b"] {
        let run = laneway.run(["cp", "-z", extensions, "f.txt", "gs://bucket/f.txt"]).exits(2);
        assert!(run.stderr.contains("--gzip-local") && run.stderr.contains("extension"), "{}", run.stderr);
    }
    laneway.run(["cp", "-z", "txt", "gs://bucket/k.txt", "back"]).exits(2).complains(&["back", "compressed"]);
    assert_eq!(entries(&endpoint.folder()), ["f.txt"]);
    assert_eq!(endpoint.server().store().keys("bucket"), ["k.txt"]);
}

#[test]
fn a_missing_bucket_is_named() {
    let (endpoint, laneway) = plain();
    fs::write(endpoint.folder().join("f"), "x").expect("written");
    laneway.run(["cp", "f", "s3://nowhere/f"]).exits(1).complains(&[
        "s3://nowhere/f",
        "not found",
        "NoSuchBucket",
    ]);
    laneway.run(["cp", "s3://nowhere/f", "back"]).exits(1).complains(&["s3://nowhere", "not found"]);
    laneway.run(["ls", "s3://nowhere/"]).exits(1).complains(&["s3://nowhere", "not found"]);
    laneway.run(["--anonymous", "ls", "gs://nowhere/"]).exits(1).complains(&["gs://nowhere", "not found"]);
    assert_eq!(entries(&endpoint.folder()), ["f"]);
}

#[test]
fn a_missing_object_is_named_and_leaves_no_file() {
    let (endpoint, laneway) = plain();
    for url in ["s3://bucket/none", "gs://bucket/none"] {
        laneway.run(["--anonymous", "cp", url, "none"]).exits(1).complains(&[url, "not found"]);
        laneway.run(["--anonymous", "cat", url]).exits(1).complains(&[url, "not found"]);
        laneway.run(["--anonymous", "stat", url]).exits(1).complains(&[url, "not found"]);
        laneway.run(["--anonymous", "ls", url]).exits(1).complains(&[url]);
    }
    assert!(entries(&endpoint.folder()).is_empty());
}

#[test]
fn of_several_sources_the_missing_one_fails_and_the_rest_is_done() {
    let (endpoint, laneway) = plain();
    endpoint.server().store().put("bucket", "there", b"1").expect("stored");
    let run = laneway.run(["cp", "s3://bucket/none", "s3://bucket/there", "."]).exits(1);
    run.complains(&["s3://bucket/none", "not found"]);
    assert_eq!(entries(&endpoint.folder()), ["there"]);
}

#[test]
fn without_permission_the_bucket_is_named() {
    let denied = Config { denied_buckets: ["bucket".to_owned()].into(), ..Config::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, denied);
    let laneway = endpoint.program(LANEWAY);
    fs::write(endpoint.folder().join("f"), "x").expect("written");
    laneway.run(["cp", "f", "s3://bucket/f"]).exits(1).complains(&["s3://bucket/f", "permission denied"]);
    laneway.run(["ls", "s3://bucket"]).exits(1).complains(&["s3://bucket", "permission denied"]);
    laneway
        .run(["--anonymous", "cp", "gs://bucket/f", "g"])
        .exits(1)
        .complains(&["gs://bucket/f", "permission denied"]);
}

#[test]
fn absent_credentials_say_which_sources_were_tried() {
    let (_endpoint, laneway) = plain();
    let laneway = laneway.without("AWS_ACCESS_KEY_ID").without("AWS_SECRET_ACCESS_KEY");
    laneway.run(["cp", "s3://bucket/f", "g"]).exits(1).complains(&[
        "looked at",
        "AWS_ACCESS_KEY_ID",
        "--anonymous",
    ]);
}

#[test]
fn wrong_credentials_are_the_stores_to_refuse() {
    let (_endpoint, laneway) = plain();
    let laneway = laneway.with("AWS_SECRET_ACCESS_KEY", "not-the-secret");
    let run =
        laneway.run(["ls", "s3://bucket/"]).exits(1).complains(&["s3://bucket", "SignatureDoesNotMatch"]);
    assert!(!run.stderr.contains("not-the-secret"));
}

#[test]
fn expired_credentials_are_refused_at_once() {
    let expired = Config {
        faults: Faults::parse(["any status 400 ExpiredToken"]).expect("a rule"),
        ..Config::default()
    };
    let endpoint = Endpoint::start_with(Wire::Plain, expired);
    endpoint
        .program(LANEWAY)
        .run(["cp", "s3://bucket/f", "g"])
        .exits(1)
        .complains(&["s3://bucket/f", "ExpiredToken"]);
}

#[test]
fn an_unreachable_host_is_named() {
    let (endpoint, laneway) = plain();
    // No server listens on port 1 of the loopback interface.
    let run = laneway.run(["--s3-endpoint", "http://127.0.0.1:1", "cp", "s3://bucket/f", "g"]).exits(1);
    run.complains(&["s3://bucket/f", "127.0.0.1:1"]);
    let run =
        laneway.run(["--s3-endpoint", "http://no-such-host.invalid", "cp", "s3://bucket/f", "g"]).exits(1);
    run.complains(&["s3://bucket/f", "no-such-host.invalid"]);
    assert!(entries(&endpoint.folder()).is_empty());
}

#[test]
fn an_unknown_certificate_is_never_accepted() {
    for wire in [Wire::TlsH1, Wire::TlsH2] {
        let endpoint = Endpoint::start(wire);
        endpoint.server().store().put("bucket", "k", b"secret").expect("stored");
        let laneway = endpoint.program(LANEWAY).without("AWS_CA_BUNDLE");
        let run = laneway.run(["cp", "s3://bucket/k", "k"]).exits(1);
        run.complains(&["s3://bucket/k", "certificate", "https://", "--ca-cert"]);
        assert!(entries(&endpoint.folder()).is_empty());
        assert_eq!(
            endpoint.server().counters().requests,
            0,
            "a request was sent before the certificate was known"
        );
    }
}

#[test]
fn a_ca_file_that_cannot_be_read_is_named() {
    let (_endpoint, laneway) = plain();
    let run = laneway.run(["--ca-cert", "/no/such/ca.pem", "ls", "s3://bucket"]);
    assert_ne!(run.status, Some(0));
    run.complains(&["/no/such/ca.pem"]);
    let laneway = laneway.with("AWS_CA_BUNDLE", "/no/such/bundle.pem");
    laneway.run(["ls", "s3://bucket"]).complains(&["/no/such/bundle.pem", "AWS_CA_BUNDLE"]);
}

/// A user who sets the variable wants these certificates to be trusted. If the program ignored an unreadable file, it would
/// refuse each server without a visible reason.
#[cfg(target_os = "linux")]
#[test]
fn an_unreadable_ssl_cert_file_is_named() {
    let endpoint = Endpoint::start(Wire::TlsH2);
    for (name, path) in [("SSL_CERT_FILE", "/no/such/ca.pem"), ("SSL_CERT_DIR", "/no/such/folder")] {
        let laneway = endpoint.program(LANEWAY).with(name, path);
        laneway.run(["ls", "s3://bucket"]).exits(1).complains(&[name, path, "No such file"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named() {
    let (endpoint, laneway) = plain();
    endpoint.server().store().put("bucket", "k", &random_bytes(1, 100_000)).expect("stored");
    laneway.run(["cp", "s3://bucket/k", "/dev/full"]).exits(1).complains(&["/dev/full", "No space left"]);
}

#[test]
fn a_destination_that_cannot_be_written_is_named() {
    let (endpoint, laneway) = plain();
    endpoint.server().store().put("bucket", "k", b"x").expect("stored");
    laneway.run(["cp", "s3://bucket/k", "/dev/null/k"]).exits(1).complains(&["/dev/null/k"]);
}

#[test]
fn a_folder_where_a_file_should_go_is_left_alone() {
    let (endpoint, laneway) = plain();
    endpoint.server().store().put("bucket", "k", b"x").expect("stored");
    fs::create_dir_all(endpoint.folder().join("d/k")).expect("made");
    fs::write(endpoint.folder().join("d/k/precious"), "p").expect("written");
    laneway.run(["cp", "s3://bucket/k", "d"]).exits(1).complains(&["d/k", "director"]);
    assert_eq!(entries(&endpoint.folder().join("d")), ["k"]);
    assert_eq!(entries(&endpoint.folder().join("d/k")), ["precious"]);
}

#[test]
fn a_folder_without_r_is_not_copied() {
    let (endpoint, laneway) = plain();
    fs::create_dir(endpoint.folder().join("d")).expect("made");
    laneway.run(["cp", "d", "s3://bucket/"]).exits(2).complains(&["d", "-r"]);
    laneway.run(["stat", "s3://bucket/"]).exits(2).complains(&["s3://bucket", "not an object"]);
    laneway.run(["cat", "gs://bucket"]).exits(2).complains(&["gs://bucket", "not an object"]);
    assert!(endpoint.server().store().keys("bucket").is_empty());
}

#[test]
fn a_key_that_would_escape_is_refused_and_the_rest_is_done() {
    let (endpoint, laneway) = plain();
    for key in ["p/good", "p/../../evil", "p/a/../b"] {
        endpoint.server().store().put("bucket", key, b"x").expect("stored");
    }
    let run = laneway.run(["cp", "-r", "s3://bucket/p/", "in/here/"]).exits(1);
    assert_eq!(run.stderr.matches("laneway: ").count(), 2, "{}", run.stderr);
    assert!(run.stderr.contains("p/../../evil"), "{}", run.stderr);
    let files: Vec<_> = walk(&endpoint.folder());
    assert!(files.iter().all(|file| file.ends_with("good")), "{files:?}");
    assert_eq!(files.len(), 1);
}

#[test]
fn an_absolute_key_stays_below_the_destination() {
    let (endpoint, laneway) = plain();
    endpoint.server().store().put("bucket", "p//etc/laneway-evil", b"x").expect("stored");
    let run = laneway.run(["cp", "-r", "s3://bucket/p/", "in/"]);
    assert!(!Path::new("/etc/laneway-evil").exists());
    assert!(run.status == Some(1) || walk(&endpoint.folder()).len() == 1, "{}", run.stderr);
}

#[test]
fn two_sources_never_share_one_destination() {
    let (endpoint, laneway) = plain();
    for folder in ["a", "b"] {
        fs::create_dir(endpoint.folder().join(folder)).expect("made");
        fs::write(endpoint.folder().join(folder).join("same"), folder).expect("written");
    }
    let run = laneway.run(["cp", "a/same", "b/same", "s3://bucket/p/"]);
    assert_ne!(run.status, Some(0));
    assert!(run.stderr.contains("b/same") && run.stderr.contains("p/same"), "{}", run.stderr);

    for key in ["x/same", "y/same"] {
        endpoint.server().store().put("bucket", key, key.as_bytes()).expect("stored");
    }
    let run = laneway.run(["cp", "s3://bucket/x/same", "s3://bucket/y/same", "in/"]);
    assert_ne!(run.status, Some(0));
    assert!(run.stderr.contains("y/same"), "{}", run.stderr);
    assert!(walk(&endpoint.folder().join("in")).len() <= 1);
}

#[test]
fn bytes_that_were_spoilt_on_the_way_never_become_a_file() {
    let spoilt = Config { faults: Faults::parse(["get corrupt@1000"]).expect("a rule"), ..Config::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, spoilt);
    endpoint.server().store().put("bucket", "k", &random_bytes(1, 100_000)).expect("stored");
    fs::write(endpoint.folder().join("k"), "old").expect("written");
    let laneway = endpoint.program(LANEWAY);
    laneway.run(["cp", "s3://bucket/k", "k"]).exits(1).complains(&["s3://bucket/k"]);
    assert_eq!(fs::read(endpoint.folder().join("k")).expect("read"), b"old");
    assert_eq!(entries(&endpoint.folder()), ["k"]);
}

#[test]
fn a_local_path_is_no_object() {
    let (endpoint, laneway) = plain();
    fs::write(endpoint.folder().join("f"), "x").expect("written");
    for verb in ["ls", "cat", "stat", "rm"] {
        laneway.run([verb, "f"]).exits(2).complains(&["f", "local path"]);
    }
    assert_eq!(entries(&endpoint.folder()), ["f"]);
}

fn walk(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { found.push(path.display().to_string()) }
        }
    }
    found
}

#[test]
fn removing_by_an_inventory_what_a_source_lacks_is_bad_usage() {
    let (endpoint, laneway) = plain();
    endpoint.server().store().put("bucket", "q/since", b"x").expect("stored");
    fs::write(endpoint.folder().join("i"), "").expect("written");
    let run =
        laneway.run(["sync", "--delete", "--inventory", "i", "gs://bucket/p", "s3://bucket/q"]).exits(2);
    run.complains(&["i: ", "written to the source later"]);
    assert_eq!(endpoint.server().store().keys("bucket"), ["q/since"]);
}

/// Answers of servers that aren't object stores, and the text of each error.
fn strange_answers() -> Vec<(Vec<u8>, &'static str)> {
    let html = b"<html><body>Welcome</body></html>";
    vec![
        (
            answer(503, &[("Retry-After", "3600")], b""),
            "the server asks Laneway to wait 1 h before the next attempt, which is more than --retry-for (120 s)",
        ),
        (
            answer(302, &[("Location", "http://login.example/portal?token=secret")], b""),
            "the server redirects to http://login.example/portal, and Laneway doesn't follow redirects; is there a captive portal?",
        ),
        (answer(200, &[("Content-Type", "text/html")], html), "it sent HTML; check the endpoint"),
        (answer(200, &[], html), "it sent HTML; check the endpoint"),
    ]
}

#[test]
fn a_server_that_is_no_store_is_told_by_what_it_answers() {
    let (_endpoint, laneway) = plain();
    for (bytes, says) in strange_answers() {
        let server = Scripted::serve(move |_| bytes.clone()).url();
        for (scheme, service) in [("gs", "Google Cloud Storage"), ("s3", "Amazon S3")] {
            let url = format!("{scheme}://bucket");
            let at = ["--anonymous", "--gcs-endpoint", &server, "--s3-endpoint", &server];
            let run = laneway.run([&at[..], &["ls", &url]].concat()).exits(1).complains(&[&url, says]);
            assert!(!run.stderr.contains("secret"), "{}", run.stderr);
            if says.contains("HTML") {
                let whole = format!("{server} didn't answer like {service}");
                assert!(run.stderr.contains(&whole), "{}", run.stderr);
            }
        }
    }
}

#[test]
fn a_silent_server_is_told_of_and_given_up_within_retry_for() {
    let (endpoint, laneway) = plain();
    fs::write(endpoint.folder().join("f"), "x").expect("written");
    // The system accepts the connections, and no program answers on them.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    for scheme in ["gs", "s3"] {
        for command in
            ["ls X://bucket", "cat X://bucket/k", "cp X://bucket/k x", "cp f X://bucket/k", "rm X://bucket/k"]
        {
            let command = command.replace('X', scheme);
            let at = ["--anonymous", "--retry-for", "200ms", "--gcs-endpoint", &url, "--s3-endpoint", &url];
            let run = laneway.run(at.into_iter().chain(command.split(' '))).exits(1);
            assert!(
                run.stderr.contains(&url) && run.stderr.contains("--retry-for"),
                "{command}: {}",
                run.stderr
            );
        }
    }
    let (begun, usual) = (Instant::now(), Duration::from_secs(30));
    let at = ["--anonymous", "--retry-for", "2s", "--gcs-endpoint", &url];
    let run = laneway.run(at.into_iter().chain(["ls", "gs://bucket"])).exits(1);
    assert!(run.stderr.starts_with("retrying: no response for 1s "), "{}", run.stderr);
    assert!(begun.elapsed() < usual, "{:?}", begun.elapsed());
}

#[test]
fn a_proxy_that_cannot_be_reached_is_named_with_its_variable() {
    let (_endpoint, laneway) = plain();
    for (variable, endpoint, protocol) in [
        ("HTTPS_PROXY", "https://store.example", "http"),
        ("http_proxy", "http://store.example", "http"),
        ("ALL_PROXY", "http://store.example", "socks5"),
        ("ALL_PROXY", "https://store.example", "socks5"),
    ] {
        let laneway = laneway.clone().with(variable, format!("{protocol}://user:secret@127.0.0.1:1"));
        for (scheme, option) in [("gs", "--gcs-endpoint"), ("s3", "--s3-endpoint")] {
            let url = format!("{scheme}://bucket");
            let run = laneway.run(["--anonymous", "--retry-for", "0", option, endpoint, "ls", &url]).exits(1);
            let named = format!("the proxy in {variable}, {protocol}://127.0.0.1:1");
            assert!(run.stderr.contains(&named) && !run.stderr.contains("secret"), "{}", run.stderr);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_of_the_kernel_has_no_size_to_go_by() {
    let (endpoint, laneway) = plain();
    for scheme in ["gs", "s3"] {
        let run = laneway.run(["cp", "/proc/version", &format!("{scheme}://bucket/v")]).exits(1);
        run.complains(&["/proc/version: its size is unknown"]);
    }
    assert!(endpoint.server().store().keys("bucket").is_empty());
}
