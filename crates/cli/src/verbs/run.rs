//! `laneway run`: carries out many commands, one per line, on one engine.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use clap::error::ErrorKind;
use laneway::{RunCommand, RunManifest};
use serde::Serialize;

use crate::arguments::{self, CliVerb};
use crate::context::{Context, complain, say};
use crate::exit::{BadUsage, Exit, OutcomeTally};
use crate::job::{Interrupt, SharedEngine};

/// Number of commands that run in parallel. Most commands concern one object and wait for a round trip, so many threads are needed to keep
/// the network busy. The engine itself limits the concurrent requests.
const AT_ONCE: usize = 256;

/// The stack of a thread in bytes. The thread parses its line and then waits for its job. In an unoptimised build, the
/// parser of all options needs more than 1 MiB. Unused pages of the stack take no memory.
const STACK: usize = 4 << 20;

/// Run many commands from a file, one per line, in parallel
///
/// A line is a command without the word laneway, quoted as in a shell. Write options that every verb accepts, such as --json, before the
/// word run and not in a line. Empty lines and lines that begin with # are comments. Commands run in no particular order. A command that
/// fails doesn't stop the others.
///
/// With --manifest, run the same lines again to skip finished work and repeat the rest. cp, mv, rm and sync skip the items that are done.
/// Any other command is skipped if it succeeded before.
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// Record outcomes in FILE, and skip work that FILE records as done
    ///
    /// FILE gets one line of JSON for each command and for each of its items. When you repeat the command, do so in the same folder and
    /// with the same endpoints.
    ///
    /// Example: laneway run --manifest done.jsonl commands.txt
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// File of commands; - is stdin
    #[arg(value_name = "FILE")]
    file: OsString,
}

/// The number of commands that succeeded and that failed, as the record of kind `commands`.
#[derive(Serialize, Debug)]
struct CommandsRecord {
    kind: &'static str,
    done: u64,
    failed: u64,
    /// Commands that were skipped, because the manifest records them as done.
    skipped: u64,
}

/// While no line arrives, check this often whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(100);

/// Returns the error for a command that can only be used alone, not inside `run`.
fn alone(words: &[OsString]) -> BadUsage {
    let verb = words.get(1).map(|verb| verb.to_string_lossy()).unwrap_or_default();
    BadUsage::new(format!("`{verb}` can't be used inside `run`"))
}

/// A line and its number.
type NumberedLine = (usize, Vec<u8>);

impl Run {
    pub(crate) fn run(self, context: &Context, carry_out: CarryOut) -> anyhow::Result<Exit> {
        let lines: Box<dyn BufRead + Send> = match self.file == "-" {
            true => Box::new(BufReader::new(io::stdin())),
            false => Box::new(BufReader::new(File::open(&self.file).map_err(|error| {
                BadUsage::of(Path::new(&self.file).display().to_string(), format!("can't be read: {error}"))
            })?)),
        };
        let client = context.client()?;
        let manifest = match self.manifest {
            Some(path) => {
                let (manifest, warning) = client.run_manifest(path).map_err(|error| {
                    match error.kind() == laneway::ErrorKind::Refused {
                        true => BadUsage::new(error.to_string()).into(),
                        false => anyhow::Error::from(error),
                    }
                })?;
                if let Some(warning) = warning {
                    complain(&warning.to_string());
                }
                Some(manifest)
            }
            None => None,
        };
        let together = Arc::new(SharedEngine::new(client.clone()));
        let stopped = Arc::clone(&together);
        let _interrupt = Interrupt::listen(move || {
            stopped.stop();
            complain("stopping; press Ctrl-C again to stop at once");
        })?;
        let commands = CommandFile {
            context: context.one_of(Arc::clone(&together)),
            file: self.file.to_string_lossy().into_owned(),
            carry_out,
            manifest,
            tally: Mutex::default(),
        };
        let read = commands.carry_out_all(lines);
        let CommandCounts { tally, done, failed, skipped } =
            commands.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        read?;
        if let Some(manifest) = commands.manifest {
            manifest.close()?;
        }
        if context.options.json {
            context.output.json(&CommandsRecord { kind: "commands", done, failed, skipped })?;
        } else if !context.options.quiet {
            context.output.flush()?;
            let commands = if done == 1 { "command" } else { "commands" };
            let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
            let skipped = if skipped > 0 { format!(", {skipped} already done") } else { String::new() };
            say(&format!("{done} {commands} done{skipped}{failed}"));
        }
        context.print_stats(&client)?;
        Ok(if together.is_stopped() { Exit::Interrupted } else { tally.exit() })
    }
}

/// The function that carries out a verb.
pub(crate) type CarryOut = fn(CliVerb, &Context) -> anyhow::Result<Exit>;

