//! The command line, defined once. Parsing, help and completions come from this definition and the options of
//! each verb.

pub(crate) mod encryption;
/// A module of the build script, included here to run its tests.
#[cfg(test)]
#[path = "../build/facts.rs"]
mod facts;
pub(crate) mod filters;
pub(crate) mod mistakes;
pub(crate) mod relevance;
pub(crate) mod topics;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::{Args, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use laneway::Client;

use self::encryption::EncryptionOptions;
use crate::exit;
#[cfg(feature = "bench")]
use crate::verbs::bench;
#[cfg(feature = "demo")]
use crate::verbs::demo;
#[cfg(feature = "serve")]
use crate::verbs::serve;
use crate::verbs::{
    buckets, cat, compose, cp, du, hash, help, ls, plan, restore, rm, run, setmeta, sign, sync, verify,
};
pub(crate) use mistakes::explained;

/// Copy files and objects between this machine, Google Cloud Storage and Amazon S3
///
/// Laneway also works with other stores that offer Google's or Amazon's API. It checks every copy against the store's checksum, chooses the
/// number of connections itself, and continues interrupted copies.
///
/// Write objects as gs://BUCKET/KEY or s3://BUCKET/KEY. Any other name is a local path, except for -, which means standard input or output.
#[derive(Parser, Debug)]
#[command(name = "laneway", version, long_version = LONG, max_term_width = 110)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) verb: CliVerb,
    #[command(flatten)]
    pub(crate) options: Options,
}

// Each verb has a file in `verbs`. The doc comment on the verb's struct is the verb's help, and its first paragraph is the short help.
#[derive(Subcommand, Debug)]
pub(crate) enum CliVerb {
    #[command(alias = "copy")]
    Cp(cp::Cp),
    Ls(ls::Ls),
    Du(du::Du),
    Stat(ls::Stat),
    Cat(cat::Cat),
    Rm(rm::Rm),
    #[command(alias = "move")]
    Mv(cp::Mv),
    #[command(visible_alias = "rsync")]
    Sync(sync::Sync),
    Setmeta(setmeta::Setmeta),
    Restore(restore::RestoreVerb),
    #[command(alias = "concat")]
    Compose(compose::Compose),
    Verify(verify::Verify),
    #[command(aliases = ["presign", "signurl"])]
    Sign(sign::SignVerb),
    Mb(buckets::Mb),
    Rb(buckets::Rb),
    Bucket(buckets::BucketVerb),
    Hash(hash::Hash),
    Run(run::Run),
    Plan(plan::PlanVerb),
    #[cfg(feature = "serve")]
    Serve(serve::Serve),
    #[cfg(feature = "demo")]
    Demo(demo::Demo),
    #[cfg(feature = "bench")]
    Bench(bench::Bench),
    Completions(help::CompletionScript),
    Man(help::Man),
    Help(help::Help),
}

