//! Keeps the language interfaces aligned. Each interface has all verbs, options and settings of the library, or this
//! file gives the reason for each missing name. If you add a missing name, remove its entry here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use laneway_bindings_core::options::{JOB_OPTIONS, JobVerb};
use laneway_bindings_core::plan::{PLAN_OPTIONS, PlanTaskKind};
use laneway_bindings_core::settings::SETTINGS;
use laneway_bindings_core::verbs::VERBS;

type Names = BTreeSet<String>;

/// The names that one side lacks, each with the reason.
type Lacks = &'static [(&'static str, &'static str)];

const PROGRAM: &str = "only the program has it so far: no user of a binding has asked for it";

/// Options of the library's requests and filters that aren't in the table of options, or have another name there.
const OPTIONS_OF_THE_LIBRARY: Lacks = &[
    ("all_versions", PROGRAM),
    ("decompress", PROGRAM),
    ("exclude", "a rule among `filters`"),
    ("expect_size", "the size of a stream, and no binding's job reads one"),
    ("filter", "`filters`, `min_size`, `max_size`, `newer` and `older` make it"),
    ("include", "a rule among `filters`"),
    ("inventory", PROGRAM),
    ("line", "a rule among `filters`"),
    ("lines", "rules among `filters`"),
    ("manifest", PROGRAM),
    ("missing_is_fine", PROGRAM),
    ("put", "`attributes` and `tags` make it"),
];
const OPTIONS_OF_THE_TABLE: Lacks =
    &[("attributes", "part of `put`"), ("filters", "rules of `filter`"), ("tags", "part of `put`")];

/// Settings of the library's `ClientBuilder` that aren't in the table of settings, or have another name there.
const SETTINGS_OF_THE_LIBRARY: Lacks = &[
    ("access_key", "`access_key_id`, `secret_access_key` and `session_token` make it"),
    ("checksum_algorithm", PROGRAM),
    ("credential_provider", "a callable, which can't be an entry of the table"),
    ("dialect", "a store written in Rust"),
    ("engine", "one engine serves a process"),
    ("epoch", "for the program's records"),
    ("from_env", "`environment`"),
    ("from_variables", "`variables`"),
    ("header", "`headers`"),
    ("kms_context", PROGRAM),
    ("mfa_prompt", "for the program, which can ask its user"),
    ("request_checksums", PROGRAM),
    ("resolve", "for tests"),
    ("source_customer_key", PROGRAM),
    ("upload_journals", "for the program, which resumes uploads of an earlier process"),
];
const SETTINGS_OF_THE_TABLE: Lacks = &[
    ("access_key_id", "part of `access_key`"),
    ("azure_credentials", "the library reads them from variables, which `from_variables` sets"),
    ("bearer_token", "a credential provider that lasts"),
    ("environment", "`from_env`"),
    ("headers", "`header` for each"),
    ("secret_access_key", "part of `access_key`"),
    ("service_account_file", "`service_account_key` of a file"),
    ("session_token", "part of `access_key`"),
    ("variables", "`from_variables`"),
];

/// Settings that the Python package doesn't have.
const SETTINGS_OF_PYTHON: Lacks = &[
    ("assume_role", "a profile's `role_arn` does it, and no user has asked for more"),
    ("environment", "a client always begins with the environment"),
    ("impersonate", "credentials of the type `impersonated_service_account` do it"),
    ("service_account_file", "the variable that `application_credentials` sets names the file"),
];

/// Options and settings that the Java classes don't have under the names in the tables.
const OPTIONS_OF_JAVA: Lacks = &[("attributes", "`PutOptions` has them"), ("tags", "`PutOptions` has them")];
const SETTINGS_OF_JAVA: Lacks = &[
    ("bearer_token", "`credentialProvider` returns tokens with their expiry times"),
    ("project", "no verb lists buckets"),
];

/// The name of a verb in a language, or the reason why it is missing.
type InFace = Result<&'static str, &'static str>;

