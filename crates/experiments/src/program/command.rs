//! The command lines of programs: their arguments and environment variables.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use laneway::Provider;

use super::Program;
use crate::Failure;

/// The job of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Job<'a> {
    /// Uploads every file of a folder under a prefix that ends with a slash.
    Up {
        /// The folder, which contains only files.
        folder: &'a Path,
        /// The prefix.
        prefix: &'a str,
    },
    /// Downloads one large object into a file.
    Down {
        /// The object's key.
        key: &'a str,
        /// The file, which must not exist yet.
        file: &'a Path,
    },
    /// Downloads all objects under a prefix that ends with a slash into a folder.
    Tree {
        /// The prefix.
        prefix: &'a str,
        /// The folder, which exists and is empty.
        folder: &'a Path,
    },
    /// Lists the names of all objects under a prefix that ends with a slash, one per line.
    List {
        /// The prefix.
        prefix: &'a str,
    },
    /// Removes all objects under a prefix that ends with a slash.
    Clean {
        /// The prefix.
        prefix: &'a str,
    },
}

impl Job<'_> {
    /// Returns whether the result of the job is the program's standard output.
    pub(super) fn is_listing(&self) -> bool {
        matches!(self, Self::List { .. })
    }
}

/// The environment of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) endpoint: &'a str,
    pub(super) bucket: &'a str,
    pub(super) ca_file: &'a Path,
    /// A folder for files of the programs, such as configurations and logs.
    pub(super) scratch: &'a Path,
    pub(super) laneway: &'a Path,
}

/// A command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Command {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    /// Environment variables in addition to the inherited ones.
    pub(super) variables: Vec<(&'static str, OsString)>,
}

/// The default access key and secret key of the embedded store, which verifies signatures with them.
const ACCESS_KEY: &str = "laneway";
const SECRET_KEY: &str = "lanewaysecret";
const REGION: &str = "us-east-1";
/// The script for obstore. Its arguments select the job.
const OBSTORE: &str = include_str!("obstore.py");

/// Returns the command line of a program for a job.
///
/// # Errors
/// Returns [`Failure::File`] if a program's configuration can't be written.
pub(super) fn command(program: Program, job: &Job<'_>, place: &Place<'_>) -> Result<Command, Failure> {
    Ok(match program {
        Program::Aws => aws(job, place),
        Program::Gcloud => gcloud(job, place),
        Program::Laneway(provider) => laneway(provider, job, place),
        Program::Obstore => obstore(job, place)?,
        Program::Rclone => rclone(job, place),
        Program::S5cmd => s5cmd(job, place),
    })
}

fn words<const N: usize>(words: [&OsStr; N]) -> Vec<OsString> {
    words.map(OsStr::to_owned).to_vec()
}

fn os(text: &str) -> &OsStr {
    OsStr::new(text)
}

/// Appends a text to a folder's path.
fn within(folder: &Path, what: &str) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    path.push(what);
    path
}

/// Returns the environment variables for AWS's SDKs and for programs that use the same names.
fn aws_variables(place: &Place<'_>) -> Vec<(&'static str, OsString)> {
    let nothing = || OsString::from("/dev/null");
    vec![
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY.into()),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY.into()),
        ("AWS_REGION", REGION.into()),
        ("AWS_CONFIG_FILE", nothing()),
        ("AWS_SHARED_CREDENTIALS_FILE", nothing()),
        ("AWS_EC2_METADATA_DISABLED", "true".into()),
        ("AWS_CA_BUNDLE", place.ca_file.into()),
    ]
}

fn aws(job: &Job<'_>, place: &Place<'_>) -> Command {
    let url = |key: &str| format!("s3://{}/{key}", place.bucket);
    let mut arguments = match job {
        Job::Up { .. } | Job::Down { .. } | Job::Tree { .. } => {
            words(["s3", "cp", "--only-show-errors"].map(os))
        }
        Job::List { .. } => words(["s3", "ls"].map(os)),
        Job::Clean { .. } => words(["s3", "rm", "--only-show-errors"].map(os)),
    };
    arguments.extend(words([os("--endpoint-url"), os(place.endpoint)]));
    arguments.extend(match job {
        Job::Up { folder, prefix } => words([os("--recursive"), folder.as_os_str(), os(&url(prefix))]),
        Job::Down { key, file } => words([os(&url(key)), file.as_os_str()]),
        Job::Tree { prefix, folder } => words([os("--recursive"), os(&url(prefix)), folder.as_os_str()]),
        Job::List { prefix } | Job::Clean { prefix } => words([os("--recursive"), os(&url(prefix))]),
    });
    Command { program: "aws".into(), arguments, variables: aws_variables(place) }
}

