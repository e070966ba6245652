//! The error messages for a command line that can't be parsed. For an option or verb of another tool, the message names Laneway's
//! equivalent.

use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Options that people type because other tools have them. Each entry has the options, the verbs to which it applies (an empty list
/// means all), and the answer.
const ANSWERS: &[(&[&str], &[&str], &str)] = &[
    (
        &["-d", "--delete-unmatched-destination-objects"],
        SYNC,
        "use --delete, which removes items from DST that SRC lacks",
    ),
    (
        &["--delete-after", "--delete-before", "--delete-during", "--del"],
        SYNC,
        "use --delete; it removes items at the end, and only if nothing failed",
    ),
    (&["--delete-excluded"], SYNC, "not supported; --delete never removes items that the filters skip"),
    (&["--no-clobber", "--immutable"], SYNC, "use --ignore-existing"),
    (&["--checksums-only"], SYNC, "use --checksum"),
    (&["--skip-if-dest-has-newer-mtime", "-su"], SYNC, "use --update"),
    (
        &["--exact-timestamps", "-t", "--times"],
        SYNC,
        "not needed: sync compares times exactly if both sides record them",
    ),
    (&["-e"], SYNC, "use --ignore-symlinks"),
    (&["--no-follow-symlinks", "--skip-links"], SYNC, "use --ignore-symlinks"),
    (
        &["--no-follow-symlinks", "--skip-links", "-e", "--ignore-symlinks"],
        COPY,
        "not needed for links to folders, because Laneway skips them; Laneway always follows links to files",
    ),
    (&["-L", "--copy-links"], &["cp", "mv", "copy", "move", "sync", "rsync"], "use --follow-symlinks"),
    (&["--ignore-existing", "--immutable"], COPY, "use --no-clobber"),
    (
        &[
            "-m",
            "--part-size",
            "--multipart-chunksize",
            "--multipart-chunk-size-mb",
            "--chunk-size",
            "--s3-chunk-size",
            "--s3-upload-concurrency",
            "--concurrency",
            "--transfers",
            "--checkers",
            "--parallel",
            "--numworkers",
            "--multi-thread-streams",
            "--buffer-size",
            "--fast-list",
            "--page-size",
            "--daisy-chain",
            "-D",
        ],
        &[],
        "not needed: Laneway chooses these settings by itself",
    ),
    (
        &["--continue-on-error", "--skip-unsupported"],
        &[],
        "not needed: Laneway reports each failure and goes on with the rest",
    ),
    (
        &["--partial", "--resume"],
        &[],
        "not needed: run the same command again to continue; with cp, -n also skips destinations that exist",
    ),
    (
        &["--checksum-algorithm", "--checksum-mode", "--content-md5"],
        &[],
        "not needed: every copy is verified by checksum",
    ),
    (
        &["--progress", "--show-progress"],
        &[],
        "not needed: Laneway shows its progress on a terminal; --no-progress hides it",
    ),
    (
        &["--no-verify-ssl", "--insecure", "--no-check-certificate", "-k"],
        &[],
        "use --ca-cert FILE to trust a certificate; certificates are always verified",
    ),
    (
        &[
            "--retries",
            "--max-retries",
            "--retry-count",
            "--low-level-retries",
            "--timeout",
            "--contimeout",
            "--cli-read-timeout",
            "--cli-connect-timeout",
        ],
        &[],
        "use --retry-for TIME",
    ),
    (&["--bwlimit", "--limit-rate"], &[], "use --bandwidth-limit RATE"),
    (
        &["--compare-dest", "--copy-dest", "--backup-dir", "--track-renames", "--gzip-in-flight", "-J", "-j"],
        &[],
        "not supported",
    ),
    (&["-a"], &["setmeta"], "use --acl NAME"),
    (&["--grants"], &[], "use --acl NAME, or --header 'x-amz-grant-read: id=ACCOUNT'"),
    (
        &["-u", "--update", "--size-only", "-c", "--checksum", "--if-size-differ", "--if-source-newer"],
        COPY,
        "use sync, which compares before it copies; every copy is verified by its checksum",
    ),
    (
        &["-a", "--archive"],
        &["cp", "mv", "copy", "move", "sync", "rsync"],
        "use --preserve to keep times, modes and owners",
    ),
    (&["--sse-kms-key-id", "--encryption-key"], &[], "use --kms-key KEY"),
    (&["--sse-c", "--sse-c-key"], &[], "use --customer-key-file FILE"),
    (&["--custom-metadata", "--update-custom-metadata"], &[], "use --metadata K=V"),
    (&["--metadata-directive"], &[], "not needed: copies keep metadata; setmeta changes it"),
    (&["--no-guess-mime-type"], &[], "use --content-type TYPE"),
    (&["--additional-headers"], &[], "use --header 'K: V'"),
    (&["--max-age"], &[], "use --newer TIME"),
    (&["--min-age"], &[], "use --older TIME"),
    (&["-x"], SYNC, "use --exclude GLOB; `laneway help patterns` explains patterns"),
    (
        &["--filter", "--include-from", "--filter-from"],
        &[],
        "use --include and --exclude, or --exclude-from FILE, with '+ ' before each name to include",
    ),
    (&["-I", "--read-paths-from-stdin", "--files-from-raw"], &[], "use --files-from -"),
    (&["--manifest-path"], &[], "use --manifest FILE"),
    (&["--output", "--format", "-o"], &[], "use --json"),
    (&["--debug", "--log-http", "--dump"], &[], "use -vv"),
    (&["--verbosity", "--log-level", "--print-created-message"], &[], "use -v or -vv"),
    (&["--log-file"], &[], "use -v 2> FILE"),
    (
        &["--source-region"],
        &[],
        "not needed: Laneway looks up the region of each bucket; --region sets the default",
    ),
    (
        &["--account", "--configuration", "--impersonate-service-account", "--credentials-file"],
        &[],
        "not supported; `laneway help credentials` explains which credentials Laneway uses",
    ),
];

const SYNC: &[&str] = &["sync", "rsync"];
const COPY: &[&str] = &["cp", "mv", "copy", "move"];

/// Verbs of other tools, and names of other tools, that people type after `laneway`. Each entry also has the answer.
const VERB_ANSWERS: &[(&[&str], &str)] = &[
    (
        &["upload", "put", "download", "get", "fetch", "copyto", "mirror", "rcp"],
        "use cp, as in laneway cp -r FOLDER gs://BUCKET/PREFIX",
    ),
    (&["moveto", "rename"], "use mv"),
    (
        &["list", "dir", "lsf", "lsl", "lsd", "tree", "list-objects-v2", "list-buckets"],
        "use ls; -l shows sizes, and -r includes all folders",
    ),
    (&["lsjson"], "use ls -r --json"),
    (&["delete", "del", "remove", "deletefile", "unlink"], "use rm"),
    (&["purge"], "use rm -r"),
    (&["info", "head", "head-object", "describe"], "use stat"),
    (&["check", "cryptcheck", "diff", "compare"], "use verify"),
    (&["size", "usage"], "use du -s"),
    (&["md5sum", "sha1sum", "hashsum", "checksum"], "use hash for files, and stat for objects"),
    (&["mkdir", "make-bucket"], "use mb for buckets; a folder exists as soon as an object is in it"),
    (&["rmdir", "remove-bucket"], "use rb for buckets, and rm -r for a folder"),
    (&["pipe", "rcat"], "use cp - URL"),
    (&["update", "setmetadata", "setmeta-object"], "use setmeta"),
    (&["restore-object", "unarchive"], "use restore"),
    (&["share", "link", "sign-url", "generate-url"], "use sign"),
    (
        &["config", "configure", "auth", "login", "init"],
        "not needed: Laneway uses the credentials of gcloud and aws; see laneway help credentials",
    ),
    (
        &[
            "gsutil", "gcloud", "storage", "aws", "s3", "s3api", "rclone", "s5cmd", "s3cmd", "mc", "objects",
            "buckets",
        ],
        "write the verb after laneway: laneway cp -r FOLDER gs://BUCKET/PREFIX",
    ),
    (
        &[
            "acl",
            "defacl",
            "iam",
            "cors",
            "notification",
            "website",
            "web",
            "logging",
            "retention",
            "label",
            "kms",
        ],
        "not supported; gcloud storage and aws s3api change a bucket's settings",
    ),
    (&["mount", "rewrite", "touch", "dedupe", "select", "bisync"], "not supported"),
    (&["lifecycle", "versioning"], "use laneway bucket lifecycle URL, or laneway bucket versioning URL"),
    (&["version"], "use laneway --version"),
];

/// Returns the answer to a verb of another tool.
pub(crate) fn answer_to_verb(verb: &str) -> Option<&'static str> {
    VERB_ANSWERS.iter().find(|(verbs, _)| verbs.contains(&verb)).map(|(_, answer)| *answer)
}

