//! A minimal C interface. It shows that a binding needs only `laneway-bindings-core`: it passes numbers and packed
//! bytes, and calls each operation (verb) by its number. It has no builder, no documented header and no stability
//! promise; see "Adding a language" in ARCHITECTURE.md.

mod exports;
