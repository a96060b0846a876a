//! Scoped dataflow runtime: scopes, operators, executors, quotas; knows no graph.