struct CommandFile {
    context: Context,
    /// The name of the file of commands, for messages.
    file: String,
    carry_out: CarryOut,
    manifest: Option<RunManifest>,
    tally: Mutex<CommandCounts>,
}

#[derive(Default)]
struct CommandCounts {
    tally: OutcomeTally,
    done: u64,
    failed: u64,
    skipped: u64,
}

impl CommandFile {
    /// Hands each line to a free thread, or starts another one.
    ///
    /// # Errors
    /// Fails if the lines can't be read, or no thread can be started.
    fn carry_out_all(&self, lines: Box<dyn BufRead + Send>) -> io::Result<()> {
        let lines = read(lines)?;
        let (out, coming) = mpsc::sync_channel::<NumberedLine>(0);
        let coming = Mutex::new(coming);
        thread::scope(|scope| {
            let mut threads = 0;
            while !self.context.is_stopped() {
                let line = match lines.recv_timeout(LOOK) {
                    Ok(line) => line?,
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                match out.try_send(line) {
                    Ok(()) => {}
                    Err(TrySendError::Full(line) | TrySendError::Disconnected(line)) => {
                        if threads < AT_ONCE {
                            thread::Builder::new()
                                .name("command".into())
                                .stack_size(STACK)
                                .spawn_scoped(scope, || self.work(&coming))?;
                            threads += 1;
                        }
                        // This waits until a thread takes the line. At least one thread runs, and none ends before the last line.
                        drop(out.send(line));
                    }
                }
            }
            drop(out);
            Ok(())
        })
    }

    fn work(&self, coming: &Mutex<Receiver<NumberedLine>>) {
        loop {
            let line = coming.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((number, line)) = line else { return };
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") || self.context.is_stopped() {
                continue;
            }
            let ended = self.line(number, line);
            let mut counts = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
            match ended {
                CommandOutcome::Before => {
                    counts.tally.done();
                    counts.skipped += 1;
                }
                CommandOutcome::Now(Exit::Done) => {
                    counts.tally.done();
                    counts.done += 1;
                }
                // `run` prints a single message about all interrupted commands, instead of one for each.
                CommandOutcome::Now(Exit::Interrupted) => {}
                CommandOutcome::Now(failed) => {
                    counts.tally.failed(failed == Exit::Usage);
                    counts.failed += 1;
                }
            }
        }
    }

    /// Carries out one line, and records its outcome.
    fn line(&self, number: usize, line: &[u8]) -> CommandOutcome {
        let command = self.manifest.as_ref().map(|manifest| manifest.command(number as u64, line));
        let was_done = command.as_ref().is_some_and(RunCommand::was_done);
        let context = Context {
            line: Some(format!("{}:{number}", self.file)),
            command: command.clone(),
            ..self.context.clone()
        };
        let begun = Instant::now();
        let verb = verb(line);
        if was_done && verb.as_ref().is_ok_and(|verb| !looks_by_itself(verb)) {
            return CommandOutcome::Before;
        }
        // A command with its own --manifest records its outcomes there. So the manifest of `run` doesn't show whether the command did
        // anything.
        let has_its_own = verb.as_ref().is_ok_and(has_its_own_manifest);
        let mut ended = verb.and_then(|verb| (self.carry_out)(verb, &context));
        // An interrupted command has no outcome to record.
        if let Some(command) = command.filter(|_| !matches!(ended, Ok(Exit::Interrupted))) {
            let is_done = matches!(ended, Ok(Exit::Done));
            if was_done && is_done && !has_its_own && !command.has_done_something() {
                return CommandOutcome::Before;
            }
            if let Err(error) = command.ended(is_done, begun.elapsed()) {
                ended = ended.and(Err(error.into()));
            }
        }
        CommandOutcome::Now(ended.unwrap_or_else(|error| {
            let usage = error.is::<BadUsage>();
            let class = if usage { laneway::ErrorKind::Usage } else { laneway::ErrorKind::Local };
            // If this can't be printed, nothing is left to do.
            let _ = context.report_failure(None, &format!("{error:#}"), class.name());
            if usage { Exit::Usage } else { Exit::Failed }
        }))
    }
}

/// The outcome of a line.
enum CommandOutcome {
    /// Nothing was done, because the manifest records the whole command as done.
    Before,
    Now(Exit),
}

/// Returns whether a command runs even if the manifest records it as done. These commands use the manifest to skip single items.
fn looks_by_itself(verb: &CliVerb) -> bool {
    matches!(verb, CliVerb::Cp(_) | CliVerb::Mv(_) | CliVerb::Rm(_) | CliVerb::Sync(_))
}

