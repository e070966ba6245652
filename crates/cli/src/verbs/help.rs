//! `laneway help`: the long help of a verb, or a topic.

use clap::Args;

use crate::arguments::{self, mistakes, topics};
use crate::context::Context;
use crate::exit::{BadUsage, Exit};

/// Explain a verb or a topic: urls, credentials, patterns, json
#[derive(Args, Debug)]
pub(crate) struct Help {
    /// Verb or topic to explain
    #[arg(value_name = "VERB|TOPIC")]
    about: Vec<String>,
}

impl Help {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let topic = match &self.about[..] {
            [name] => topics::text(name).map(|text| text + "\n"),
            _ => None,
        };
        let Some(text) = topic.or_else(|| arguments::long_help(&self.about)) else {
            let name = self.about.join(" ");
            let topics = topics::names().collect::<Vec<_>>().join(", ");
            let hint = self.about.first().and_then(|verb| mistakes::answer_to_verb(verb));
            let hint = hint.map(|hint| format!(": {hint}")).unwrap_or_default();
            let why = format!(
                "no such verb or topic{hint}; `laneway -h` lists the verbs, and the topics are {topics}"
            );
            return Err(BadUsage::of(name, why).into());
        };
        context.output.bytes(text.as_bytes())?;
        Ok(Exit::Done)
    }
}