/// Verbs of the library's `Bucket`: the name in the library, and then the names in Python and in Java.
const VERBS_OF_BUCKETS: &[(&str, InFace, InFace)] = &[
    ("begin_multipart", Err("a writer or `put` cuts parts by itself"), Ok("beginMultipart")),
    ("copy", Ok("copy"), Ok("copy")),
    ("create", Err(PROGRAM), Err(PROGRAM)),
    ("delete", Ok("delete"), Ok("delete")),
    ("delete_many", Ok("delete"), Ok("deleteAll")),
    ("get", Ok("get"), Ok("get")),
    ("get_ranges", Ok("get_ranges"), Err("`open` and `ObjectReader.readRanges`")),
    ("get_ranges_of", Err("a call for each object, awaited together"), Err("as in Python")),
    ("head", Ok("head"), Ok("head")),
    ("list", Ok("list"), Ok("list")),
    ("list_dir", Ok("list_with_delimiter"), Ok("listWithDelimiter")),
    ("list_multipart", Err("as `begin_multipart`"), Ok("multipartUploads")),
    ("multipart", Err("as `begin_multipart`"), Ok("multipart")),
    ("open", Ok("open_reader"), Ok("open")),
    ("put", Ok("put"), Ok("put")),
    ("remove", Err(PROGRAM), Err(PROGRAM)),
    ("rename", Ok("rename"), Ok("rename")),
    ("sign", Ok("sign"), Err("Hadoop and Iceberg don't sign URLs")),
    ("writer", Ok("open_writer"), Ok("writer")),
];
/// Methods of `Bucket` that send no request.
const NO_VERBS: [&str; 8] =
    ["below", "capabilities", "client", "counted", "name", "prefix", "provider", "url"];

#[test]
fn the_table_has_every_option_of_the_librarys_jobs() {
    for (verb, request) in
        [(JobVerb::Copy, "CopyRequest"), (JobVerb::Sync, "SyncRequest"), (JobVerb::Remove, "RemoveRequest")]
    {
        let mut library = methods_of_the_library(request, "(self, ");
        library.extend(methods_of_the_library("Filter", "(self, "));
        let table = options_of(verb);
        let own = |lacks: Lacks, of: &Names| -> Vec<_> {
            lacks.iter().copied().filter(|(name, _)| of.contains(*name)).collect()
        };
        compare(
            request,
            &library,
            &table,
            &own(OPTIONS_OF_THE_LIBRARY, &library),
            &own(OPTIONS_OF_THE_TABLE, &table),
        );
    }
    assert_sorted(JOB_OPTIONS.iter().map(|option| option.name));
}

#[test]
fn the_table_has_every_setting_of_the_librarys_clients() {
    let mut library = methods_of_the_library("ClientBuilder", "(mut self, ");
    library.extend(methods_of_the_library("ClientBuilder", "(self, "));
    library.extend(["from_env", "from_variables"].map(str::to_owned));
    compare("settings", &library, &settings(), SETTINGS_OF_THE_LIBRARY, SETTINGS_OF_THE_TABLE);
    assert_sorted(SETTINGS.iter().map(|setting| setting.name));
}

#[test]
fn every_entry_has_one_sentence() {
    let options = JOB_OPTIONS.iter().map(|option| (option.name, option.meaning));
    let options = options.chain(PLAN_OPTIONS.iter().map(|option| (option.name, option.meaning)));
    for (name, meaning) in options.chain(SETTINGS.iter().map(|setting| (setting.name, setting.meaning))) {
        assert!(meaning.ends_with('.') && meaning.split(' ').count() <= 25, "{name}: {meaning}");
    }
}

