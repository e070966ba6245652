//! Installed programs as rivals. A run is timed from the start of a process to its end. It is compared with a run of
//! the program `laneway`, which is timed in the same way.
//!
//! The programs use the embedded store over TLS, with the options that their manuals give for a custom endpoint. The benchmark checks the
//! programs' results like those of all other methods.

mod command;
mod process;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use laneway::Provider;

use crate::Failure;
use crate::turns::Rung;
pub(crate) use command::Job;
use command::{Place, command};
pub(crate) use process::Took;

/// A program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Program {
    Aws,
    Gcloud,
    Laneway(Provider),
    /// A Python library. A script calls it, like the scripts of the library's users.
    Obstore,
    Rclone,
    S5cmd,
}

/// The kind of work that an experiment gives to programs. It determines the commands that the report names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Chore {
    Copy,
    List,
    Clean,
}

/// A method that an experiment compares: one of its own, or an installed program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way<M> {
    Own(M),
    Program(Program),
}

impl Program {
    /// Other vendors' programs, in display order.
    const RIVALS: [Self; 5] = [Self::Gcloud, Self::Obstore, Self::Aws, Self::Rclone, Self::S5cmd];

    /// Returns the provider whose API the program uses in the experiments.
    pub(crate) fn provider(self) -> Provider {
        match self {
            Self::Gcloud | Self::Obstore => Provider::Gcs,
            Self::Aws | Self::Rclone | Self::S5cmd => Provider::S3,
            Self::Laneway(provider) => provider,
        }
    }

    fn rung<M>(self, chore: Chore) -> Rung<Way<M>> {
        let name = match self {
            Self::Aws => "program-aws",
            Self::Gcloud => "program-gcloud",
            Self::Laneway(Provider::Gcs) => "program-laneway-gcs",
            Self::Laneway(_) => "program-laneway-s3",
            Self::Obstore => "program-obstore",
            Self::Rclone => "program-rclone",
            Self::S5cmd => "program-s5cmd",
        };
        let description = match (self, chore) {
            (Self::Aws, Chore::Copy) => "S3, the program aws s3 cp",
            (Self::Aws, Chore::List) => "S3, the program aws s3 ls --recursive",
            (Self::Aws, Chore::Clean) => "S3, the program aws s3 rm --recursive",
            (Self::Gcloud, Chore::Copy) => "GCS, the program gcloud storage cp",
            (Self::Gcloud, Chore::List) => "GCS, the program gcloud storage ls",
            (Self::Gcloud, Chore::Clean) => "GCS, the program gcloud storage rm",
            (Self::Laneway(Provider::Gcs), Chore::Copy) => "GCS, the program laneway cp",
            (Self::Laneway(Provider::Gcs), Chore::List) => "GCS, the program laneway ls -r",
            (Self::Laneway(Provider::Gcs), Chore::Clean) => "GCS, the program laneway rm -r",
            (Self::Laneway(_), Chore::Copy) => "S3, the program laneway cp",
            (Self::Laneway(_), Chore::List) => "S3, the program laneway ls -r",
            (Self::Laneway(_), Chore::Clean) => "S3, the program laneway rm -r",
            (Self::Obstore, _) => "GCS, a Python script with obstore (accepts any certificate)",
            (Self::Rclone, Chore::Copy) => "S3, the program rclone copy, 50 transfers",
            (Self::Rclone, Chore::List) => "S3, the program rclone lsf -R --fast-list",
            (Self::Rclone, Chore::Clean) => "S3, the program rclone delete --fast-list, 50 checkers",
            (Self::S5cmd, Chore::Copy) => "S3, the program s5cmd cp",
            (Self::S5cmd, Chore::List) => "S3, the program s5cmd ls",
            (Self::S5cmd, Chore::Clean) => "S3, the program s5cmd rm",
        };
        let group = match self.provider() {
            Provider::Gcs => "GCS, whole programs",
            _ => "S3, whole programs",
        };
        Rung { method: Way::Program(self), name, description, group }
    }

    /// Does a job with the program. The time includes the start of its process.
    ///
    /// # Errors
    /// Returns [`Failure::Process`] if it can't be started, takes too long, or fails.
    pub(crate) async fn carry_out(self, job: &Job<'_>, at: &Reached) -> Result<Took, Failure> {
        let place = Place {
            endpoint: &at.endpoint,
            bucket: &at.bucket,
            ca_file: &at.ca_file,
            scratch: &at.scratch,
            laneway: &at.laneway,
        };
        process::run(command(self, job, &place)?, job.is_listing()).await
    }
}

/// Returns the names and versions of the other vendors' programs among these methods, as human-readable text.
pub(crate) fn versions<M>(rungs: &[Rung<Way<M>>]) -> Vec<String> {
    let is_used =
        |program| rungs.iter().any(|rung| matches!(rung.method, Way::Program(used) if used == program));
    let used = installed().iter().filter(|found| is_used(found.program));
    used.map(|found| found.version.clone()).collect()
}

