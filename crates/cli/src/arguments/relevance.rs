//! Every verb accepts the common options, but only some of them affect it. This module lists these options for each verb, and arranges the
//! help. `-h` shows a verb's most used options. `--help` shows all options that have an effect, with examples.

use clap::{Arg, Command};

use super::topics;

/// The heading of options for new objects. They have no effect on a verb that creates no objects.
pub(crate) const NEW_OBJECTS: &str = "New objects";

/// Returns the command line's definition with help arranged for each verb.
pub(crate) fn arranged(command: Command) -> Command {
    let common: Vec<Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    command
        .mut_subcommands(|verb| {
            let name = verb.get_name().to_owned();
            let effect = Effect::of(&name);
            // Give each verb its own copy of the common options, and hide those without effect. Clap then keeps the copies, and doesn't add
            // the program's own options.
            let options = common.iter().map(|option| option.clone().hide(!effect.includes(&name, option)));
            verb.args(options)
                .after_help(format!("`laneway help {name}` shows every option, with examples."))
                .after_long_help(topics::help(&name))
        })
        // The program's own `-h` lists the verbs; the `-h` of each verb shows its options.
        .mut_args(|arg| if arg.is_global_set() { arg.hide_short_help(true) } else { arg })
}

/// Kinds of verbs. The kind decides which of the common options have an effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effect {
    /// Creates objects.
    Writes,
    /// Sends requests to a store, but creates no objects: lists, reads metadata, compares, restores or removes objects, or
    /// manages buckets.
    Asks,
    /// Writes objects' bytes to standard output, so `--json` can't be used.
    Streams,
    /// Runs benchmarks, with clients that the benchmark creates itself. Only a few of the common options apply to these clients.
    Measures,
    /// Sends no request to the user's stores: reads files, or uses a store in this process.
    Shows,
    /// Runs a server until the user stops it.
    Serves,
    /// Prints help, the manual or a completion script.
    Prints,
}

impl Effect {
    /// Returns the kind of a verb. A verb that isn't listed here is treated like those that create objects. Its help then has too many
    /// options, which is better than a missing option.
    fn of(verb: &str) -> Self {
        match verb {
            "ls" | "du" | "stat" | "rm" | "restore" | "mb" | "rb" | "bucket" | "verify" => Self::Asks,
            "cat" => Self::Streams,
            "bench" => Self::Measures,
            "demo" | "hash" => Self::Shows,
            "serve" => Self::Serves,
            "completions" | "man" | "help" => Self::Prints,
            _ => Self::Writes,
        }
    }

    fn includes(self, verb: &str, option: &Arg) -> bool {
        let id = option.get_id().as_str();
        match id {
            "project" => return matches!(verb, "ls" | "mb" | "run"),
            "source_customer_key_file" => return matches!(verb, "cp" | "mv" | "sync" | "setmeta" | "run"),
            "bandwidth_limit" => return matches!(verb, "cp" | "mv" | "sync" | "cat" | "run" | "plan"),
            "no_progress" => {
                return matches!(
                    verb,
                    "cp" | "mv" | "sync" | "rm" | "setmeta" | "restore" | "verify" | "run" | "plan"
                );
            }
            _ => {}
        }
        match self {
            Self::Writes => true,
            Self::Asks
                if matches!(verb, "ls" | "du" | "rm" | "restore" | "mb" | "rb")
                    && id == "customer_key_file" =>
            {
                false
            }
            Self::Asks => option.get_help_heading() != Some(NEW_OBJECTS),
            Self::Streams => id != "json" && Self::Asks.includes(verb, option),
            Self::Measures => {
                matches!(id, "json" | "quiet" | "verbose" | "ca_certs" | "anonymous" | "region")
                    || id.ends_with("_endpoint")
            }
            Self::Shows => matches!(id, "json" | "quiet" | "verbose"),
            Self::Serves => matches!(id, "quiet" | "verbose" | "stats"),
            Self::Prints => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::arguments::{CommandLine, command, long_help, short_help};

    /// The maximum number of lines of a short help, so that it fits a terminal.
    const SCREEN: usize = 48;

    #[test]
    fn long_help_of_a_verb_has_only_the_options_that_have_an_effect() {
        let has = |verb: &str, option: &str| long_help(&[verb.to_owned()]).expect("a verb").contains(option);
        assert!(has("cp", "--kms-key") && has("mv", "--s3-endpoint") && has("rm", "--json"));
        assert!(!has("ls", "--kms-key") && has("ls", "--s3-endpoint"));
        assert!(!has("cat", "--json") && has("cat", "--stats"));
        assert!(has("mb", "--project") && has("ls", "--project") && !has("cp", "--project"));
        assert!(
            has("serve", "--quiet") && !has("serve", "--max-connections") && !has("serve", "--s3-endpoint")
        );
        assert!(has("bench", "--ca-cert") && !has("bench", "--profile"));
        assert!(!has("completions", "--verbose") && !has("hash", "--s3-endpoint"));
    }

    #[test]
    fn long_help_of_cp_and_run_have_every_common_option_with_an_effect() {
        let arguments = CommandLine::command();
        let common: Vec<_> = arguments.get_arguments().filter(|arg| arg.is_global_set()).collect();
        assert!(common.len() > 10, "{common:?}");
        let help = long_help(&["run".to_owned()]).expect("a verb");
        for option in common.iter().filter_map(|arg| arg.get_long()) {
            assert!(help.contains(&format!("--{option}")), "--{option} is missing");
        }
    }

    #[test]
    fn short_help_of_a_verb_fits_on_a_screen() {
        for verb in command().get_subcommands().map(Command::get_name) {
            let help = short_help(verb);
            assert!(help.lines().count() <= SCREEN, "{verb}: {} lines\n{help}", help.lines().count());
        }
    }

    #[test]
    fn each_option_of_a_verb_has_a_help_of_one_sentence() {
        let mut command = command();
        command.build();
        for verb in command.get_subcommands() {
            for arg in verb.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let name = format!("{} {}", verb.get_name(), arg.get_id());
                assert!(help.starts_with(char::is_uppercase), "{name}: {help:?}");
                assert!(!help.ends_with('.') && !help.contains(". "), "{name}: {help:?}");
            }
        }
    }

    #[test]
    fn help_of_the_program_lists_verbs_and_its_long_form_the_options() {
        let mut command = command();
        let (short, long) = (command.render_help().to_string(), command.render_long_help().to_string());
        assert!(short.contains("completions") && !short.contains("--s3-endpoint"), "{short}");
        assert!(long.contains("--s3-endpoint") && long.contains("--kms-key"), "{long}");
    }

    #[test]
    fn an_option_that_help_leaves_out_is_accepted() {
        for line in [&["laneway", "serve", "--profile", "p"], &["laneway", "--profile", "p", "serve"]] {
            let parsed = crate::arguments::parsed(line).expect("it parses");
            assert_eq!(parsed.options.profile.as_deref(), Some("p"));
        }
    }
}