#[test]
fn python_has_every_option_of_jobs() {
    let own = [
        "sources",
        "source",
        "destination",
        "targets",
        "config",
        "client_options",
        "retry_config",
        "progress",
    ];
    for (verb, file, function) in [
        (JobVerb::Copy, "_jobs.py", "copy_job"),
        (JobVerb::Copy, "_copy.py", "copy"),
        (JobVerb::Copy, "_copy.py", "copy_async"),
        (JobVerb::Sync, "_jobs.py", "sync_job"),
        (JobVerb::Sync, "_sync.py", "sync"),
        (JobVerb::Sync, "_sync.py", "sync_async"),
        (JobVerb::Remove, "_jobs.py", "remove_job"),
        (JobVerb::Remove, "_remove.py", "remove"),
        (JobVerb::Remove, "_remove.py", "remove_async"),
    ] {
        let text = read(&format!("python/python/laneway/{file}"));
        let mut keywords = keywords(&text, function);
        keywords.retain(|name| !own.contains(&&**name));
        compare(&format!("{file}: {function}"), &options_of(verb), &keywords, &[], &[]);
    }
}

/// Arguments of actions on plans, which have a place of their own in each language.
const ARGUMENTS_OF_PLANS: [&str; 6] = ["source", "destination", "folder", "target", "part", "file"];

fn options_of_plans(verbs: &[PlanTaskKind]) -> Names {
    let all = PLAN_OPTIONS.iter().filter(|option| verbs.iter().any(|verb| option.verbs.contains(verb)));
    all.map(|option| option.name.to_owned()).filter(|name| !ARGUMENTS_OF_PLANS.contains(&&**name)).collect()
}

#[test]
fn python_has_every_option_of_plans() {
    let text = read("python/python/laneway/plan.py");
    let own = ["config", "client_options", "retry_config", "progress", "on_failure", "number", "cls"];
    for (verb, function) in [
        (PlanTaskKind::Copy, "copy"),
        (PlanTaskKind::Sync, "sync"),
        (PlanTaskKind::Remove, "remove"),
        (PlanTaskKind::Verify, "verify"),
        (PlanTaskKind::Run, "run_next"),
        (PlanTaskKind::Run, "run_part"),
    ] {
        let mut keywords = keywords(&text, function);
        keywords.retain(|name| !own.contains(&&**name) && !ARGUMENTS_OF_PLANS.contains(&&**name));
        compare(&format!("plan.py: {function}"), &options_of_plans(&[verb]), &keywords, &[], &[]);
    }
    assert_sorted(PLAN_OPTIONS.iter().map(|option| option.name));
}

#[test]
fn java_has_every_option_of_plans() {
    let java = quoted_after(&read(&java("PlanOptions")), "with(");
    compare("PlanOptions", &options_of_plans(&PlanTaskKind::ALL), &java, &[], &[]);
}

#[test]
fn python_has_every_setting() {
    let text = read("python/python/laneway/_configuration.py");
    let mut python = quoted_after(&text, "_Setting(");
    python.extend(quoted_after(&text, "chosen["));
    compare("Python's settings", &settings(), &python, SETTINGS_OF_PYTHON, &[]);
}

#[test]
fn java_has_every_option_of_jobs() {
    let java = quoted_after(&read(&java("JobOptions")), "with(");
    let table = JOB_OPTIONS.iter().map(|option| option.name.to_owned()).collect();
    compare("JobOptions", &table, &java, OPTIONS_OF_JAVA, &[]);
}

#[test]
fn java_has_every_setting() {
    let java = quoted_after(&read(&java("Laneway")), "with(");
    let java = java.iter().map(|name| name.trim_end_matches(':').to_owned()).collect();
    compare("Laneway.Builder", &settings(), &java, SETTINGS_OF_JAVA, &[]);
}

