//! Programs that print credentials.

use std::io::{self, IsTerminal as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::sync::oneshot;

use super::deadline::within;
use super::request::short;
use crate::Environment;

/// Splits a command line as a shell does, runs it without a shell, and returns its output. The program gets the
/// variables of `environment`, and in addition those of `variables`.
///
/// # Errors
/// Returns the reason why the program can't run, or its own error output.
pub(super) async fn run(
    line: &str,
    environment: &Environment,
    variables: &[(&str, String)],
    limit: Option<Duration>,
) -> Result<Vec<u8>, String> {
    let words = split(line)?;
    let (program, arguments) = words.split_first().ok_or("the command is empty")?;
    let mut command = Command::new(program);
    environment.pass_to(&mut command);
    command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
    // The program may ask its user for input, so it inherits standard input if that is a terminal. If standard input is
    // a pipe or a file, the program must not read it, because it may hold the bytes to upload.
    let stdin = if io::stdin().is_terminal() { Stdio::inherit() } else { Stdio::null() };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|e| format!("{program}: {e}"))?;
    let (done, output) = oneshot::channel();
    // The program may wait for its user, so a new thread waits for the program. Otherwise it would block a thread of
    // the caller's runtime.
    let pid = child.id();
    std::thread::Builder::new()
        .spawn(move || {
            let _ = done.send(child.wait_with_output());
        })
        .map_err(|e| format!("no thread can start to wait for {program}: {e}"))?;
    let output = match limit {
        None => output.await,
        Some(limit) => match within(limit, output).await {
            Some(output) => output,
            None => {
                tracing::debug!(pid, "a credential process didn't end in time and is left running");
                return Err(format!("{program} didn't end within {} s", limit.as_secs_f64()));
            }
        },
    };
    let output = output
        .map_err(|_| format!("the thread that waited for {program} ended early"))?
        .map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = short(&String::from_utf8_lossy(&output.stderr));
    let said = if words.is_empty() { String::new() } else { format!(": {words}") };
    Err(format!("{program} failed ({}){said}", output.status))
}

fn split(line: &str) -> Result<Vec<String>, String> {
    shlex::split(line).ok_or_else(|| "the command has an opening quote without a closing one".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_as_a_shell_does() {
        let words = split(r#""/opt/my tools/get" --a 'b c' d\ e"#).expect("words");
        assert_eq!(words, ["/opt/my tools/get", "--a", "b c", "d e"]);
        assert!(split("a 'b").is_err());
    }

    #[tokio::test]
    async fn a_command_of_another_environment_sees_none_of_this_process() {
        let other = Environment::of([("HOME", "/home/u")]);
        let seen = run("env", &other, &[("WORD", "out".to_owned())], None).await.expect("it runs");
        let mut seen: Vec<_> = std::str::from_utf8(&seen).unwrap_or_default().lines().collect();
        seen.retain(|line| !line.starts_with("PATH="));
        assert_eq!(seen, ["HOME=/home/u", "WORD=out"]);
    }

    #[tokio::test]
    async fn a_command_gives_its_output_or_what_it_says_of_its_failure() {
        let own = Environment::process();
        let shout = [("WORD", "out".to_owned())];
        assert_eq!(run("sh -c 'echo $WORD'", &own, &shout, None).await.as_deref(), Ok(&b"out\n"[..]));
        let error = run("sh -c 'echo expired >&2; exit 3'", &own, &[], None).await.expect_err("it fails");
        assert!(error.contains("expired") && error.contains('3'), "{error}");
        assert!(run("/does/not/exist", &own, &[], None).await.is_err());
        assert!(run("", &own, &[], None).await.is_err());
        let late =
            run("sleep 5", &own, &[], Some(Duration::from_millis(1))).await.expect_err("it takes too long");
        assert!(late.contains("sleep"), "{late}");
    }
}