fn gcloud(job: &Job<'_>, place: &Place<'_>) -> Command {
    let url = |key: &str| format!("gs://{}/{key}", place.bucket);
    let arguments = match job {
        Job::Up { folder, prefix } => {
            words([os("storage"), os("cp"), os("-q"), &within(folder, "/*"), os(&url(prefix))])
        }
        Job::Down { key, file } => {
            words([os("storage"), os("cp"), os("-q"), os(&url(key)), file.as_os_str()])
        }
        Job::Tree { prefix, folder } => {
            let from = url(&format!("{prefix}*"));
            words([os("storage"), os("cp"), os("-q"), os(&from), &within(folder, "/")])
        }
        Job::List { prefix } => words([os("storage"), os("ls"), os(&url(&format!("{prefix}**")))]),
        Job::Clean { prefix } => words([os("storage"), os("rm"), os("-q"), os(&url(&format!("{prefix}**")))]),
    };
    let variables = vec![
        ("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", format!("{}/storage/v1/", place.endpoint).into()),
        ("CLOUDSDK_AUTH_DISABLE_CREDENTIALS", "true".into()),
        ("CLOUDSDK_CONFIG", place.scratch.join("gcloud").into()),
        ("CLOUDSDK_CORE_CHECK_GCE_METADATA", "false".into()),
        ("CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", place.ca_file.into()),
        // Some of gcloud's requests ignore the CA file above, so set it here too.
        ("REQUESTS_CA_BUNDLE", place.ca_file.into()),
        ("CLOUDSDK_CORE_DISABLE_USAGE_REPORTING", "true".into()),
        ("CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK", "true".into()),
        ("CLOUDSDK_CORE_PROJECT", "laneway-bench".into()),
    ];
    Command { program: "gcloud".into(), arguments, variables }
}

fn laneway(provider: Provider, job: &Job<'_>, place: &Place<'_>) -> Command {
    let url = |key: &str| format!("{}://{}/{key}", provider.scheme(), place.bucket);
    let verb = match job {
        Job::Up { .. } | Job::Down { .. } | Job::Tree { .. } => "cp",
        Job::List { .. } => "ls",
        Job::Clean { .. } => "rm",
    };
    let mut arguments = words([os(verb), os("-q"), os("--ca-cert"), place.ca_file.as_os_str()]);
    let mut variables = Vec::new();
    match provider {
        Provider::Gcs => {
            arguments.extend(words([os("--anonymous"), os("--gcs-endpoint"), os(place.endpoint)]))
        }
        _ => {
            arguments.extend(words([os("--s3-endpoint"), os(place.endpoint)]));
            variables = aws_variables(place);
        }
    }
    arguments.extend(match job {
        // Without a slash at the end, the destination is the new name of the folder.
        Job::Up { folder, prefix } => {
            words([os("-r"), folder.as_os_str(), os(&url(prefix.trim_end_matches('/')))])
        }
        Job::Down { key, file } => words([os(&url(key)), file.as_os_str()]),
        Job::Tree { prefix, folder } => words([os(&url(&format!("{prefix}*"))), &within(folder, "/")]),
        Job::List { prefix } => words([os("-r"), os(&url(prefix))]),
        Job::Clean { prefix } => words([os("-r"), os("--yes"), os(&url(prefix))]),
    });
    Command { program: place.laneway.into(), arguments, variables }
}

