//! The library for the JVM: the native methods of `dev.laneway.Native` over `laneway-bindings-core`.
//!
//! Java holds numbers, and numbers and packed bytes go between. Nothing here calls into Java, and one copy of this library serves all class
//! loaders, each of which is a listener of its own.

mod exports;
