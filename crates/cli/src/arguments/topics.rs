//! The topics of `laneway help TOPIC`, and the examples of each verb.

use crate::report::json;

/// The topics, by name, with their text.
const TOPICS: &[(&str, &str)] =
    &[("urls", URLS), ("credentials", CREDENTIALS), ("patterns", PATTERNS), ("json", JSON)];

const URLS: &str = "\
URLs and paths

  gs://BUCKET/KEY       an object on Google Cloud Storage
  s3://BUCKET/KEY       an object on Amazon S3, or on a server that speaks its protocol
  gs://BUCKET/PREFIX/   all objects whose keys begin with PREFIX/
  gs://BUCKET           a whole bucket
  gs://, s3://          all buckets, for ls
  PATH, file://PATH     a local file or folder
  -                     standard input as a source, standard output as a destination

Folders. A key can contain slashes, and a prefix that ends in a slash works like a folder. Commands refuse a folder or
prefix unless -r is given. sync and verify always work on folders.

Destinations of cp and mv. DST is the name of the copy. If DST ends in a slash, the copy keeps its source's name below
DST:

  laneway cp a.txt gs://b/c           makes gs://b/c
  laneway cp a.txt gs://b/c/          makes gs://b/c/a.txt
  laneway cp -r dir gs://b/c          makes gs://b/c/...
  laneway cp -r dir gs://b/c/         makes gs://b/c/dir/...

Versions. In a bucket that keeps versions, gs://BUCKET/KEY#GENERATION and s3://BUCKET/KEY#VERSION_ID name one version.
`laneway ls -a` lists versions. stat, cat, rm and cp accept them. If a key contains #, write this # as [#].