/// The standard library's messages for a text that isn't a number. Laneway replaces them by clearer words.
const OF_PARSERS: &[&str] = &[
    "invalid digit found in string",
    "number too large to fit in target type",
    "number too small to fit in target type",
    "cannot parse integer from empty string",
    "invalid float literal",
    "cannot parse float from empty string",
];

/// Returns the message for an error of clap. It replaces some of clap's words by clearer ones.
pub(crate) fn explained(line: &[OsString], mut error: clap::Error) -> String {
    let argument = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.clone(),
        _ => String::new(),
    };
    if error.kind() == ErrorKind::UnknownArgument {
        let typed = argument.split('=').next().unwrap_or_default();
        let is_typed_with = |verbs: &[&str]| {
            verbs.is_empty() || line.iter().any(|word| verbs.iter().any(|verb| word == verb))
        };
        let answer = ANSWERS.iter().find(|(names, verbs, _)| names.contains(&typed) && is_typed_with(verbs));
        if let Some((_, _, answer)) = answer {
            return format!("{typed}: {answer}");
        }
        // Clap also suggests passing the option as a value after `--`, but users never mean that.
        error.remove(ContextKind::Suggested);
        let suggested = match error.get(ContextKind::SuggestedArg) {
            Some(ContextValue::String(suggested)) => suggested.clone(),
            _ => String::new(),
        };
        if !is_misspelt(typed, &suggested) {
            error.remove(ContextKind::SuggestedArg);
        }
    }
    if error.kind() == ErrorKind::InvalidSubcommand {
        let typed = match error.get(ContextKind::InvalidSubcommand) {
            Some(ContextValue::String(typed)) => typed.clone(),
            _ => String::new(),
        };
        if let Some(answer) = answer_to_verb(&typed) {
            return format!("{typed}: {answer}");
        }
        let meant = match error.get(ContextKind::SuggestedSubcommand) {
            Some(ContextValue::Strings(meant)) => meant.clone(),
            _ => Vec::new(),
        };
        let meant: Vec<_> = meant.into_iter().filter(|meant| is_misspelt(&typed, meant)).collect();
        error.remove(ContextKind::Suggested);
        match meant.is_empty() {
            true => _ = error.remove(ContextKind::SuggestedSubcommand),
            false => _ = error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(meant)),
        }
    }
    let text = error.render().to_string();
    let text = text.trim_end();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    OF_PARSERS.iter().fold(text.to_owned(), |text, words| text.replace(words, "expects a count of 0 or more"))
}