/// Options that every verb accepts. The help of a verb shows those that have an effect on it ([`relevance`]).
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct Options {
    /// Print failures only
    ///
    /// Example: laneway cp -q -r photos gs://my-bucket/photos
    #[arg(long, short, alias = "only-show-errors", global = true, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Print each object, connection and retry on stderr; -vv also prints each request
    ///
    /// To log every command, set LANEWAY_LOG to info (like -v) or to debug (like -vv).
    ///
    /// Example: laneway cp -v photo.jpg gs://my-bucket/
    #[arg(long, short, action = clap::ArgAction::Count, global = true, help_heading = "Output")]
    pub(crate) verbose: u8,
    /// Print one JSON object per line on stdout
    ///
    /// `laneway help json` describes the fields.
    ///
    /// Example: laneway ls -r --json gs://my-bucket
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print statistics at the end: connections, requests, waits, bytes, CPU time and the list price of the requests
    ///
    /// Example: laneway cp --stats -r photos gs://my-bucket/photos
    #[arg(hide_short_help = true, long, global = true, help_heading = "Output")]
    pub(crate) stats: bool,
    /// Hide the progress bar
    ///
    /// The bar is only drawn on a terminal.
    ///
    /// Example: laneway cp --no-progress -r photos gs://my-bucket/photos
    #[arg(hide_short_help = true, long, global = true, help_heading = "Output")]
    pub(crate) no_progress: bool,

    /// Limit throughput to RATE, such as 10M, 10MiB/s or 1Gbit/s
    ///
    /// A single letter is a binary unit, as in rclone: 10M is 10 MiB/s.
    ///
    /// Example: laneway cp --bandwidth-limit 10M -r photos gs://my-bucket/photos
    #[arg(long, value_name = "RATE", value_parser = laneway_quantity::parse_rate, global = true, help_heading = "Network")]
    pub(crate) bandwidth_limit: Option<u64>,
    /// Open at most N connections; otherwise Laneway chooses the number
    ///
    /// Example: laneway cp --max-connections 8 -r photos gs://my-bucket/photos
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = connections, global = true, help_heading = "Network")]
    pub(crate) max_connections: Option<usize>,
    /// Give up after retrying for TIME without a response, such as 30s or 10m [default: 2m, or 15s for a server that has never answered]
    ///
    /// 0 disables retries. LANEWAY_RETRY_FOR sets the time for every command.
    ///
    /// Example: laneway ls --retry-for 30s gs://my-bucket
    #[arg(hide_short_help = true, long, value_name = "TIME", value_parser = laneway_quantity::parse_duration, global = true, help_heading = "Network")]
    pub(crate) retry_for: Option<Duration>,
    /// Send this header with each request to the store; repeat for more
    ///
    /// Laneway adds the header to every request for objects, listings and buckets, and to batch deletes. Laneway doesn't add it to requests
    /// for credentials.
    ///
    /// Example: laneway cat --header 'X-Trace: 42' gs://my-bucket/key
    #[arg(hide_short_help = true, long = "header", value_name = "K: V", value_parser = HeaderParser, global = true, help_heading = "Network")]
    pub(crate) headers: Vec<(String, String)>,
    /// Also trust the certificates in this PEM file; repeat for more
    ///
    /// The environment variables AWS_CA_BUNDLE and SSL_CERT_FILE can name such a file too.
    ///
    /// Example: laneway ls --ca-cert company-ca.pem s3://my-bucket
    #[arg(
        hide_short_help = true,
        long = "ca-cert",
        value_name = "FILE",
        global = true,
        help_heading = "Network"
    )]
    pub(crate) ca_certs: Vec<PathBuf>,

    /// Send no credentials
    ///
    /// Public buckets can be read without credentials.
    ///
    /// Example: laneway ls --anonymous gs://gcp-public-data-landsat
    #[arg(long, alias = "no-sign-request", global = true, help_heading = "Store")]
    pub(crate) anonymous: bool,
    /// Use this AWS profile, and only its credentials
    ///
    /// This option overrides AWS_PROFILE.
    ///
    /// Example: laneway ls --profile work s3://my-bucket
    #[arg(long, value_name = "NAME", global = true, help_heading = "Store")]
    pub(crate) profile: Option<String>,
    /// Use this AWS region
    ///
    /// This option overrides AWS_REGION, AWS_DEFAULT_REGION and the profile's region.
    ///
    /// Example: laneway mb --region eu-west-1 s3://my-bucket
    #[arg(hide_short_help = true, long, value_name = "NAME", global = true, help_heading = "Store")]
    pub(crate) region: Option<String>,
    /// Use this Google Cloud project to list and make buckets
    ///
    /// This option overrides GOOGLE_CLOUD_PROJECT.
    ///
    /// Example: laneway ls --project my-project gs://
    #[arg(long, value_name = "PROJECT", global = true, help_heading = "Store")]
    pub(crate) project: Option<String>,
    /// Bill requests to this Google Cloud project
    ///
    /// Requests to a requester-pays bucket need this option.
    ///
    /// Example: laneway cp --user-project my-project gs://their-bucket/key .
    #[arg(
        hide_short_help = true,
        long,
        alias = "billing-project",
        value_name = "PROJECT",
        global = true,
        help_heading = "Store"
    )]
    pub(crate) user_project: Option<String>,
    /// Accept the costs of a requester-pays bucket on S3
    ///
    /// Example: laneway cp --request-payer s3://their-bucket/key .
    #[arg(hide_short_help = true, long, global = true, help_heading = "Store")]
    pub(crate) request_payer: bool,
    /// Send gs:// requests to this server
    ///
    /// This option overrides STORAGE_EMULATOR_HOST.
    ///
    /// Example: laneway ls --gcs-endpoint http://localhost:4443 gs://my-bucket
    #[arg(hide_short_help = true, long, value_name = "URL", global = true, help_heading = "Store")]
    pub(crate) gcs_endpoint: Option<String>,
    /// Send s3:// requests to this server
    ///
    /// This option overrides AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL and the profile's endpoint.
    ///
    /// Example: laneway ls --s3-endpoint http://localhost:9000 s3://my-bucket
    #[arg(long, alias = "endpoint-url", value_name = "URL", global = true, help_heading = "Store")]
    pub(crate) s3_endpoint: Option<String>,
    /// Send az:// requests to this server, the Blob service of a storage account
    ///
    /// This option overrides AZURE_STORAGE_CONNECTION_STRING and AZURE_STORAGE_SERVICE_ENDPOINT.
    ///
    /// Example: laneway ls --azure-endpoint http://127.0.0.1:10000/devstoreaccount1 az://my-container
    #[arg(hide_short_help = true, long, value_name = "URL", global = true, help_heading = "Store")]
    pub(crate) azure_endpoint: Option<String>,
    /// Use this storage account for az:// URLs that name none
    ///
    /// This option overrides AZURE_STORAGE_ACCOUNT.
    ///
    /// Example: laneway ls --azure-account myaccount az://my-container
    #[arg(hide_short_help = true, long, value_name = "NAME", global = true, help_heading = "Store")]
    pub(crate) azure_account: Option<String>,
    /// Put S3 bucket names into the path (https://host/bucket/key) or into the host name (virtual: https://bucket.host/key)
    ///
    /// By default, Laneway uses the setting in the AWS profile. If the profile has none, Laneway chooses by the endpoint.
    ///
    /// Example: laneway ls --s3-addressing path s3://my-bucket
    #[arg(
        hide_short_help = true,
        long,
        value_name = "path|virtual",
        value_enum,
        hide_possible_values = true,
        global = true,
        help_heading = "Store"
    )]
    pub(crate) s3_addressing: Option<Addressing>,
    /// Encrypt new objects with this key of the store's key management service
    ///
    /// Example: laneway cp --kms-key alias/my-key file s3://my-bucket/
    #[arg(hide_short_help = true, long, value_name = "KEY", global = true, help_heading = relevance::NEW_OBJECTS)]
    pub(crate) kms_key: Option<String>,
    #[command(flatten)]
    pub(crate) encryption: EncryptionOptions,
}

