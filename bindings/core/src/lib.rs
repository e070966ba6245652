//! The core of the bindings: everything that the interfaces in other languages share.
//!
//! It wraps the library and makes no decisions. A binding adds the types and memory of its language, and its language's
//! way to wait for calls.
//!
//! - Names: `options` and `settings` are the tables of job options and client settings, and `value` reads their values.
//!   `attributes` names the attributes of objects, and `verbs` numbers the verbs.
//! - Hosts that hold numbers and exchange bytes (the JVM, C): `handles`, `packed`, `call`, `events`, `lent`,
//!   `provider`. Nothing here calls into such a host. The end of a call, a log record or a request for credentials is
//!   an event, which a thread of the host takes. So no thread of the engine waits for a host's garbage collection.
//! - Hosts with objects of their own (Python): `queue` wakes a reader once for all calls that are done by then. `fork`
//!   has the rules for a host that forks.
//! - Both: `failure`, `described` and `log`.

pub mod attributes;
pub mod call;
pub mod described;
pub mod events;
pub mod failure;
pub mod fork;
pub mod handles;
pub mod lent;
pub mod log;
pub mod options;
pub mod packed;
pub mod provider;
pub mod queue;
pub mod settings;
mod threads;
pub mod value;
pub mod verbs;
