//! The library for the JVM: the native methods of `dev.laneway.Native` over `laneway-bindings-core`.
//!
//! Java holds numbers of native objects. Calls pass numbers and packed bytes, and nothing here calls into Java. One
//! copy of this library serves all class loaders, and each of them is a listener of its own.

mod exports;