/// Returns the command for obstore, which has no option for a CA file. The script therefore accepts any certificate. Accepting any
/// certificate doesn't change the messages of the handshake.
fn obstore(job: &Job<'_>, place: &Place<'_>) -> Result<Command, Failure> {
    let account = place.scratch.join("obstore.json");
    let content = serde_json::json!({
        "gcs_base_url": place.endpoint,
        "disable_oauth": true,
        "client_email": "",
        "private_key": "",
        "private_key_id": "",
    });
    fs::write(&account, content.to_string()).map_err(Failure::File)?;
    let mut arguments = words([os("-c"), os(OBSTORE), account.as_os_str(), os(place.bucket)]);
    arguments.extend(match job {
        Job::Up { folder, prefix } => words([os("up"), folder.as_os_str(), os(prefix)]),
        Job::Down { key, file } => words([os("down"), os(key), file.as_os_str()]),
        Job::Tree { prefix, folder } => words([os("tree"), os(prefix), folder.as_os_str()]),
        Job::List { prefix } => words([os("list"), os(prefix), os("")]),
        Job::Clean { prefix } => words([os("clean"), os(prefix), os("")]),
    });
    Ok(Command { program: "python3".into(), arguments, variables: Vec::new() })
}

fn rclone(job: &Job<'_>, place: &Place<'_>) -> Command {
    let path = |key: &str| format!("store:{}/{}", place.bucket, key.trim_end_matches('/'));
    let arguments = match job {
        Job::Up { folder, prefix } => {
            words([os("copy"), os("--no-traverse"), folder.as_os_str(), os(&path(prefix))])
        }
        Job::Down { key, file } => words([
            os("copyto"),
            os("--multi-thread-streams=8"),
            os("--multi-thread-chunk-size=16M"),
            os(&path(key)),
            file.as_os_str(),
        ]),
        Job::Tree { prefix, folder } => words([os("copy"), os(&path(prefix)), folder.as_os_str()]),
        Job::List { prefix } => {
            words([os("lsf"), os("-R"), os("--files-only"), os("--fast-list"), os(&path(prefix))])
        }
        Job::Clean { prefix } => words([os("delete"), os("--fast-list"), os(&path(prefix))]),
    };
    let variables = vec![
        ("RCLONE_CONFIG", place.scratch.join("rclone.conf").into()),
        ("RCLONE_CONFIG_STORE_TYPE", "s3".into()),
        ("RCLONE_CONFIG_STORE_PROVIDER", "Other".into()),
        ("RCLONE_CONFIG_STORE_ENDPOINT", place.endpoint.into()),
        ("RCLONE_CONFIG_STORE_REGION", REGION.into()),
        ("RCLONE_CONFIG_STORE_ACCESS_KEY_ID", ACCESS_KEY.into()),
        ("RCLONE_CONFIG_STORE_SECRET_ACCESS_KEY", SECRET_KEY.into()),
        ("RCLONE_CONFIG_STORE_NO_CHECK_BUCKET", "true".into()),
        ("RCLONE_CA_CERT", place.ca_file.into()),
        ("RCLONE_QUIET", "true".into()),
        ("RCLONE_TRANSFERS", "50".into()),
        ("RCLONE_CHECKERS", "50".into()),
        // A run with a failure gets no figures, so a retry would only waste time.
        ("RCLONE_RETRIES", "1".into()),
    ];
    Command { program: "rclone".into(), arguments, variables }
}

