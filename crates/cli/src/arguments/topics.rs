//! The topics of `laneway help TOPIC`, beside the verbs.

use crate::report::class;

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

Folders. A key may hold slashes, and a prefix that ends in a slash works like a folder. Commands refuse a folder or
prefix unless -r is given. sync and verify always work on folders.

Destinations of cp and mv. DST names the copy itself:

  laneway cp a.txt gs://b/c           makes gs://b/c
  laneway cp a.txt gs://b/c/          makes gs://b/c/a.txt
  laneway cp -r dir gs://b/c          makes gs://b/c/...
  laneway cp -r dir gs://b/c/         makes gs://b/c/dir/...

Versions. In a bucket that keeps versions, gs://BUCKET/KEY#GENERATION and s3://BUCKET/KEY#VERSION_ID name one of them.
`laneway ls -a` lists them. stat, cat, rm and cp accept them. To name a key that contains #, write it as [#].

Characters. Write keys as they are, without percent-encoding. Quote URLs with *, ?, [, # or spaces in a shell.

Other servers. --s3-endpoint and --gcs-endpoint say which server s3:// and gs:// mean:

  laneway --s3-endpoint http://localhost:9000 ls s3://";

const CREDENTIALS: &str = "\
Credentials

Laneway uses the credentials that you have already set up for gcloud and aws. It has no login of its own.

Google Cloud Storage (gs://), first match:

  1. The file in GOOGLE_APPLICATION_CREDENTIALS.
  2. gcloud's own login. Set it up with: gcloud auth application-default login
  3. The service account of the machine, on Google Cloud.

  ls gs:// and mb also need a project: --project or GOOGLE_CLOUD_PROJECT.

Amazon S3 (s3://), first match:

  1. The profile that --profile names. Laneway then uses no other credentials.
  2. AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, with AWS_SESSION_TOKEN for temporary keys.
  3. The profile in AWS_PROFILE, or the profile `default`. Set one up with: aws configure
  4. The role of the container or of the machine, on AWS.

  A profile may hold keys, a role, a web identity, an SSO session or a credential_process. The region comes from
  --region, AWS_REGION or the profile.

Other servers. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to the server's keys, and give --s3-endpoint.

Public buckets. --anonymous sends no credentials.

When an object is refused. Without credentials, the error lists the places that Laneway looked at. If the store refuses
them, the error shows the store's own message. -vv prints each request.

  laneway ls -vv s3://my-bucket";

const PATTERNS: &str = "\
Patterns

  *        any characters except /
  **       any characters, also /
  ?        one character except /
  [a-z]    one character of a set; [!a-z] is one that is not in it

In URLs. Patterns match keys, not names of buckets. Quote them, so that the shell leaves them alone:

  laneway ls 'gs://my-bucket/photos/*.jpg'
  laneway rm 's3://my-bucket/logs/**/2026-*.gz'

  [*] is a literal *. A pattern that matches nothing is an error.

In --include and --exclude. Patterns match names below the source:

  *.tmp      such names in any folder
  /*.tmp     such names at the top only
  cache/     folders called cache, with everything below them
  a/*.tmp    such names in any folder called a

Rules apply in order and the first match wins. A name that matches no rule is included, unless all rules are --include.

  laneway cp -r --include '*.jpg' photos gs://my-bucket/photos
  laneway sync --exclude '.git/' --exclude '*.tmp' site gs://my-bucket/site
  laneway rm -r --include keep.log --exclude '*.log' gs://my-bucket/old

--exclude-from FILE reads rules from a file, one per line. '+ ' in front of a line includes, '- ' or nothing excludes.";

const JSON: &str = "\
JSON output

--json prints one JSON object per line on standard output. `kind` names the record. Fields that don't apply are missing,
and new ones may be added. Times of day are in UTC; start_s and end_s are seconds since the program started.

  item        an object that cp, mv, sync, rm, setmeta or verify finished: op, source, destination, bytes, start_s,
              end_s, attempts, verified; skipped says why it was skipped, dry_run marks a plan, and error and class
              describe a failure
  summary     the last record of such a command: files, failed, skipped, unchanged, removed, bytes, seconds,
              connections, requests, retries, and stats with --stats
  object      an object of ls or stat: url, size, updated, etag, checksums in base64, headers, metadata
  prefix      a prefix of ls: url
  bucket      a bucket of ls, mb or rb: url, outcome
  usage       a total of du or ls --summarize: url, objects, bytes
  hash        the checksums of a file: source, size, crc32c, crc64nvme, md5
  signed_url  a URL of sign: source, method, url, expires_at, headers
  commands    the last record of run: done, failed, skipped
  warning     something that was skipped or done differently: source, warning
  error       a failure of the command or of one place: url, error, class
  stats       the counters of --stats, where there is no summary

Example, the keys of all objects above 1 GiB:

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
        for (class, meaning) in class::all() {
            text += &format!("\n  {class:<16} {meaning}");
        }
    }
    Some(text)
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
}
