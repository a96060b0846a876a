//! gremlin-lang text and bytecode to logical plans.
