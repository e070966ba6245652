//! The command line, defined once: parsing, help and completions all come from here and from the verbs' own options.

pub(crate) mod encryption;
pub(crate) mod environment;
pub(crate) mod filters;
pub(crate) mod inventory;
pub(crate) mod manifest;
mod mistakes;
pub(crate) mod names_from;
pub(crate) mod ranges;
pub(crate) mod relevance;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::{Args, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use laneway::Client;

use self::encryption::EncryptionOptions;
#[cfg(feature = "bench")]
use crate::verbs::bench;
#[cfg(feature = "demo")]
use crate::verbs::demo;
#[cfg(feature = "serve")]
use crate::verbs::serve;
use crate::verbs::{
    cat, completions, cp, du, hash, ls, man, mb, mv, rb, rm, run, setmeta, sign, stat, sync, verify,
};
use crate::{exit, version};

/// Moves objects between this machine and Google Cloud Storage or Amazon S3 (and what speaks its protocol), as fast
/// as the network allows.
///
/// Objects are named gs://bucket/key and s3://bucket/key; everything else is a local path, and - is stdin or stdout.
/// Wildcards are * (within a folder), ** (across folders) and ?.
#[derive(Parser, Debug)]
#[command(name = "laneway", version, long_version = version::LONG, max_term_width = 110)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    #[command(flatten)]
    pub(crate) options: Options,
}

// One verb, one file in `verbs`, whose options' first paragraph is what help says of it.
#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    #[command(alias = "copy")]
    Cp(cp::Cp),
    Ls(ls::Ls),
    Du(du::Du),
    Stat(stat::Stat),
    Cat(cat::Cat),
    Rm(rm::Rm),
    #[command(alias = "move")]
    Mv(mv::Mv),
    #[command(visible_alias = "rsync")]
    Sync(sync::Sync),
    Setmeta(setmeta::Setmeta),
    Verify(verify::Verify),
    #[command(aliases = ["presign", "signurl"])]
    Sign(sign::Sign),
    Mb(mb::Mb),
    Rb(rb::Rb),
    Hash(hash::Hash),
    Run(run::Run),
    #[cfg(feature = "serve")]
    Serve(serve::Serve),
    #[cfg(feature = "demo")]
    Demo(demo::Demo),
    #[cfg(feature = "bench")]
    Bench(bench::Bench),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Options that every verb understands. Under its heading an option joins the short help of the verbs that it means
/// something to ([`relevance`]).
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct Options {
    /// Print one JSON object a line on stdout
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print at the end what it took: connections, requests, waits, bytes, CPU time, and their cost at list price
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) stats: bool,
    /// Print failures only
    #[arg(long, short, alias = "only-show-errors", global = true, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Draw no progress bar
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) no_progress: bool,
    /// Say more on stderr: each object, connection and retry, then (-vv) each request; LANEWAY_LOG=debug does the same for
    /// logs
    #[arg(long, short, action = clap::ArgAction::Count, global = true, help_heading = "Output")]
    pub(crate) verbose: u8,

    /// Open at most so many connections (never needed for speed)
    #[arg(long, value_name = "N", value_parser = connections, global = true, help_heading = "Network")]
    pub(crate) max_connections: Option<usize>,
    /// Move at most so many bytes a second: 10MiB/s, 100MB/s, 1Gbit/s
    #[arg(long, value_name = "RATE", value_parser = laneway_quantity::parse_rate, global = true, help_heading = "Network")]
    pub(crate) bandwidth_limit: Option<u64>,
    /// Give up when nothing has come from a server for so long, though it was asked again and again: 30s, 10m; 0 tries
    /// nothing again [default: 2m, and 15s for a server that has never answered]
    #[arg(long, value_name = "TIME", value_parser = laneway_quantity::parse_duration, global = true, help_heading = "Network")]
    pub(crate) retry_for: Option<Duration>,
    /// Send a header with each request for an object; may be given several times
    #[arg(long = "header", value_name = "K: V", value_parser = HeaderParser, global = true, help_heading = "Network")]
    pub(crate) headers: Vec<(String, String)>,
    /// Trust the certificates in this PEM file too; may be given several times (AWS_CA_BUNDLE and SSL_CERT_FILE are
    /// heard as well)
    #[arg(long = "ca-cert", value_name = "FILE", global = true, help_heading = "Network")]
    pub(crate) ca_certs: Vec<PathBuf>,

    /// Send no credentials
    #[arg(long, alias = "no-sign-request", global = true, help_heading = "Store")]
    pub(crate) anonymous: bool,
    /// Where gs:// leads, instead of STORAGE_EMULATOR_HOST or Google's own
    #[arg(long, value_name = "URL", global = true, help_heading = "Store")]
    pub(crate) gcs_endpoint: Option<String>,
    /// Where s3:// leads, instead of AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the AWS profile's or Amazon's own
    #[arg(long, alias = "endpoint-url", value_name = "URL", global = true, help_heading = "Store")]
    pub(crate) s3_endpoint: Option<String>,
    /// Where an S3 bucket's name stands: path (https://host/bucket/key) or virtual (https://bucket.host/key), instead of
    /// what the AWS profile says or the endpoint suggests
    #[arg(
        long,
        value_name = "path|virtual",
        value_enum,
        hide_possible_values = true,
        global = true,
        help_heading = "Store"
    )]
    pub(crate) s3_addressing: Option<Addressing>,
    /// AWS profile, whose credentials and no others are used, instead of AWS_PROFILE
    #[arg(long, value_name = "NAME", global = true, help_heading = "Store")]
    pub(crate) profile: Option<String>,
    /// AWS region, instead of AWS_REGION, AWS_DEFAULT_REGION or the AWS profile's
    #[arg(long, value_name = "NAME", global = true, help_heading = "Store")]
    pub(crate) region: Option<String>,
    /// Google Cloud project that is billed for the requests
    #[arg(long, value_name = "PROJECT", global = true, help_heading = "Store")]
    pub(crate) user_project: Option<String>,
    /// Accept the costs of a requester-pays bucket on S3
    #[arg(long, global = true, help_heading = "Store")]
    pub(crate) request_payer: bool,
    /// Encrypt new objects with this key of the store's key management service
    #[arg(long, value_name = "KEY", global = true, help_heading = relevance::NEW_OBJECTS)]
    pub(crate) kms_key: Option<String>,
    #[command(flatten)]
    pub(crate) encryption: EncryptionOptions,
}

