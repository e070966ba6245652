//! Finds installed programs and their versions.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::Program;

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