#[test]
fn java_translates_the_name_of_each_option_and_setting() {
    let translated = read(&java("OptionNames"));
    for class in ["JobOptions", "Laneway", "PlanOptions"] {
        for name in quoted_after(&read(&java(class)), "with(") {
            let name = name.trim_end_matches(':');
            assert!(translated.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}

#[test]
fn java_numbers_verbs_as_the_table_does() {
    let text = read(&java("Native"));
    let java: Vec<_> = text
        .lines()
        .filter_map(|line| {
            line.trim().strip_prefix("static final int ")?.strip_suffix(';')?.split_once(" = ")
        })
        .map(|(name, number)| (name.to_ascii_lowercase(), number.parse().expect("a number")))
        .collect();
    let table: Vec<_> = VERBS.iter().map(|verb| (verb.name.to_owned(), verb.number)).collect();
    assert_eq!(java, table);
}

#[test]
fn each_verb_of_a_bucket_is_in_each_face_or_its_lack_has_a_reason() {
    let mut library = methods_of_the_library("Bucket", "");
    library.retain(|name| !NO_VERBS.contains(&&**name));
    let listed: Names = VERBS_OF_BUCKETS.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(library, listed);
    let stubs = bindings().join("python/python/laneway/_laneway/verbs");
    let stubs: String = fs::read_dir(stubs)
        .expect("the stubs")
        .map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("a stub"))
        .collect();
    let bucket = read(&java("Bucket"));
    for (name, python, java) in VERBS_OF_BUCKETS {
        let is_in_python = |verb: &str| stubs.contains(&format!("def {verb}("));
        let is_in_java = |verb: &str| {
            bucket.lines().any(|line| line.contains("public ") && line.contains(&format!(" {verb}(")))
        };
        assert!(python.map_or_else(|_| !is_in_python(name), is_in_python), "{name} in Python");
        let camel = camel(name);
        assert!(java.map_or_else(|_| !is_in_java(&camel), is_in_java), "{name} in Java");
    }
}

fn options_of(verb: JobVerb) -> Names {
    JOB_OPTIONS
        .iter()
        .filter(|option| option.is_taken_by(verb))
        .map(|option| option.name.to_owned())
        .collect()
}

fn settings() -> Names {
    SETTINGS.iter().map(|setting| setting.name.to_owned()).collect()
}

/// Checks that two sides have the same names, except for the listed names that only one side has.
#[track_caller]
fn compare(what: &str, one: &Names, other: &Names, alone: &[(&str, &str)], of_other: &[(&str, &str)]) {
    let names = |lacks: &[(&str, &str)]| -> Names {
        assert!(lacks.iter().all(|(_, reason)| !reason.is_empty()));
        lacks.iter().map(|(name, _)| (*name).to_owned()).collect()
    };
    let missing: Names = one.difference(other).cloned().collect();
    assert_eq!(missing, names(alone), "{what}: left are the missing names, right the expected ones");
    let more: Names = other.difference(one).cloned().collect();
    assert_eq!(more, names(of_other), "{what}: left are the additional names, right the expected ones");
}

fn assert_sorted<'n>(names: impl Iterator<Item = &'n str>) {
    let names: Vec<_> = names.collect();
    assert!(names.is_sorted() && names.len() > 10, "{names:?}");
}

fn bindings() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the bindings' folder")
}

fn read(path: &str) -> String {
    fs::read_to_string(bindings().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn java(class: &str) -> String {
    format!("jvm/core/src/main/java/dev/laneway/{class}.java")
}

/// Returns the public methods of a type whose signature contains `parameters`.
fn methods_of_the_library(of: &str, parameters: &str) -> Names {
    let page = read("../crates/laneway/public-api.txt");
    let start = format!("pub fn laneway::{of}::");
    let methods = page.lines().filter_map(|line| line.strip_prefix(&start)).filter_map(|line| {
        let name = line.split(['(', '<']).next().unwrap_or_default();
        line[name.len()..].contains(parameters).then(|| name.to_owned())
    });
    methods.collect()
}

/// Returns the parameters of a Python function, from its first definition over several lines.
fn keywords(text: &str, function: &str) -> Names {
    let start = format!("def {function}(\n");
    let (_, rest) = text.split_once(&start).unwrap_or_else(|| panic!("{function} is not there"));
    let parameters = rest.lines().map(str::trim).take_while(|line| !line.starts_with(')'));
    parameters.filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
}

/// Returns the text literals after a word in source code.
fn quoted_after(text: &str, word: &str) -> Names {
    let quoted = text.match_indices(word).filter_map(|(at, _)| {
        let (name, _) = text[at + word.len()..].strip_prefix('"')?.split_once('"')?;
        Some(name.to_owned())
    });
    quoted.collect()
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &word[..1].to_ascii_uppercase() + &word[1..])
}