/// The definition, with help arranged.
pub(crate) fn command() -> Command {
    relevance::arranged(whole())
}

/// The whole definition, for the manual, which lists every option of every verb.
pub(crate) fn whole() -> Command {
    let statuses = exit::sentence();
    Arguments::command()
        .after_long_help(format!("{}\n\n{statuses}", environment::help()))
        .after_help(statuses)
}

/// Reads a command line.
///
/// # Errors
/// For a command line that makes no sense. Help and the version come as errors too, though they are no mistakes:
/// [`clap::Error::use_stderr`] is false for them.
pub(crate) fn parsed<T: Into<OsString> + Clone>(
    line: impl IntoIterator<Item = T>,
) -> Result<Arguments, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(line)?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Returns whether an option belongs to all commands.
pub(crate) fn is_common(option: &str) -> bool {
    mistakes::is_common(&Arguments::command(), option)
}

pub(crate) use mistakes::explained;

/// Reads a command without the options that every verb understands.
///
/// # Errors
/// As [`parsed`].
pub(crate) fn verb(line: impl IntoIterator<Item = OsString>) -> Result<Verb, clap::Error> {
    let mut command = Verb::augment_subcommands(Command::new("laneway").subcommand_required(true));
    let matches = command.try_get_matches_from_mut(line)?;
    Verb::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Where the name of an S3 bucket stands.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Addressing {
    Path,
    Virtual,
}

/// What `-h` prints of a verb.
pub(crate) fn short_help(verb: &str) -> String {
    let mut command = command();
    // Building fills in the options that every verb understands.
    command.build();
    command.find_subcommand_mut(verb).map(|verb| verb.render_help().to_string()).unwrap_or_default()
}

/// Reads `K=V`.
pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as key=value".to_owned()),
    }
}

/// Reads `K=V` whose name goes into a header's.
pub(crate) fn metadata(text: &str) -> Result<(String, String), String> {
    let (name, value) = key_value(text)?;
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    match name.bytes().all(is_taken) {
        true => Ok((name, value)),
        false => Err(format!("the name {name:?} may hold letters, digits and any of !#$%&'*+-.^_`|~")),
    }
}

/// Connections that `--max-connections` allows at most: there are no more ports to have them from.
const CONNECTIONS_MAX: usize = 65_535;

fn connections(text: &str) -> Result<usize, String> {
    let n = text.parse().ok().filter(|n| (1..=CONNECTIONS_MAX).contains(n));
    n.ok_or_else(|| format!("not a number between 1 and {CONNECTIONS_MAX}"))
}

/// Reads `--header`. What is none is not repeated, as clap would: it may be a token.
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
        let read = value.to_str().ok_or_else(|| "its value is no UTF-8".to_owned()).and_then(header);
        read.map_err(|cause| {
            let message = format!("invalid value for '--header <K: V>': {cause}\n");
            clap::Error::raw(clap::error::ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write it as 'Name: value'")?;
    let (name, value) = (name.trim(), value.trim());
    // Refused here, where the message names the option.
    match Client::builder().header(name, value) {
        Ok(_) => Ok((name.to_owned(), value.to_owned())),
        Err(error) => Err(error.to_string()),
    }
}

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
        assert!(header("Content-Length: 0").is_err_and(|why| why.contains("framing")));
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
}
