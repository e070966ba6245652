//! `mb`, `rb` and `hash`: buckets as a whole, and what stores will say of files.

use laneway_server::{Config, Faults, S3Config};
use laneway_testkit::{Endpoint, Program, Wire};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

fn begun() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    let program = endpoint.program(LANEWAY).with("GOOGLE_CLOUD_PROJECT", "project");
    (endpoint, program)
}

#[test]
fn buckets_are_made_and_removed_and_both_say_so() {
    for scheme in ["s3", "gs"] {
        let (_endpoint, laneway) = begun();
        let url = format!("{scheme}://lake-2");
        let made = laneway.run(["mb", &url]).succeeds();
        assert_eq!(made.stderr, format!("made {url}\n"));
        laneway.run(["mb", &url]).exits(1).complains(&["make bucket", &url, "it exists"]);
        assert!(laneway.run(["ls", &format!("{scheme}://")]).succeeds().lines().contains(&format!("{url}/")));
        let removed = laneway.run(["rb", "--json", &url]).succeeds().record("bucket");
        assert_eq!((removed["url"].as_str(), removed["outcome"].as_str()), (Some(&*url), Some("removed")));
        laneway.run(["rb", &url]).exits(1).complains(&["remove bucket", "not found"]);
    }
}

#[test]
fn a_bucket_that_holds_something_is_removed_by_force_alone() {
    for scheme in ["s3", "gs"] {
        let (endpoint, laneway) = begun();
        for n in 0..20 {
            endpoint.server().store().put("bucket", &format!("{n}"), b"x").expect("stored");
        }
        let url = format!("{scheme}://bucket");
        laneway.run(["rb", &url]).exits(1).complains(&["not empty"]);
        laneway.run(["rb", "--force", &url]).exits(2).complains(&["--yes"]);
        laneway
            .run(["rb", "--force", "--yes", &format!("{url}/1")])
            .exits(2)
            .complains(&["name the whole bucket"]);
        assert_eq!(endpoint.server().store().keys("bucket").len(), 20);
        laneway.run(["rb", "--force", "--yes", &url]).succeeds();
        laneway.run(["ls", &url]).exits(1).complains(&["not found"]);
    }
}

#[test]
fn what_an_answer_that_was_lost_has_done_is_no_failure() {
    for scheme in ["s3", "gs"] {
        let (endpoint, laneway) = begun();
        endpoint.server().set_faults(Faults::parse(["any:1-1 lose-answer"]).expect("a rule"));
        laneway.run(["mb", &format!("{scheme}://lake-2")]).succeeds();
        endpoint.server().set_faults(Faults::parse(["any:1-1 lose-answer"]).expect("a rule"));
        laneway.run(["rb", &format!("{scheme}://lake-2")]).succeeds();
    }
}

#[test]
fn a_bucket_of_s3_is_made_in_the_region_that_is_asked_and_nowhere_else() {
    let s3 = S3Config { region: "eu-west-1".to_owned(), ..S3Config::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, Config { s3, ..Config::default() });
    let laneway = endpoint.program(LANEWAY);
    laneway.run(["mb", "--region", "us-east-1", "s3://lake-2"]).exits(1);
    let why = "no other region's buckets are made";
    laneway
        .run(["mb", "--region", "eu-west-1", "--location", "EU", "s3://lake-2"])
        .exits(1)
        .complains(&[why]);
    laneway.run(["mb", "--region", "eu-west-1", "--location", "eu-west-1", "s3://lake-2"]).succeeds();
}

#[test]
fn on_gcs_a_project_has_to_be_known() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).without("GOOGLE_CLOUD_PROJECT");
    laneway.run(["mb", "gs://lake-2"]).exits(1).complains(&["no Google Cloud project is set"]);
}

#[test]
fn the_checksums_of_files_are_those_that_the_store_has_of_them() {
    let (_endpoint, laneway) = begun();
    let file = laneway.home().join("f");
    std::fs::write(&file, "123456789").expect("written");
    let path = file.to_str().expect("a name");
    let hash = laneway.run(["hash", "--json", path]).succeeds().record("hash");
    assert_eq!(hash["crc32c"], "4waSgw==");
    assert_eq!(hash["crc64nvme"], "rosUhgp5mIg=");
    assert_eq!(hash["md5"], "JfnnlDI7RTiF9RgfG2JNCw==");
    let input = laneway.run_with_input(["hash", "-"], b"123456789").succeeds();
    assert!(input.text().contains("CRC32C     4waSgw=="), "{}", input.text());
    laneway.run(["cp", path, "s3://bucket/f"]).succeeds();
    assert_eq!(
        laneway.run(["stat", "--json", "s3://bucket/f"]).succeeds().record("object")["crc32c"],
        hash["crc32c"]
    );
    laneway.run(["hash", "/nowhere"]).exits(1).complains(&["/nowhere"]);
    laneway.run(["hash", "s3://bucket/f"]).exits(2).complains(&["laneway stat"]);
}
