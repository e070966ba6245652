//! Who the program is to a store, by the files and variables of its user.

use std::fs;

use laneway_testkit::{Endpoint, Program, Wire, random_bytes};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

/// A server with one object, and the program of a user whose AWS configuration is this. Nothing in the environment
/// names the server or its keys.
fn configured(wire: Wire, config: impl FnOnce(&Endpoint) -> String) -> (Endpoint, Program) {
    let endpoint = Endpoint::start(wire);
    let program = [
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
    ]
    .iter()
    .fold(endpoint.program(LANEWAY), |program, name| program.without(name));
    fs::write(endpoint.folder().join("f"), random_bytes(1, 1000)).expect("written");
    endpoint.program(LANEWAY).run(["cp", "f", "s3://bucket/f"]).succeeds();
    fs::create_dir_all(program.home().join(".aws")).expect("made");
    fs::write(program.home().join(".aws/config"), config(&endpoint)).expect("written");
    (endpoint, program)
}

fn keys() -> String {
    let keys = laneway_server::S3Config::default();
    format!("aws_access_key_id = {}\naws_secret_access_key = {}\n", keys.access_key, keys.secret_key)
}

#[test]
fn a_profile_sets_endpoint_keys_and_trusted_certificates() {
    let (_endpoint, laneway) = configured(Wire::TlsH2, |endpoint| {
        let ca = endpoint.ca_file().expect("certificates").display().to_string();
        let url = endpoint.url();
        format!(
            "[profile here]\nregion = us-east-1\nca_bundle = {ca}\nservices = local\n{}[services local]\ns3 =\n  endpoint_url = {url}\n",
            keys()
        )
    });
    let laneway = laneway.without("SSL_CERT_FILE").without("AWS_CA_BUNDLE");
    let run = laneway.run(["ls", "s3://bucket/", "--profile", "here"]).succeeds();
    assert_eq!(run.lines(), ["s3://bucket/f"]);
    laneway.clone().with("AWS_PROFILE", "here").run(["stat", "s3://bucket/f"]).succeeds();
}

