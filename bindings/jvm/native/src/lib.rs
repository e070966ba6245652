//! The library for the JVM, behind the native methods of `dev.laneway.Native`.
//!
//! It wraps and decides nothing. What Java holds are numbers (`handles`), what goes between are numbers and packed bytes (`packed`), and
//! nothing here calls into Java: a call's end, a record, a wish for credentials is put into a queue (`queue`), from which a thread of Java's
//! takes it. So no thread of the engine's ever waits for a JVM that collects garbage, and one copy of this library serves all class loaders.
//!
//! A verb is an arm of `verbs`, which turns arguments into a call of the library and hands it to `call`. Memory of Java's is lent to a call
//! (`lent`): the call's end is told once nobody uses it any more.

mod call;
mod described;
mod exports;
mod failure;
mod handles;
mod lent;
mod log;
mod opened;
mod options;
mod packed;
mod provider;
mod queue;
mod queues;
mod settings;
mod threads;
mod verbs;