Characters. Write keys as they are, without percent-encoding. Quote URLs with *, ?, [, # or spaces in a shell.

Other servers. --s3-endpoint sets the server for s3:// URLs, and --gcs-endpoint the server for gs:// URLs.
--azure-endpoint sets the server for az:// URLs:

  laneway --s3-endpoint http://localhost:9000 ls s3://";

const CREDENTIALS: &str = "\
Credentials

Laneway uses the credentials that you have already set up for gcloud and aws. It has no login of its own.

Google Cloud Storage (gs://). Laneway uses the first of these that is set up:

  1. The file in GOOGLE_APPLICATION_CREDENTIALS.
  2. gcloud's login for programs. Set it up with: gcloud auth application-default login
  3. The service account of the machine, on Google Cloud.
  4. gcloud's own login, from: gcloud auth login

  ls gs:// and mb also need a project: --project or GOOGLE_CLOUD_PROJECT.

Amazon S3 (s3://). Laneway uses the first of these that is set up:

  1. The profile that --profile names. Laneway then uses no other credentials.
  2. AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, with AWS_SESSION_TOKEN for temporary keys.
  3. The profile in AWS_PROFILE, or the profile `default`. Set one up with: aws configure
  4. The role of the container or of the machine, on AWS.

  A profile can hold keys, a role, a web identity, an SSO session, a login of `aws login` or a credential_process.
  The region comes from --region, AWS_REGION or the profile.

Azure Blob Storage (az://). Laneway uses the first of these that is set up:

  1. AZURE_STORAGE_CONNECTION_STRING. UseDevelopmentStorage=true means Azurite.
  2. AZURE_STORAGE_KEY, the key of the account.
  3. AZURE_STORAGE_SAS_TOKEN.
  4. AZURE_STORAGE_TOKEN, a token that isn't renewed.
  5. AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE, with AZURE_TENANT_ID and AZURE_CLIENT_ID.
  6. The managed identity of the machine, on Azure.
  7. The login of the Azure CLI. Set it up with: az login

  AZURE_STORAGE_ACCOUNT names the account, unless the URL does: az://CONTAINER@ACCOUNT.blob.core.windows.net/KEY.

Other servers. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to the server's keys, and give --s3-endpoint.

Public buckets. --anonymous sends no credentials.

When access is refused. Without credentials, the error lists the places that Laneway searched. If the store refuses
the credentials, the error shows the store's own message. -vv prints each request.

  laneway ls -vv s3://my-bucket";

const PATTERNS: &str = "\
Patterns

  *        any characters except /
  **       any characters, including /
  ?        one character except /
  [a-z]    one character of a set; [!a-z] is one character outside the set

In URLs. Patterns match keys, not names of buckets. Quote them, so that the shell doesn't expand them:

  laneway ls 'gs://my-bucket/photos/*.jpg'
  laneway rm 's3://my-bucket/logs/**/2026-*.gz'

  [*] is a literal *. A pattern that matches nothing is an error.

In --include and --exclude. Patterns match names below the source:

  *.tmp      names that end in .tmp, in any folder
  /*.tmp     names that end in .tmp, but not in folders below the source
  cache/     folders called cache, with everything below them
  a/*.tmp    names that end in .tmp, in any folder called a

Rules apply in order and the first match wins. A name that matches no rule is included, unless all rules are --include.

  laneway cp -r --include '*.jpg' photos gs://my-bucket/photos
  laneway sync --exclude '.git/' --exclude '*.tmp' site gs://my-bucket/site
  laneway rm -r --include keep.log --exclude '*.log' gs://my-bucket/old

--exclude-from FILE reads rules from a file, one per line. A line that begins with '+ ' is an --include rule.
Any other line is an --exclude rule, with or without '- ' in front.";

const JSON: &str = "\
JSON output

--json prints one JSON object per line on standard output. `kind` is the record's type. Fields that don't apply are
missing, and later versions may add fields. Timestamps are in UTC; start_s and end_s are seconds since the program
started.

  item        an object that cp, mv, sync, rm, setmeta, restore or verify finished: op, source, destination, bytes,
              start_s, end_s, attempts, verified; skipped is the reason why it was skipped, dry_run is true in a
              dry run, and error and class describe a failure
  summary     the last record of such a command: files, failed, skipped, unchanged, removed, bytes, seconds,
              connections, requests, retries, and stats with --stats
  object      an object from ls or stat: url, size, updated, etag, checksums in base64, headers, metadata
  prefix      a prefix from ls: url
  bucket      a bucket from ls, mb or rb: url, outcome
  usage       a total from du or ls --summarize: url, objects, bytes
  hash        the checksums of a file: source, size, crc32c, crc64nvme, md5
  signed_url  a URL from sign: source, method, url, expires_at, headers
  commands    the last record of run: done, failed, skipped
  plan        a plan that was made: folder, objects, bytes, removed, parts; requests and list_price in a dry run
  part        a part of a plan that has ended: number, rows, done, skipped, failed, bytes, seconds, failures
  row         an object of a plan that failed: url, destination, error, class
  plan-status the state of a plan: parts, ended, running, expired, given_up, done, failed, left, failures
  plan-check  the outcome of plan verify: same, unverified, missing, different, left, extra
  warning     an item that was skipped, or treated differently than requested: source, warning
  error       a failure of the command or of one URL: url, error, class
  stats       the counters of --stats, for a command without a summary

Example: the URLs of all objects of at least 1 GiB:

  laneway ls -r --min-size 1GiB --json gs://my-bucket | jq -r 'select(.kind == \"object\") | .url'

Classes of failures:
";

/// Returns the names of the topics in one sentence.
pub(crate) fn sentence() -> String {
    let names: Vec<_> = TOPICS.iter().map(|(name, _)| *name).collect();
    format!("More help: laneway help VERB, or laneway help {}.", names.join("|"))
}

/// Returns the names of the topics.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|(name, _)| *name)
}

/// Returns the text of a topic.
pub(crate) fn text(name: &str) -> Option<String> {
    let (name, text) = TOPICS.iter().find(|(topic, _)| *topic == name)?;
    let mut text = (*text).to_owned();
    if *name == "json" {
        for (class, meaning) in json::all() {
            text += &format!("\n  {class:<16} {meaning}");
        }
    }
    Some(text)
}

/// The examples of a verb: the verb's name, and for each example a description and the command.
type Examples = (&'static str, &'static [(&'static str, &'static str)]);

const EXAMPLES: &[Examples] = &[
    (
        "cp",
        &[
            ("Upload a folder", "laneway cp -r photos gs://my-bucket/photos"),
            ("Download a prefix", "laneway cp -r s3://my-bucket/logs/2027 logs"),
            ("Continue after an interruption", "laneway cp -r -n photos gs://my-bucket/photos"),
            ("Copy between clouds", "laneway cp -r s3://my-bucket/data gs://other-bucket/data"),
            ("Copy matching files only", "laneway cp -r --include '*.jpg' photos gs://my-bucket/photos"),
            ("Upload what another program prints", "tar c photos | laneway cp - gs://my-bucket/photos.tar"),
        ],
    ),
    (
        "ls",
        &[
            ("List all buckets", "laneway ls"),
            ("List one level with sizes", "laneway ls -lh gs://my-bucket/photos/"),
            ("List everything as JSON", "laneway ls -r --json s3://my-bucket"),
        ],
    ),
    (
        "du",
        &[
            ("Total of a bucket", "laneway du -sh gs://my-bucket"),
            ("Totals one folder deep", "laneway du -d 1 s3://my-bucket/logs"),
        ],
    ),
    (
        "stat",
        &[
            ("Show an object's metadata", "laneway stat gs://my-bucket/photo.jpg"),
            ("Show the metadata of many objects as JSON", "laneway stat --json 's3://my-bucket/*.jpg'"),
        ],
    ),
    (
        "cat",
        &[
            ("Print an object", "laneway cat gs://my-bucket/notes.txt"),
            ("Print the last 100 bytes", "laneway cat -r -100 s3://my-bucket/server.log"),
        ],
    ),
    (
        "rm",
        &[
            ("Remove one object", "laneway rm gs://my-bucket/photo.jpg"),
            ("Show what would be removed", "laneway rm -r --dry-run s3://my-bucket/old"),
            ("Remove a prefix without asking", "laneway rm -r -y s3://my-bucket/old"),
        ],
    ),
    (
        "mv",
        &[
            ("Rename an object", "laneway mv gs://my-bucket/a.jpg gs://my-bucket/b.jpg"),
            ("Move a folder into a bucket", "laneway mv -r logs s3://my-bucket/logs"),
        ],
    ),
    (
        "sync",
        &[
            ("Upload what changed", "laneway sync site gs://my-bucket/site"),
            ("Show what a mirror would do", "laneway sync -n --delete site gs://my-bucket/site"),
            ("Mirror, with removals", "laneway sync --delete site gs://my-bucket/site"),
            (
                "Sync what git changed",
                "git diff --name-only | laneway sync --delete --files-from - . gs://my-bucket/site",
            ),
        ],
    ),
    (
        "setmeta",
        &[
            (
                "Change a header of all objects below a prefix",
                "laneway setmeta -r --cache-control no-store gs://my-bucket/site",
            ),
            (
                "Add and remove metadata",
                "laneway setmeta --metadata team=data --remove-metadata stage s3://my-bucket/key",
            ),
        ],
    ),
    (
        "restore",
        &[
            ("Restore an object for a week", "laneway restore --days 7 s3://my-bucket/2019/all.tar"),
            (
                "Restore a prefix at the lowest price",
                "laneway restore -r --days 7 --tier Bulk s3://my-bucket/2019",
            ),
            ("Bring a deleted object back on GCS", "laneway restore gs://my-bucket/photo.jpg"),
        ],
    ),
    (
        "compose",
        &[("Join two objects", "laneway compose gs://my-bucket/1 gs://my-bucket/2 gs://my-bucket/all")],
    ),
    (
        "verify",
        &[
            ("Compare a folder with its copy", "laneway verify photos gs://my-bucket/photos"),
            (
                "Compare two clouds, with a report",
                "laneway verify --report report.csv s3://my-bucket/data gs://other-bucket/data",
            ),
        ],
    ),
    (
        "plan",
        &[
            (
                "Plan a copy that many machines run",
                "laneway plan cp s3://my-bucket/data gs://other-bucket/ --parts s3://my-bucket/plans/1",
            ),
            ("Run its parts, on each machine", "laneway plan run s3://my-bucket/plans/1 --workers 2"),
            ("Show the progress", "laneway plan status --watch s3://my-bucket/plans/1"),
            ("Prove the outcome", "laneway plan verify s3://my-bucket/plans/1"),
        ],
    ),
    (
        "sign",
        &[
            ("Share an object for an hour", "laneway sign gs://my-bucket/photo.jpg"),
            (
                "Let somebody upload an object",
                "laneway sign --method PUT --expires 15m s3://my-bucket/photo.jpg",
            ),
        ],
    ),
    (
        "mb",
        &[
            ("Make a bucket on GCS", "laneway mb --project my-project --location EU gs://my-bucket"),
            ("Make a bucket on S3", "laneway mb --region eu-west-1 s3://my-bucket"),
        ],
    ),
    (
        "rb",
        &[
            ("Remove an empty bucket", "laneway rb gs://my-bucket"),
            ("Remove a bucket and its objects", "laneway rb --force s3://my-bucket"),
        ],
    ),
    (
        "bucket",
        &[
            ("Keep versions from now on", "laneway bucket versioning gs://my-bucket on"),
            ("Copy the lifecycle rules of a bucket", "laneway bucket lifecycle s3://my-bucket > rules.json"),
        ],
    ),
    ("hash", &[("Print a file's checksums", "laneway hash photo.jpg")]),
    (
        "run",
        &[
            ("Run a file of commands", "laneway run commands.txt"),
            ("Run commands that another program prints", "make-commands | laneway run -"),
        ],
    ),
    (
        "serve",
        &[
            ("Serve a bucket from memory", "laneway serve --bucket demo"),
            (
                "Imitate a distant store with TLS",
                "laneway serve --tls --rtt 50ms --bandwidth 1Gbit/s --bucket demo",
            ),
        ],
    ),
    ("demo", &[("Show the demo without writing a page", "laneway demo --no-report")]),
    ("bench", &[("Run all benchmarks", "laneway bench all")]),
    (
        "completions",
        &[(
            "Install completions for bash",
            "laneway completions bash > ~/.local/share/bash-completion/completions/laneway",
        )],
    ),
    (
        "man",
        &[
            ("Read the page of a verb", "laneway man cp | man -l -"),
            ("Install all pages", "laneway man --dir ~/.local/share/man/man1"),
        ],
    ),
    ("help", &[("Explain patterns", "laneway help patterns"), ("Explain a verb", "laneway help cp")]),
];

/// Returns the examples of a verb. A verb below another verb, such as `bench all`, has no examples.
pub(crate) fn of(verb: &str) -> &'static [(&'static str, &'static str)] {
    EXAMPLES.iter().find(|(name, _)| *name == verb).map_or(&[], |(_, examples)| examples)
}

/// Returns the examples in the format in which `--help` prints them.
pub(crate) fn help(verb: &str) -> String {
    let lines = of(verb).iter().map(|(does, command)| format!("\n  {does}:\n    {command}"));
    format!("Examples:{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;

    #[test]
    fn every_command_in_a_topic_is_understood() {
        let mut found = 0;
        for name in names() {
            let text = text(name).expect("a topic");
            for line in text.lines().filter(|line| line.starts_with("  laneway ")) {
                let line = line.split("  makes ").next().unwrap_or_default();
                let words = shlex::split(line).expect("a command");
                let command: Vec<_> = words.iter().take_while(|word| *word != "|").collect();
                if let Err(error) = arguments::parsed(&command) {
                    panic!("{line}: {error}");
                }
                found += 1;
            }
        }
        assert!(found >= 10, "{found}");
    }

    #[test]
    fn lines_of_a_topic_fit_a_terminal() {
        for name in names() {
            for line in text(name).expect("a topic").lines() {
                assert!(line.chars().count() <= 120, "{name}: {line}");
            }
        }
    }

    /// Asserts that the command in a line can be parsed: the words from `laneway` up to a pipe or a
    /// redirection.
    fn assert_understood(line: &str) {
        let words = shlex::split(line).expect("a command");
        let command = words.iter().skip_while(|word| *word != "laneway");
        let command: Vec<_> = command.take_while(|word| !["|", ">"].contains(&word.as_str())).collect();
        assert!(command.len() > 1, "{line}");
        if let Err(error) = arguments::parsed(&command) {
            panic!("{line}: {error}");
        }
    }

    #[test]
    fn every_example_of_an_option_is_understood() {
        let mut found = 0;
        for verb in arguments::command().get_subcommands() {
            for help in verb.get_arguments().filter_map(|arg| arg.get_long_help()) {
                let help = help.to_string();
                for line in help.lines().filter_map(|line| line.strip_prefix("Example: ")) {
                    if line.contains("laneway ") {
                        assert_understood(line);
                        found += 1;
                    }
                }
            }
        }
        assert!(found > 100, "{found}");
    }

    #[test]
    fn every_verb_has_examples_and_each_is_understood() {
        for verb in arguments::command().get_subcommands() {
            let examples = of(verb.get_name());
            assert!(!examples.is_empty(), "{}", verb.get_name());
            for (_, line) in examples {
                assert_understood(line);
            }
        }
    }
}
