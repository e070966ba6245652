//! Every verb takes the common options; this says which of them matter to which verb. `-h` of a verb shows those that do, `--help` all
//! of them.

use clap::{Arg, Command};

/// The heading of options that say what becomes of new objects: they mean nothing to a verb that makes none.
pub(crate) const NEW_OBJECTS: &str = "New objects";

/// The definition with the options that mean nothing to a verb left out of its short help.
pub(crate) fn arranged(command: Command) -> Command {
    let common: Vec<Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    command
        .mut_subcommands(|verb| {
            let name = verb.get_name().to_owned();
            // What a verb has already is not handed down to it again.
            verb.args(
                common
                    .iter()
                    .map(|option| option.clone().hide_short_help(!Meaning::of(&name).includes(option))),
            )
        })
        // The program's own `-h` lists the verbs; the `-h` of each verb shows its options.
        .mut_args(|arg| if arg.is_global_set() { arg.hide_short_help(true) } else { arg })
}

/// What a verb does, as far as that decides which options matter to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
    /// Makes objects.
    Writes,
    /// Asks a store for what is there, or removes it.
    Asks,
    /// Writes objects' bytes to standard output, which can't carry JSON as well.
    Streams,
    /// Starts clients of its own, to which few options are handed on.
    Measures,
    /// Shows its progress, and is no client of a store.
    Shows,
    /// Serves, until it is stopped.
    Serves,
    /// Prints one text.
    Prints,
}

impl Meaning {
    /// A verb that isn't named here counts as one that makes objects: too many options are better than one missing.
    fn of(verb: &str) -> Self {
        match verb {
            "ls" | "du" | "stat" | "rm" | "setmeta" | "mb" | "rb" | "verify" => Self::Asks,
            "cat" => Self::Streams,
            "bench" => Self::Measures,
            "demo" | "hash" => Self::Shows,
            "serve" => Self::Serves,
            "completions" | "man" => Self::Prints,
            _ => Self::Writes,
        }
    }

    fn includes(self, option: &Arg) -> bool {
        let id = option.get_id().as_str();
        match self {
            Self::Writes => true,
            Self::Asks => option.get_help_heading() != Some(NEW_OBJECTS),
            Self::Streams => id != "json" && Self::Asks.includes(option),
            Self::Measures => {
                matches!(id, "json" | "quiet" | "verbose" | "ca_certs" | "anonymous" | "region")
                    || id.ends_with("_endpoint")
            }
            Self::Shows => matches!(id, "json" | "quiet" | "verbose"),
            Self::Serves => matches!(id, "quiet" | "verbose"),
            Self::Prints => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::arguments::{Arguments, command, short_help};

    fn long_help(verb: &str) -> String {
        let mut command = command();
        command.build();
        command.find_subcommand_mut(verb).expect("a verb").render_long_help().to_string()
    }

    #[test]
    fn short_help_of_a_verb_has_only_the_options_that_mean_something_to_it() {
        let has = |verb, option| short_help(verb).contains(option);
        assert!(has("cp", "--kms-key") && has("mv", "--s3-endpoint") && has("rm", "--json"));
        assert!(!has("ls", "--kms-key") && has("ls", "--s3-endpoint"));
        assert!(!has("cat", "--json") && has("cat", "--stats"));
        assert!(
            has("serve", "--quiet") && !has("serve", "--max-connections") && !has("serve", "--s3-endpoint")
        );
        assert!(has("bench", "--ca-cert") && !has("bench", "--profile"));
        assert!(!has("completions", "--verbose"));
    }

    #[test]
    fn long_help_of_every_verb_has_every_option_that_it_takes() {
        let arguments = Arguments::command();
        let common: Vec<_> =
            arguments.get_arguments().filter(|arg| arg.is_global_set()).filter_map(Arg::get_long).collect();
        assert!(common.len() > 10, "{common:?}");
        for verb in arguments.get_subcommands().map(Command::get_name) {
            let help = long_help(verb);
            for option in &common {
                assert!(help.contains(&format!("--{option}")), "{verb} lacks --{option}");
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
    fn an_option_that_short_help_leaves_out_is_taken_all_the_same() {
        for line in [&["laneway", "serve", "--profile", "p"], &["laneway", "--profile", "p", "serve"]] {
            let parsed = crate::arguments::parsed(line).expect("it parses");
            assert_eq!(parsed.options.profile.as_deref(), Some("p"));
        }
    }
}