#[test]
fn a_profile_that_is_missing_is_told_and_nobody_else_is_tried() {
    let (endpoint, laneway) = configured(Wire::Plain, |_| format!("[default]\n{}", keys()));
    let laneway = laneway.with("AWS_PROFILE", "typo").with("AWS_ENDPOINT_URL", endpoint.url());
    let run = laneway.run(["ls", "s3://bucket/"]).exits(1);
    assert!(run.stderr.contains("AWS_PROFILE names the profile \"typo\""), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    let run = laneway.run(["ls", "s3://bucket/", "--profile", "gone"]).exits(1);
    assert!(run.stderr.contains("--profile names the profile \"gone\""), "{}", run.stderr);
}

#[test]
fn a_role_that_cannot_be_assumed_is_one_line_with_its_cause() {
    let (endpoint, laneway) = configured(Wire::Plain, |_| {
        format!("[default]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = gone\n{}", keys())
    });
    let run = laneway.with("AWS_ENDPOINT_URL", endpoint.url()).run(["ls", "s3://bucket/"]).exits(1);
    assert!(run.stderr.contains("role_arn of profile \"default\" in "), "{}", run.stderr);
    assert!(run.stderr.contains("its source_profile \"gone\" doesn't exist"), "{}", run.stderr);
    assert!(!run.stderr.contains(&laneway_server::S3Config::default().secret_key), "{}", run.stderr);
}

#[test]
fn a_program_that_gives_keys_leaves_standard_input_to_the_upload() {
    let (endpoint, laneway) = configured(Wire::Plain, |endpoint| {
        let script = endpoint.folder().join("keys.sh").display().to_string();
        format!("[default]\nregion = us-east-1\ncredential_process = sh {script}\n")
    });
    let keys = laneway_server::S3Config::default();
    let document = format!(
        r#"{{"Version":1,"AccessKeyId":"{}","SecretAccessKey":"{}"}}"#,
        keys.access_key, keys.secret_key
    );
    fs::write(endpoint.folder().join("keys.sh"), format!("cat >/dev/null\necho '{document}'\n"))
        .expect("written");
    let laneway = laneway.with("AWS_ENDPOINT_URL", endpoint.url());
    let bytes = random_bytes(2, 1 << 20);
    // What exists is asked for first, by keys that the program gives.
    laneway.run_with_input(["cp", "-n", "-", "s3://bucket/piped"], &bytes).succeeds();
    assert!(laneway.run(["cat", "s3://bucket/piped"]).succeeds().stdout == bytes);
}

#[test]
fn the_option_for_addressing_goes_before_the_profiles() {
    let (_endpoint, laneway) = configured(Wire::Plain, |endpoint| {
        let url = endpoint.url();
        format!("[default]\nendpoint_url = {url}\ns3 =\n  addressing_style = virtual\n{}", keys())
    });
    let laneway = laneway.with("AWS_REGION", "us-east-1");
    laneway.run(["ls", "s3://bucket/", "--s3-addressing", "path"]).succeeds();
    laneway.run(["ls", "s3://bucket/", "--s3-addressing", "both"]).exits(2);
}

/// It is read from the terminal itself and not from standard input's buffer, and the answer goes to STS.
#[cfg(target_os = "linux")]
#[test]
fn an_mfa_code_is_asked_for_on_the_terminal() {
    use std::io::{Read as _, Write as _};

    use laneway_testkit::{Scripted, answer};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let keys_of_the_role = {
        let keys = laneway_server::S3Config::default();
        let (id, secret) = (keys.access_key, keys.secret_key);
        format!(
            "<AccessKeyId>{id}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey><SessionToken>T</SessionToken>"
        )
    };
    let sts = Scripted::serve(move |_| {
        let handed = format!(
            "<Credentials>{keys_of_the_role}<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>"
        );
        answer(
            200,
            &[],
            format!("<AssumeRoleResponse><AssumeRoleResult>{handed}</AssumeRoleResult></AssumeRoleResponse>"),
        )
    });
    let (endpoint, laneway) = configured(Wire::Plain, |_| {
        let role =
            "role_arn = arn:aws:iam::1:role/r\nmfa_serial = arn:aws:iam::1:mfa/me\nsource_profile = base\n";
        format!("[profile m]\n{role}[profile base]\n{}", keys())
    });
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("ours");
    unlockpt(&terminal).expect("unlocked");
    let name = ptsname(&terminal, Vec::new()).expect("a name").into_string().expect("text");
    // The first terminal that a session's leader opens becomes its own.
    let line = format!("exec \"$0\" \"$@\" <{name} 2>{name}");
    let running = Program::new("setsid", laneway.home())
        .with("AWS_ENDPOINT_URL_S3", endpoint.url())
        .with("AWS_ENDPOINT_URL_STS", sts.url())
        .with("AWS_REGION", laneway_server::S3Config::default().region)
        .start(["--wait", "/bin/sh", "-c", &line, LANEWAY, "ls", "s3://bucket/", "--profile", "m"]);
    let (mut terminal, mut seen) = (fs::File::from(terminal), Vec::new());
    while !String::from_utf8_lossy(&seen).contains("MFA code of arn:aws:iam::1:mfa/me:") {
        let mut bytes = [0; 256];
        let read = terminal.read(&mut bytes).unwrap_or(0);
        assert!(read > 0, "it ended without a question: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..read]);
    }
    terminal.write_all(b"123456\n").expect("typed");
    assert_eq!(running.end().succeeds().lines(), ["s3://bucket/f"]);
    let asked = String::from_utf8(sts.asked()[0].body.clone()).expect("a form");
    assert!(asked.contains("TokenCode=123456") && asked.contains("SerialNumber="), "{asked}");
}
