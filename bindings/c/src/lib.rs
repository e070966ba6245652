//! A minimal C interface. It shows that `laneway-bindings-core` is enough for such an interface, with numbers, packed
//! bytes, and calls of verbs by number. It has no builder, no documented header and no stability promise; see "Adding
//! a language" in ARCHITECTURE.md.

mod exports;
