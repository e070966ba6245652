//! The library for the JVM: the native methods of `dev.laneway.Native` over `laneway-bindings-core`.
//!
//! Java refers to native objects by numbers. Calls pass numbers and packed bytes, and nothing here calls into
//! Java. One copy of this library serves all class loaders. Each class loader has its own queue of events.

mod exports;