/// Returns the definition of the command line. The help of a verb shows only the options that affect this verb.
pub(crate) fn command() -> Command {
    relevance::arranged(whole())
}

/// Returns the definition with every option of every verb, for the manual.
pub(crate) fn whole() -> Command {
    let statuses = exit::sentence();
    let topics = topics::sentence();
    CommandLine::command()
        .disable_help_subcommand(true)
        .after_long_help(format!("{}\n\n{topics}\n{statuses}", environment_help()))
        .after_help(format!("{topics}\n{statuses}"))
}

/// Parses a command line.
///
/// # Errors
/// Fails if the command line can't be parsed. Help and the version also come as errors, but [`clap::Error::use_stderr`]
/// is false for them.
pub(crate) fn parsed<T: Into<OsString> + Clone>(
    line: impl IntoIterator<Item = T>,
) -> Result<CommandLine, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(line)?;
    CommandLine::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Returns whether every verb accepts an option.
pub(crate) fn is_common(option: &str) -> bool {
    mistakes::is_common(&CommandLine::command(), option)
}

/// Parses a command without the options that every verb accepts.
///
/// # Errors
/// Fails in the same cases as [`parsed`].
pub(crate) fn verb(line: impl IntoIterator<Item = OsString>) -> Result<CliVerb, clap::Error> {
    let command = Command::new("laneway").subcommand_required(true).disable_help_subcommand(true);
    let mut command = CliVerb::augment_subcommands(command);
    let matches = command.try_get_matches_from_mut(line)?;
    CliVerb::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The place of an S3 bucket's name in URLs.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Addressing {
    Path,
    Virtual,
}