/// Returns whether every verb accepts an option.
pub(super) fn is_common(command: &Command, option: &str) -> bool {
    let name = option.split('=').next().unwrap_or_default();
    command.get_arguments().filter(|arg| arg.is_global_set()).any(|arg| {
        arg.get_long_and_visible_aliases().into_iter().flatten().any(|long| format!("--{long}") == name)
            || arg.get_short().is_some_and(|short| format!("-{short}") == name)
    })
}

/// Returns whether `typed` is probably a misspelling of `meant`: few letters differ, or one begins with the
/// other.
fn is_misspelt(typed: &str, meant: &str) -> bool {
    let (typed, meant) = (typed.trim_start_matches('-'), meant.trim_start_matches('-'));
    let meant = meant.split([' ', '=']).next().unwrap_or_default();
    let is_beginning = typed.len() > 2 && (meant.starts_with(typed) || typed.starts_with(meant));
    is_beginning || distance(typed, meant) <= 1 + typed.len() / 6
}

/// Returns the number of letters to change, add or remove to turn one word into another.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;

    fn explained_line(line: &str) -> String {
        let line: Vec<_> = line.split(' ').map(OsString::from).collect();
        explained(&line, arguments::parsed(&line).expect_err("it is refused"))
    }

    #[test]
    fn options_and_verbs_of_other_tools_get_a_hint() {
        for (line, hint) in [
            ("laneway cp --progress a gs://b/", "--progress: not needed"),
            ("laneway cp --sse-kms-key-id=k a s3://b/", "--sse-kms-key-id: use --kms-key"),
            ("laneway sync -e a gs://b/", "-e: use --ignore-symlinks"),
            ("laneway cp -m a gs://b/", "-m: not needed"),
            ("laneway -m cp a gs://b/", "-m: not needed"),
            ("laneway upload a gs://b/", "upload: use cp"),
            ("laneway s3 cp a s3://b/", "s3: write the verb after laneway"),
            ("laneway configure", "configure: not needed"),
            ("laneway syn a gs://b/", "'sync'"),
        ] {
            let said = explained_line(line);
            assert!(said.contains(hint), "{line}: {said}");
        }
    }

    #[test]
    fn a_verb_like_no_other_gets_no_suggestion() {
        let said = explained_line("laneway teleport a gs://b/");
        assert!(said.contains("teleport") && !said.contains("similar"), "{said}");
    }

    #[test]
    fn no_hint_stands_for_an_option_that_exists() {
        let mut command = arguments::command();
        command.build();
        for (options, verbs, _) in ANSWERS {
            for verb in command.get_subcommands() {
                let is_meant = verbs.iter().any(|name| verb.get_name() == *name);
                let has = |option: &str| {
                    verb.get_arguments().any(|arg| {
                        let longs = arg.get_long_and_visible_aliases().into_iter().flatten();
                        let shorts = arg.get_short_and_visible_aliases().into_iter().flatten();
                        longs
                            .map(|long| format!("--{long}"))
                            .chain(shorts.map(|s| format!("-{s}")))
                            .any(|name| name == option)
                    })
                };
                let taken: Vec<_> = options.iter().filter(|option| has(option)).collect();
                assert!(!is_meant || taken.is_empty(), "{}: {taken:?}", verb.get_name());
            }
        }
    }

    #[test]
    fn only_what_is_almost_the_same_is_suggested() {
        assert!(is_misspelt("--recursiv", "--recursive") && is_misspelt("--dryrum", "--dry-run"));
        for (typed, suggested) in [
            ("--insecure", "--include"),
            ("--retries", "--recursive"),
            ("--compare-dest", "--ca-cert"),
            ("--no-clobber", "--lock-mode"),
        ] {
            assert!(!is_misspelt(typed, suggested), "{typed} {suggested}");
        }
    }
}
