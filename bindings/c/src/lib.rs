//! The least of a face for C, as the proof of what `laneway-bindings-core` gives to one: numbers, packed bytes and calls by the number of
//! their verb. It has no builder, no header with documentation and no promise; see "Adding a language" in ARCHITECTURE.md.

mod exports;
