//! A minimal C interface. It shows that `laneway-bindings-core` is enough for one: numbers, packed bytes, and calls by
//! the numbers of their verbs. It has no builder, no documented header and no stability promise; see "Adding a
//! language" in ARCHITECTURE.md.

mod exports;