fn s5cmd(job: &Job<'_>, place: &Place<'_>) -> Command {
    let url = |key: &str| format!("s3://{}/{key}", place.bucket);
    let mut arguments = words(["--log", "error", "--endpoint-url"].map(os));
    arguments.push(place.endpoint.into());
    arguments.extend(match job {
        Job::Up { folder, prefix } => words([os("cp"), &within(folder, "/"), os(&url(prefix))]),
        Job::Down { key, file } => words([os("cp"), os(&url(key)), file.as_os_str()]),
        Job::Tree { prefix, folder } => {
            words([os("cp"), os(&url(&format!("{prefix}*"))), &within(folder, "/")])
        }
        Job::List { prefix } => words([os("ls"), os(&url(&format!("{prefix}*")))]),
        Job::Clean { prefix } => words([os("rm"), os(&url(&format!("{prefix}*")))]),
    });
    Command { program: "s5cmd".into(), arguments, variables: aws_variables(place) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(program: Program) -> Vec<String> {
        let scratch = tempfile::tempdir().unwrap();
        let place = Place {
            endpoint: "https://127.0.0.1:9",
            bucket: "b",
            ca_file: Path::new("ca.pem"),
            scratch: scratch.path(),
            laneway: Path::new("/bin/laneway"),
        };
        let (folder, file) = (Path::new("in"), Path::new("out"));
        let jobs = [
            Job::Up { folder, prefix: "p/" },
            Job::Down { key: "p/k", file },
            Job::Tree { prefix: "p/", folder: file },
            Job::List { prefix: "p/" },
            Job::Clean { prefix: "p/" },
        ];
        let line = |job| {
            let Command { program, arguments, variables } = command(program, &job, &place).unwrap();
            assert!(variables.iter().all(|(_, value)| !value.is_empty()));
            let words = std::iter::once(&program).chain(arguments.iter().filter(|word| *word != OBSTORE));
            let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
            words.join(" ").replace(&*scratch.path().to_string_lossy(), "scratch")
        };
        jobs.map(line).to_vec()
    }

    #[test]
    fn programs_are_called_as_their_manuals_say() {
        assert_eq!(
            lines(Program::Aws),
            [
                "aws s3 cp --only-show-errors --endpoint-url https://127.0.0.1:9 --recursive in s3://b/p/",
                "aws s3 cp --only-show-errors --endpoint-url https://127.0.0.1:9 s3://b/p/k out",
                "aws s3 cp --only-show-errors --endpoint-url https://127.0.0.1:9 --recursive s3://b/p/ out",
                "aws s3 ls --endpoint-url https://127.0.0.1:9 --recursive s3://b/p/",
                "aws s3 rm --only-show-errors --endpoint-url https://127.0.0.1:9 --recursive s3://b/p/",
            ]
        );
        assert_eq!(
            lines(Program::Gcloud),
            [
                "gcloud storage cp -q in/* gs://b/p/",
                "gcloud storage cp -q gs://b/p/k out",
                "gcloud storage cp -q gs://b/p/* out/",
                "gcloud storage ls gs://b/p/**",
                "gcloud storage rm -q gs://b/p/**",
            ]
        );
        assert_eq!(
            lines(Program::Laneway(Provider::S3)),
            [
                "/bin/laneway cp -q --ca-cert ca.pem --s3-endpoint https://127.0.0.1:9 -r in s3://b/p",
                "/bin/laneway cp -q --ca-cert ca.pem --s3-endpoint https://127.0.0.1:9 s3://b/p/k out",
                "/bin/laneway cp -q --ca-cert ca.pem --s3-endpoint https://127.0.0.1:9 s3://b/p/* out/",
                "/bin/laneway ls -q --ca-cert ca.pem --s3-endpoint https://127.0.0.1:9 -r s3://b/p/",
                "/bin/laneway rm -q --ca-cert ca.pem --s3-endpoint https://127.0.0.1:9 -r --yes s3://b/p/",
            ]
        );
        assert_eq!(
            lines(Program::Obstore),
            [
                "python3 -c scratch/obstore.json b up in p/",
                "python3 -c scratch/obstore.json b down p/k out",
                "python3 -c scratch/obstore.json b tree p/ out",
                "python3 -c scratch/obstore.json b list p/ ",
                "python3 -c scratch/obstore.json b clean p/ ",
            ]
        );
        assert_eq!(
            lines(Program::Rclone),
            [
                "rclone copy --no-traverse in store:b/p",
                "rclone copyto --multi-thread-streams=8 --multi-thread-chunk-size=16M store:b/p/k out",
                "rclone copy store:b/p out",
                "rclone lsf -R --files-only --fast-list store:b/p",
                "rclone delete --fast-list store:b/p",
            ]
        );
        assert_eq!(
            lines(Program::S5cmd),
            [
                "s5cmd --log error --endpoint-url https://127.0.0.1:9 cp in/ s3://b/p/",
                "s5cmd --log error --endpoint-url https://127.0.0.1:9 cp s3://b/p/k out",
                "s5cmd --log error --endpoint-url https://127.0.0.1:9 cp s3://b/p/* out/",
                "s5cmd --log error --endpoint-url https://127.0.0.1:9 ls s3://b/p/*",
                "s5cmd --log error --endpoint-url https://127.0.0.1:9 rm s3://b/p/*",
            ]
        );
    }

    #[test]
    fn the_embedded_store_takes_the_keys_that_programs_sign_with() {
        let config = laneway_server::S3Config::default();
        assert_eq!((config.access_key.as_str(), config.secret_key.as_str()), (ACCESS_KEY, SECRET_KEY));
        assert_eq!(config.region, REGION);
    }
}