/// The address, files and folders that an installed program needs to use the embedded store.
#[derive(Clone, Debug)]
pub(crate) struct Reached {
    pub(crate) endpoint: String,
    pub(crate) bucket: String,
    pub(crate) ca_file: PathBuf,
    /// A folder for the programs' own files.
    pub(crate) scratch: PathBuf,
    /// The path of the `laneway` program.
    pub(crate) laneway: PathBuf,
}

/// Returns an experiment's own methods, and then the installed programs. For each API, the program `laneway` comes
/// after its rivals.
pub(crate) fn with_programs<M: Copy>(own: &[Rung<M>], chore: Chore, rivals: &[Program]) -> Vec<Rung<Way<M>>> {
    let own = own.iter().map(|rung| Rung {
        method: Way::Own(rung.method),
        name: rung.name,
        description: rung.description,
        group: rung.group,
    });
    let mut rungs: Vec<_> = own.collect();
    for provider in [Provider::Gcs, Provider::S3] {
        let of_provider = rivals.iter().filter(|rival| rival.provider() == provider);
        let programs: Vec<_> = of_provider.map(|rival| rival.rung(chore)).collect();
        if !programs.is_empty() {
            rungs.extend(programs);
            rungs.push(Program::Laneway(provider).rung(chore));
        }
    }
    rungs
}

/// Returns the time, in seconds since the epoch, at which a file was complete under its final name. This is the
/// change time, because programs may set the modification time to the object's.
///
/// # Errors
/// Returns the file system's error.
pub(crate) fn completed_s(file: &Path) -> Result<f64, Failure> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::metadata(file).map_err(Failure::File)?;
    Ok(found.ctime() as f64 + found.ctime_nsec() as f64 / 1e9)
}

/// Another vendor's program that can be run.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    pub(crate) program: Program,
    /// The program's name and version, as human-readable text.
    pub(crate) version: String,
}

/// Returns other vendors' programs that are on `PATH` and print a version. The search is made once per process. It also
/// runs each program once, so that no measured run includes the files that a program creates at its first start.
pub(crate) fn installed() -> &'static [Installed] {
    static FOUND: OnceLock<Vec<Installed>> = OnceLock::new();
    FOUND.get_or_init(|| Program::RIVALS.into_iter().filter_map(find).collect())
}

fn find(program: Program) -> Option<Installed> {
    let (name, arguments): (_, &[&str]) = match program {
        Program::Aws => ("aws", &["--version"]),
        Program::Gcloud => ("gcloud", &["--version"]),
        Program::Laneway(_) => return None,
        Program::Obstore => ("python3", &["-c", "import obstore; print(obstore.__version__)"]),
        Program::Rclone => ("rclone", &["version"]),
        Program::S5cmd => ("s5cmd", &["version"]),
    };
    let mut asked = Command::new(name);
    let answer = asked.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&answer.stdout);
    let number = number(said.lines().next().unwrap_or_default());
    let name = if program == Program::Obstore { "obstore" } else { name };
    answer
        .status
        .success()
        .then(|| Installed { program, version: format!("{name} {number}").trim_end().to_owned() })
}

/// Returns the version in a line such as `rclone v1.73.1`, `aws-cli/2.27.1 Python/3.13` or `Google Cloud SDK 561.0.0`. The version is the
/// first number with a dot.
fn number(line: &str) -> &str {
    let words = line.split([' ', '/', '-']).map(|word| word.trim_start_matches('v'));
    let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    words.into_iter().find(is_version).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_programs_of_one_language_and_with_laneways_program() {
        let own = [Rung { method: 7, name: "laneway", description: "Laneway", group: "" }];
        let names = |rivals: &[Program]| -> Vec<_> {
            with_programs(&own, Chore::List, rivals).into_iter().map(|rung| (rung.name, rung.group)).collect()
        };
        assert_eq!(names(&[]), [("laneway", "")]);
        assert_eq!(
            names(&[Program::S5cmd, Program::Obstore]),
            [
                ("laneway", ""),
                ("program-obstore", "GCS, whole programs"),
                ("program-laneway-gcs", "GCS, whole programs"),
                ("program-s5cmd", "S3, whole programs"),
                ("program-laneway-s3", "S3, whole programs"),
            ]
        );
    }

    #[test]
    fn a_version_is_the_first_number_with_a_dot() {
        let lines = [
            "rclone v1.73.1",
            "aws-cli/2.27.1 Python/3.13",
            "Google Cloud SDK 561.0.0",
            "v2.3.0-991c9fb",
            "0.9",
            "x",
        ];
        assert_eq!(lines.map(number), ["1.73.1", "2.27.1", "561.0.0", "2.3.0", "0.9", ""]);
    }
}