/// Returns the text that `-h` prints for a verb.
pub(crate) fn short_help(verb: &str) -> String {
    let mut command = command();
    // `build` adds the options that every verb accepts to each verb.
    command.build();
    command.find_subcommand_mut(verb).map(|verb| verb.render_help().to_string()).unwrap_or_default()
}

/// Returns the text that `--help` prints for a verb, such as `["bench", "all"]`. Without a verb, returns the text for the program. Returns
/// `None` if the verb is unknown.
pub(crate) fn long_help(verb: &[String]) -> Option<String> {
    let mut command = command();
    command.build();
    let mut named = &mut command;
    for name in verb {
        named = named.find_subcommand_mut(name)?;
    }
    Some(named.render_long_help().to_string())
}

/// Parses `K=V`.
pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as key=value".to_owned()),
    }
}

/// Parses `K=V`, where `K` becomes part of a header's name.
pub(crate) fn metadata(text: &str) -> Result<(String, String), String> {
    let (name, value) = key_value(text)?;
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    match name.bytes().all(is_taken) {
        true => Ok((name, value)),
        false => Err(format!("the name {name:?} may hold only letters, digits and any of !#$%&'*+-.^_`|~")),
    }
}

/// The maximum of `--max-connections`. An IP address has this many ports.
const CONNECTIONS_MAX: usize = 65_535;

fn connections(text: &str) -> Result<usize, String> {
    let n = text.parse().ok().filter(|n| (1..=CONNECTIONS_MAX).contains(n));
    n.ok_or_else(|| format!("not a number between 1 and {CONNECTIONS_MAX}"))
}

/// Parses `--header`. An invalid header may hold a secret token. clap's own error would show the header, but this parser's error doesn't.
#[derive(Clone)]
struct HeaderParser;

impl TypedValueParser for HeaderParser {
    type Value = (String, String);