/// Returns whether a command has its own manifest.
fn has_its_own_manifest(verb: &CliVerb) -> bool {
    match verb {
        CliVerb::Cp(cp) => cp.copying.manifest.manifest.is_some(),
        CliVerb::Mv(mv) => mv.copying.manifest.manifest.is_some(),
        CliVerb::Rm(rm) => rm.manifest.manifest.is_some(),
        CliVerb::Sync(sync) => sync.manifest.manifest.is_some(),
        _ => false,
    }
}

/// Reads lines on a thread of its own, because reading may wait forever.
///
/// # Errors
/// Fails if no thread can be started.
fn read(mut lines: Box<dyn BufRead + Send>) -> io::Result<Receiver<io::Result<NumberedLine>>> {
    let (out, coming) = mpsc::sync_channel(0);
    thread::Builder::new().name("lines".into()).spawn(move || {
        for number in 1.. {
            let mut line = Vec::new();
            let read = match lines.read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(_) => Ok((number, line)),
                Err(error) => Err(error),
            };
            let is_last = read.is_err();
            if out.send(read).is_err() || is_last {
                return;
            }
        }
    })?;
    Ok(coming)
}

/// Returns whether a word names one of the program's standard streams.
fn is_standard(word: &[u8]) -> bool {
    word == b"-" || word.starts_with(b"/dev/std") || word.starts_with(b"/dev/fd/")
}

/// Parses the command of a line.
///
/// # Errors
/// Fails if the line isn't a valid command, or if `run` doesn't permit the command.
fn verb(line: &[u8]) -> anyhow::Result<CliVerb> {
    let words = shlex::bytes::split(line).ok_or_else(|| BadUsage::new("a quotation mark is not closed"))?;
    if words.iter().any(|word| is_standard(word)) {
        return Err(BadUsage::new("a command inside `run` can't use standard input or output").into());
    }
    let words = words.into_iter().map(OsString::from_vec);
    let line = std::iter::once(OsStr::from_bytes(b"laneway").to_owned()).chain(words);
    let line: Vec<_> = line.collect();
    let common = |word: &&OsString| word.to_str().filter(|word| arguments::is_common(word)).is_some();
    let verb = arguments::verb(line.iter().cloned()).map_err(|error| {
        if !error.use_stderr() {
            return alone(&line);
        }
        if error.kind() == ErrorKind::UnknownArgument
            && let Some(option) = line.iter().find(common).map(|word| word.to_string_lossy())
        {
            return BadUsage::new(format!("{option} belongs before run: laneway {option} run ..."));
        }
        let text = arguments::explained(&line, error);
        let said: Vec<_> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
        BadUsage::new(said.join(" "))
    })?;
    match verb {
        CliVerb::Cp(_)
        | CliVerb::Mv(_)
        | CliVerb::Rm(_)
        | CliVerb::Sync(_)
        | CliVerb::Ls(_)
        | CliVerb::Stat(_) => Ok(verb),
        CliVerb::Verify(_)
        | CliVerb::Compose(_)
        | CliVerb::Restore(_)
        | CliVerb::Setmeta(_)
        | CliVerb::Sign(_)
        | CliVerb::Mb(_)
        | CliVerb::Rb(_)
        | CliVerb::Bucket(_)
        | CliVerb::Hash(_)
        | CliVerb::Du(_) => Ok(verb),
        _ => Err(alone(&line).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> String {
        verb(line.as_bytes()).expect_err("it is refused").to_string()
    }

    #[test]
    fn a_line_is_a_command_quoted_as_for_a_shell() {
        assert!(matches!(verb(br#"cp 'a b' s3://bucket/"c d""#), Ok(CliVerb::Cp(_))));
        assert!(matches!(verb(b"rm --yes -r s3://bucket/old/ # and what is in it"), Ok(CliVerb::Rm(_))));
        assert!(refusal("cp 'a s3://b/k").contains("not closed"));
        assert!(refusal("duplicate a b").contains("duplicate"));
        let lacking = refusal("cp a");
        assert!(lacking.contains("required") && lacking.contains("<SRC>"), "{lacking}");
        assert!(refusal("cp --help").contains("`cp` can't be used inside `run`"));
        assert!(refusal("help").contains("`help` can't be used inside `run`"));
    }

    #[test]
    fn options_of_all_commands_and_commands_of_their_own_are_refused() {
        for line in ["cp a s3://b/ --json", "--json cp a s3://b/"] {
            assert!(refusal(line).contains("--json belongs before run: laneway --json run ..."), "{line}");
        }
        for (line, verb) in [("cat s3://b/k", "`cat`"), ("run other", "`run`"), ("serve", "`serve`")] {
            assert!(refusal(line).contains(&format!("{verb} can't be used inside `run`")), "{line}");
        }
        assert!(refusal("cp - s3://b/k").contains("standard input"));
        assert!(refusal("cp s3://b/k /dev/stdout").contains("output"));
    }
}
