//! Traversal strategies on the wire: Java class names there, simple names here.

use std::sync::Arc;

use ficus_model::{Argument, Bytecode, Instruction, Value};

const TRAVERSAL: &str = "org.apache.tinkerpop.gremlin.process.traversal.strategy.";
const COMPUTER: &str = "org.apache.tinkerpop.gremlin.process.computer.traversal.strategy.";

/// The packages TinkerPop keeps its strategies in.
const PACKAGES: &[(&str, &str, &[&str])] = &[
    (
        TRAVERSAL,
        "decoration",
        &[
            "ConnectiveStrategy",
            "ElementIdStrategy",
            "EventStrategy",
            "HaltedTraverserStrategy",
            "OptionsStrategy",
            "PartitionStrategy",
            "RequirementsStrategy",
            "SackStrategy",
            "SeedStrategy",
            "SideEffectStrategy",
            "SubgraphStrategy",
        ],
    ),
    (TRAVERSAL, "finalization", &["MatchAlgorithmStrategy", "ProfileStrategy", "ReferenceElementStrategy"]),
    (
        TRAVERSAL,
        "optimization",
        &[
            "AdjacentToIncidentStrategy",
            "ByModulatorOptimizationStrategy",
            "CountStrategy",
            "EarlyLimitStrategy",
            "FilterRankingStrategy",
            "IdentityRemovalStrategy",
            "IncidentToAdjacentStrategy",
            "InlineFilterStrategy",
            "LazyBarrierStrategy",
            "MatchPredicateStrategy",
            "OrderLimitStrategy",
            "PathProcessorStrategy",
            "PathRetractionStrategy",
            "ProductiveByStrategy",
            "RepeatUnrollStrategy",
        ],
    ),
    (
        TRAVERSAL,
        "verification",
        &[
            "ComputerVerificationStrategy",
            "EdgeLabelVerificationStrategy",
            "LambdaRestrictionStrategy",
            "ReadOnlyStrategy",
            "ReservedKeysVerificationStrategy",
            "StandardVerificationStrategy",
            "VertexProgramRestrictionStrategy",
        ],
    ),
    (COMPUTER, "decoration", &["VertexProgramStrategy"]),
    (COMPUTER, "finalization", &["ComputerFinalizationStrategy"]),
    (COMPUTER, "optimization", &["GraphFilterStrategy", "MessagePassingReductionStrategy"]),
];

/// The Java class of a strategy; a name that already is qualified, or unknown, is returned as it is.
pub(crate) fn class_name(simple: &str) -> String {
    let known = PACKAGES.iter().find(|(_, _, names)| names.contains(&simple));
    match known {
        Some((root, package, _)) => format!("{root}{package}.{simple}"),
        None => simple.to_owned(),
    }
}

/// The last part of a Java class name.
pub(crate) fn simple_name(class: &str) -> &str {
    class.rsplit(['.', '$']).next().unwrap_or(class)
}

/// The source instruction that carries a strategy through the value decoders, which know no [`Argument`]s.
const CARRIER: &str = "TraversalStrategy";

/// Wraps a strategy as a value; [`unwrap_strategy`] is the inverse.
pub(crate) fn wrap_strategy(name: &str, options: Vec<(Arc<str>, Argument)>) -> Value {
    let strategy = Argument::Strategy { name: name.into(), options };
    let carrier = Instruction { name: CARRIER.into(), args: vec![strategy], offset: None };
    Value::Bytecode(Arc::new(Bytecode { source: vec![carrier], steps: Vec::new() }))
}

/// The strategy inside, if `bytecode` is a wrapper.
pub(crate) fn unwrap_strategy(bytecode: &Bytecode) -> Option<&Argument> {
    match (bytecode.source.as_slice(), bytecode.steps.is_empty()) {
        ([carrier], true) if &*carrier.name == CARRIER => match carrier.args.as_slice() {
            [strategy @ Argument::Strategy { .. }] => Some(strategy),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_names_and_simple_names_agree() {
        for (_, _, names) in PACKAGES {
            for name in *names {
                assert_eq!(simple_name(&class_name(name)), *name);
            }
        }
        let read_only = "org.apache.tinkerpop.gremlin.process.traversal.strategy.verification.ReadOnlyStrategy";
        assert_eq!(class_name("ReadOnlyStrategy"), read_only);
        assert_eq!(class_name("com.example.MyStrategy"), "com.example.MyStrategy");
    }
}