    fn parse_ref(
        &self,
        command: &Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let read = value.to_str().ok_or_else(|| "its value isn't UTF-8".to_owned()).and_then(header);
        read.map_err(|cause| {
            let message = format!("invalid value for '--header <K: V>': {cause}\n");
            clap::Error::raw(clap::error::ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write it as 'Name: value'")?;
    let (name, value) = (name.trim(), value.trim());
    // Check the header now: an error from this parser names the option, and a later error wouldn't.
    match Client::builder().header(name, value) {
        Ok(_) => Ok((name.to_owned(), value.to_owned())),
        Err(error) => Err(error.to_string()),
    }
}

/// The option for a manifest, the file that records outcomes.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct ManifestOption {
    /// Record outcomes in FILE, and skip items that FILE records as done
    ///
    /// Each outcome is one line of JSON. If the source of an item has changed since FILE recorded the item, Laneway repeats the item.
    ///
    /// Example: laneway cp -r --manifest done.jsonl photos gs://my-bucket/photos
    #[arg(long = "manifest", value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
}

/// The environment variables that the program reads, each with its meaning. Long help and the manual list them.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    (
        "AWS_PROFILE, AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE",
        "AWS profile for s3://, and the files from which Laneway reads profiles",
    ),
    ("AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN", "Credentials for s3://"),
    ("AWS_REGION, AWS_DEFAULT_REGION", "Region for s3://, like --region"),
    ("AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL", "Server for s3://, like --s3-endpoint"),
    ("AWS_CA_BUNDLE, SSL_CERT_FILE", "Certificates to trust, like --ca-cert"),
    (
        "AWS_USE_DUALSTACK_ENDPOINT, AWS_USE_FIPS_ENDPOINT",
        "`true` selects Amazon's dual-stack or FIPS endpoints",
    ),
    (
        "LANEWAY_CUSTOMER_KEY, LANEWAY_SOURCE_CUSTOMER_KEY",
        "Encryption keys, used instead of --customer-key-file and --source-customer-key-file",
    ),
    ("GOOGLE_APPLICATION_CREDENTIALS", "File with credentials for gs://"),
    ("CLOUDSDK_CONFIG", "Folder where gcloud keeps its login"),
    ("GOOGLE_CLOUD_PROJECT", "Google Cloud project, like --project"),
    ("STORAGE_EMULATOR_HOST", "Server for gs://, like --gcs-endpoint"),
    ("AZURE_STORAGE_ACCOUNT", "Storage account for az://, like --azure-account"),
    ("AZURE_STORAGE_SERVICE_ENDPOINT", "Server for az://, like --azure-endpoint"),
    (
        "AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_TOKEN",
        "Credentials for az://",
    ),
    (
        "AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET, AZURE_FEDERATED_TOKEN_FILE",
        "Identity of Microsoft Entra ID for az://",
    ),
    (
        "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY",
        "Proxies (HTTP, HTTPS, SOCKS5), and hosts to reach without a proxy",
    ),
    ("LANEWAY_RETRY_FOR", "Time to retry, like --retry-for"),
    ("LANEWAY_LOG", "Log level for stderr, or target=level,..."),
    ("XDG_STATE_HOME", "Folder for the records of unfinished uploads, instead of ~/.local/state"),
];

/// Returns the list of environment variables as long help prints it.
fn environment_help() -> String {
    let rows = VARIABLES.iter().map(|(names, meaning)| format!("\n  {names}\n          {meaning}"));
    format!("Environment:{}", rows.collect::<String>())
}

/// Version, commit, target and TLS library, one per line. `-V` prints only the first line.
pub(crate) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit ",
    env!("LANEWAY_COMMIT"),
    "\ntarget ",
    env!("LANEWAY_TARGET"),
    "\nTLS ",
    env!("LANEWAY_TLS"),
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        command().debug_assert();
    }

    #[test]
    fn options_are_taken_before_and_after_the_verb() {
        for line in [&["laneway", "--json", "ls", "gs://b"], &["laneway", "ls", "gs://b", "--json"]] {
            assert!(parsed(line).expect("it parses").options.json);
        }
    }

    #[test]
    fn a_header_is_split_at_its_first_colon() {
        let (name, value) = header("X-Trace: a:b").expect("it parses");
        assert_eq!((name.as_str(), value.as_str()), ("X-Trace", "a:b"));
        assert!(header("no colon").is_err());
        assert!(header("bad name: v").is_err());
        assert!(header("Content-Length: 0").is_err_and(|why| why.contains("only Laneway may set")));
    }

    #[test]
    fn metadata_may_hold_further_equals_signs() {
        assert_eq!(key_value("k=a=b"), Ok(("k".to_owned(), "a=b".to_owned())));
        assert!(key_value("=v").is_err());
        assert!(key_value("k").is_err());
    }

    #[test]
    fn no_connections_at_all_is_bad_usage() {
        assert!(parsed(["laneway", "ls", "gs://b", "--max-connections", "0"]).is_err());
    }

    #[test]
    fn a_version_has_its_commit_target_and_tls_library() {
        let lines: Vec<_> = LONG.lines().collect();
        let [version, commit, target, tls] = lines[..] else { panic!("{LONG}") };
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
        let commit = commit.strip_prefix("commit ").expect("a commit");
        assert!(commit == "unknown" || commit.len() >= 7, "{commit}");
        assert!(target.starts_with("target ") && target.matches('-').count() >= 2, "{target}");
        assert!(tls.starts_with("TLS rustls 0.") && tls.contains(" with ring 0."), "{tls}");
    }
}
