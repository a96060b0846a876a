//! What configures a traversal source: `withSack`, `withSideEffect`, `withStrategies`, `with` and their like.

use std::sync::Arc;

use ficus_model::{Argument, Bytecode, Instruction, Operator, Shared, Value};
use ficus_query::logical::{Name, SackOptions, SourceOptions, Strategy, Traversal};
use ficus_query::options::{self, MATERIALIZE_PROPERTIES, OPTIONS, Problem};
use ficus_query::rules::RULES;

use super::arguments::{Given, Step, given, to_integer, to_value};
use super::builder::{Context, Lowering};
use super::error::{LowerError, LowerErrorKind, Lowered};
use super::nearest::nearest;
use crate::text::TransactionOperation;

/// More configuration than any query has.
const INSTRUCTIONS_MAX: usize = 1000;

/// The strategy that `withComputer()` stands for.
const PROGRAM_STRATEGY: &str = "VertexProgramStrategy";

/// The strategy that infix `and()` and `or()` are of; without it they are ordinary steps.
const INFIX_STRATEGY: &str = "ConnectiveStrategy";

/// Strategies that change no result here: TinkerPop's optimisations, and what guards abilities that FicusDB does not have. One of
/// them is at work without being named, so that leaving it out changes results: [`INFIX_STRATEGY`].
const WITHOUT_EFFECT: &[&str] = &[
    "AdjacentToIncidentStrategy",
    "ByModulatorOptimizationStrategy",
    "ComputerFinalizationStrategy",
    "ComputerVerificationStrategy",
    "ConnectiveStrategy",
    "CountStrategy",
    "EarlyLimitStrategy",
    "FilterRankingStrategy",
    "GValueReductionStrategy",
    "GraphFilterStrategy",
    "HaltedTraverserStrategy",
    "IdentityRemovalStrategy",
    "IncidentToAdjacentStrategy",
    "InlineFilterStrategy",
    "LambdaRestrictionStrategy",
    "LazyBarrierStrategy",
    "MatchAlgorithmStrategy",
    "MatchPredicateStrategy",
    "MessagePassingReductionStrategy",
    "OrderLimitStrategy",
    "PathProcessorStrategy",
    "PathRetractionStrategy",
    "ProfileStrategy",
    "RepeatUnrollStrategy",
    "RequirementsStrategy",
    "SackStrategy",
    "SideEffectStrategy",
    "TinkerGraphCountStrategy",
    "TinkerGraphStepStrategy",
    "TinkerMergeEVStepStrategy",
    "VertexProgramRestrictionStrategy",
];

/// Strategies with a meaning of their own.
const WITH_EFFECT: &[&str] = &[
    "EdgeLabelVerificationStrategy",
    "ElementIdStrategy",
    "OptionsStrategy",
    "PartitionStrategy",
    "ProductiveByStrategy",
    "ReadOnlyStrategy",
    "ReferenceElementStrategy",
    "ReservedKeysVerificationStrategy",
    "SeedStrategy",
    "StandardVerificationStrategy",
    "SubgraphStrategy",
    "VertexProgramStrategy",
];

/// The transaction command that `bytecode` consists of, if it does: `g.tx().commit()` and its like arrive as a source
/// instruction `tx` without steps, and are not for the lowering.
pub fn transaction_command(bytecode: &Bytecode) -> Option<TransactionOperation> {
    let [Instruction { name, args, .. }] = bytecode.source.as_slice() else { return None };
    let [Argument::Value(Value::String(command))] = args.as_slice() else { return None };
    if &**name != "tx" || !bytecode.steps.is_empty() {
        return None;
    }
    match &**command {
        "begin" => Some(TransactionOperation::Begin),
        "commit" => Some(TransactionOperation::Commit),
        "rollback" => Some(TransactionOperation::Rollback),
        _ => None,
    }
}

/// Reads the configuration of a source.
pub(super) fn lower(source: &[Instruction], lowering: &Lowering) -> Lowered<SourceOptions> {
    let mut options = SourceOptions::default();
    if let Some(first) = source.get(INSTRUCTIONS_MAX) {
        let message = format!("the traversal source has more than {INSTRUCTIONS_MAX} instructions");
        return Err(Step::new(first).error(LowerErrorKind::TooLarge, message));
    }
    for instruction in source {
        let step = Step::new(instruction);
        match step.name() {
            "withSack" => options.sack = Some(sack(step)?),
            "withSideEffect" => side_effect(step, &mut options)?,
            "withPath" => {
                step.no_arguments()?;
                options.with_path = true;
            }
            "withBulk" => {
                step.at_most(1)?;
                options.without_bulk = match step.given(0) {
                    Some(Given::Value(Value::Bool(bulk))) => !bulk,
                    _ => return Err(step.expected(0, "a boolean")),
                };
            }
            "with" => {
                step.at_most(2)?;
                let value = if step.count() > 1 { step.value(1)? } else { Value::Bool(true) };
                option(step, &mut options, step.name_at(0)?, value)?;
            }
            "withStrategies" => {
                for argument in step.arguments() {
                    let (name, settings) = strategy_argument(step, argument)?;
                    add(step, name, settings, &mut options, lowering)?;
                }
                check_restriction(step, &options)?;
            }
            "withoutStrategies" => {
                for argument in step.arguments() {
                    let (name, _) = strategy_argument(step, argument)?;
                    // What is not there need not be taken out.
                    options.strategies.retain(|strategy| name_of(strategy) != name);
                    options.strategies.push(Strategy::Without(name.into()));
                }
            }
            // Which engine runs a traversal is not for the traversal to say; graph programs run in any.
            "withComputer" => {
                for argument in step.arguments() {
                    let (_, settings) = strategy_argument(step, argument)?;
                    add(step, PROGRAM_STRATEGY, settings, &mut options, lowering)?;
                }
                if step.count() == 0 {
                    add(step, PROGRAM_STRATEGY, &[], &mut options, lowering)?;
                }
                check_restriction(step, &options)?;
            }
            "tx" => {
                return Err(step.illegal("g.tx() stands alone: begin(), commit() or rollback(), without steps"));
            }
            name => {
                const KNOWN: [&str; 7] = [
                    "withSack",
                    "withSideEffect",
                    "withPath",
                    "withBulk",
                    "with",
                    "withStrategies",
                    "withoutStrategies",
                ];
                let advice = nearest(name, KNOWN.into_iter()).map(|known| format!(": did you mean {known}()?"));
                let message = format!("a traversal source has no {name}(){}", advice.unwrap_or_default());
                return Err(step.error(LowerErrorKind::UnknownStep, message));
            }
        }
    }
    if options.strategies.contains(&Strategy::Without(INFIX_STRATEGY.into())) {
        lowering.leave_infix();
    }
    Ok(options)
}

/// Takes an option, if it is one.
fn option(step: Step<'_>, options: &mut SourceOptions, key: Name, value: Value) -> Lowered {
    let message = match options::check(&key, &value) {
        Ok(()) => {
            set(&mut options.options, key, value);
            return Ok(());
        }
        Err(Problem::Takes(takes)) => format!("with('{key}', …) takes {takes}, but got {}", shown(&value)),
        Err(Problem::Unknown) => {
            // A label can be anything, so the nearest option has the one that was given.
            let label = key
                .strip_prefix("ficus.scope.")
                .and_then(|rest| rest.rsplit_once('.'))
                .map_or("label", |(label, _)| label);
            let options = OPTIONS.iter().filter(|option| !option.name.contains("<name>"));
            let rules = RULES.iter().map(|info| format!("ficus.rule.{}", info.name));
            let names: Vec<String> = options.map(|option| option.name.replace("<label>", label)).chain(rules).collect();
            let advice = match nearest(&key, names.iter().map(String::as_str)) {
                Some(known) => format!("did you mean '{known}'?"),
                None => {
                    format!("there are {}", OPTIONS.iter().map(|option| option.name).collect::<Vec<_>>().join(", "))
                }
            };
            format!("there is no option '{key}': {advice}")
        }
    };
    Err(step.error(LowerErrorKind::WrongOption, message))
}

/// A value as a message shows it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() <= 40 => format!("'{text}'"),
        Value::Bool(_) | Value::Int(_) | Value::Long(_) => format!("{} {value}", value.type_name()),
        _ => format!("a {}", value.type_name()),
    }
}

fn set(entries: &mut Vec<(Name, Value)>, key: Name, value: Value) {
    match entries.iter_mut().find(|(other, _)| *other == key) {
        Some(entry) => entry.1 = value,
        None => entries.push((key, value)),
    }
}

/// `withSack(initial)`, `withSack(initial, merge)`, `withSack(initial, split, merge)`.
fn sack(step: Step<'_>) -> Lowered<SackOptions> {
    step.at_most(3)?;
    let initial = step.value(0)?;
    let (split, merge) = match step.count() {
        1 => (None, None),
        2 => (None, Some(step.operator(1)?)),
        _ => (optional_operator(step, 1)?, optional_operator(step, 2)?),
    };
    Ok(SackOptions { initial, split, merge })
}

fn optional_operator(step: Step<'_>, index: usize) -> Lowered<Option<Operator>> {
    match step.given(index) {
        None | Some(Given::Value(Value::Null)) => Ok(None),
        _ => step.operator(index).map(Some),
    }
}

fn side_effect(step: Step<'_>, options: &mut SourceOptions) -> Lowered {
    step.at_most(3)?;
    let (key, value, reducer) = (step.name_at(0)?, step.value(1)?, optional_operator(step, 2)?);
    match options.side_effects.iter_mut().find(|(other, ..)| *other == key) {
        Some(entry) => *entry = (key, value, reducer),
        None => options.side_effects.push((key, value, reducer)),
    }
    Ok(())
}

// ---- strategies ------------------------------------------------------------------------------------------------

type Settings<'a> = &'a [(Arc<str>, Argument)];

/// The simple name and the settings of a strategy; class names come with or without their package.
fn strategy_argument<'a>(step: Step<'_>, argument: &'a Argument) -> Lowered<(&'a str, Settings<'a>)> {
    let (name, settings): (&str, Settings<'a>) = match given(argument) {
        Given::Strategy(name, settings) => (name, settings),
        Given::Value(Value::String(name)) => (name, &[]),
        other => return Err(step.wrong(format!("{}() takes strategies, but got {}", step.name(), other.describe()))),
    };
    Ok((name.rsplit(['.', '$']).next().unwrap_or(name), settings))
}

fn is_known(name: &str) -> bool {
    WITHOUT_EFFECT.contains(&name) || WITH_EFFECT.contains(&name)
}

fn unknown_strategy(step: Step<'_>, name: &str) -> LowerError {
    let known = WITHOUT_EFFECT.iter().chain(WITH_EFFECT).copied();
    let advice = nearest(name, known).map(|known| format!(": did you mean {known}?")).unwrap_or_default();
    step.error(LowerErrorKind::UnknownStep, format!("there is no strategy {name}{advice}"))
}

/// `VertexProgramRestrictionStrategy` forbids `VertexProgramStrategy`.
fn check_restriction(step: Step<'_>, options: &SourceOptions) -> Lowered {
    let has = |name: &str| {
        options.strategies.iter().any(|strategy| matches!(strategy, Strategy::Optimisation(other) if &**other == name))
    };
    if has(PROGRAM_STRATEGY) && has("VertexProgramRestrictionStrategy") {
        return Err(step.illegal("The TraversalSource does not allow the use of a GraphComputer"));
    }
    Ok(())
}

/// The simple name of a strategy.
fn name_of(strategy: &Strategy) -> &str {
    match strategy {
        Strategy::ReadOnly => "ReadOnlyStrategy",
        Strategy::Subgraph { .. } => "SubgraphStrategy",
        Strategy::Partition { .. } => "PartitionStrategy",
        Strategy::Seed(_) => "SeedStrategy",
        Strategy::ReservedKeys { .. } => "ReservedKeysVerificationStrategy",
        Strategy::EdgeLabelVerification { .. } => "EdgeLabelVerificationStrategy",
        Strategy::ElementId { .. } => "ElementIdStrategy",
        Strategy::StandardVerification => "StandardVerificationStrategy",
        Strategy::ProductiveBy { .. } => "ProductiveByStrategy",
        Strategy::Optimisation(name) | Strategy::Without(name) => name,
    }
}

/// One setting after another is taken; what is left over is unknown.
struct Reader<'a> {
    step: Step<'a>,
    strategy: &'a str,
    settings: Vec<(&'a str, &'a Argument)>,
}

impl<'a> Reader<'a> {
    fn new(step: Step<'a>, strategy: &'a str, settings: Settings<'a>) -> Reader<'a> {
        // Some drivers send the class name along.
        let settings = settings.iter().filter(|(key, _)| &**key != "strategy");
        Reader { step, strategy, settings: settings.map(|(key, value)| (&**key, value)).collect() }
    }

    fn take(&mut self, key: &str) -> Option<&'a Argument> {
        let index = self.settings.iter().position(|(other, _)| *other == key)?;
        let (_, value) = self.settings.remove(index);
        if matches!(value, Argument::Value(Value::Null)) { None } else { Some(value) }
    }

    fn wrong(&self, key: &str, what: &str, argument: &Argument) -> LowerError {
        self.step.wrong(format!("{}: {key} must be {what}, not {}", self.strategy, given(argument).describe()))
    }

    fn boolean(&mut self, key: &str, default: bool) -> Lowered<bool> {
        match self.take(key) {
            None => Ok(default),
            Some(Argument::Value(Value::Bool(value))) => Ok(*value),
            Some(other) => Err(self.wrong(key, "a boolean", other)),
        }
    }

    fn text(&mut self, key: &str) -> Lowered<Option<Name>> {
        match self.take(key) {
            None => Ok(None),
            Some(Argument::Value(Value::String(text))) => Ok(Some(text.clone())),
            Some(other) => Err(self.wrong(key, "a string", other)),
        }
    }

    fn values(&mut self, key: &str) -> Lowered<Option<Vec<Value>>> {
        let Some(argument) = self.take(key) else { return Ok(None) };
        match to_value(argument) {
            Some(Value::List(members)) => Ok(Some(Shared::unwrap_or_clone(members))),
            Some(Value::Set(members)) => Ok(Some(members.iter().cloned().collect())),
            Some(value @ Value::String(_)) => Ok(Some(vec![value])),
            _ => Err(self.wrong(key, "a list", argument)),
        }
    }

    fn names(&mut self, key: &str) -> Lowered<Option<Vec<Name>>> {
        let Some(values) = self.values(key)? else { return Ok(None) };
        let names = values.into_iter().map(|value| match value {
            Value::String(name) => Ok(name),
            other => Err(self.wrong(key, "a list of strings", &Argument::Value(other))),
        });
        names.collect::<Lowered<Vec<Name>>>().map(Some)
    }

    fn traversal(&mut self, key: &str, lowering: &Lowering) -> Lowered<Option<Arc<Traversal>>> {
        let Some(argument) = self.take(key) else { return Ok(None) };
        match given(argument) {
            Given::Traversal(bytecode) if bytecode.source.is_empty() => {
                let context = Context { depth: 1, ..Context::ROOT };
                lowering.traversal(&bytecode.steps, context).map(Arc::new).map(Some)
            }
            _ => Err(self.wrong(key, "an anonymous traversal", argument)),
        }
    }

    fn finish(self) -> Lowered {
        match self.settings.first() {
            None => Ok(()),
            Some((key, _)) => Err(self.step.wrong(format!("{} has no option {key}", self.strategy))),
        }
    }
}

/// Adds a strategy; one of the same kind is replaced.
fn add(
    step: Step<'_>,
    name: &str,
    settings: Settings<'_>,
    options: &mut SourceOptions,
    lowering: &Lowering,
) -> Lowered {
    let mut reader = Reader::new(step, name, settings);
    let strategy = match name {
        "OptionsStrategy" => {
            for (key, value) in std::mem::take(&mut reader.settings) {
                let value = to_value(value).ok_or_else(|| reader.wrong(key, "a plain value", value))?;
                option(step, options, key.into(), value)?;
            }
            return Ok(());
        }
        "ReferenceElementStrategy" => {
            set(&mut options.options, MATERIALIZE_PROPERTIES.into(), Value::String("tokens".into()));
            Strategy::Optimisation(name.into())
        }
        "ReadOnlyStrategy" => Strategy::ReadOnly,
        "StandardVerificationStrategy" => Strategy::StandardVerification,
        "SubgraphStrategy" => {
            let vertices = reader.traversal("vertices", lowering)?;
            let edges = reader.traversal("edges", lowering)?;
            let vertex_properties = reader.traversal("vertexProperties", lowering)?;
            let check_adjacent_vertices = reader.boolean("checkAdjacentVertices", true)?;
            // An option that there is not says more of what is wrong.
            let has_criterion = vertices.is_some() || edges.is_some() || vertex_properties.is_some();
            if !has_criterion && reader.settings.is_empty() {
                return Err(step.wrong(
                    "A subgraph must be filtered by a vertex, edge, or vertex property criterion: give SubgraphStrategy \
                     vertices, edges or vertexProperties",
                ));
            }
            Strategy::Subgraph { vertices, edges, vertex_properties, check_adjacent_vertices }
        }
        "PartitionStrategy" => Strategy::Partition {
            partition_key: reader
                .text("partitionKey")?
                .filter(|key| !key.is_empty())
                .ok_or_else(|| step.wrong("The partitionKey cannot be null or empty"))?,
            write_partition: reader.text("writePartition")?.map(Value::String),
            read_partitions: reader.values("readPartitions")?.unwrap_or_default(),
            include_meta_properties: reader.boolean("includeMetaProperties", false)?,
        },
        "SeedStrategy" => match reader.take("seed") {
            Some(Argument::Value(value)) => {
                let seed = match value {
                    Value::String(text) => text.parse().ok(),
                    value => to_integer(value),
                };
                Strategy::Seed(seed.ok_or_else(|| reader.wrong("seed", "an integer", &Argument::Value(value.clone())))?)
            }
            _ => return Err(step.wrong("SeedStrategy configuration requires a 'seed' value")),
        },
        "ReservedKeysVerificationStrategy" => {
            reader.boolean("logWarning", false)?;
            Strategy::ReservedKeys {
                keys: reader.names("keys")?.unwrap_or_else(|| vec!["id".into(), "label".into()]),
                log_only: !reader.boolean("throwException", false)?,
            }
        }
        "EdgeLabelVerificationStrategy" => {
            reader.boolean("logWarning", false)?;
            Strategy::EdgeLabelVerification { log_only: !reader.boolean("throwException", false)? }
        }
        "ElementIdStrategy" => {
            Strategy::ElementId { id_key: reader.text("idPropertyKey")?.unwrap_or_else(|| "__id".into()) }
        }
        PROGRAM_STRATEGY => {
            // These choose an engine and how many threads it has, which the server knows better.
            for key in ["graphComputer", "workers", "result"] {
                reader.take(key);
            }
            for key in ["vertices", "edges"] {
                if reader.take(key).is_some() {
                    return Err(step.error(
                        LowerErrorKind::UnsupportedAnalytics,
                        format!(
                            "{name}: {key} would take a part of the graph away; name the edges with the option `edges` of the \
                             program, or use SubgraphStrategy"
                        ),
                    ));
                }
            }
            match reader.take("persist") {
                None => {}
                Some(Argument::Value(value)) if value.to_string() == "NOTHING" => {}
                Some(_) => {
                    return Err(step.error(
                        LowerErrorKind::UnsupportedAnalytics,
                        format!(
                            "{name}: nothing that a program computes is persisted; write it with property() or with a service \
                             through call() and its parameter write"
                        ),
                    ));
                }
            }
            Strategy::Optimisation(name.into())
        }
        "ProductiveByStrategy" => Strategy::ProductiveBy { keys: reader.names("productiveKeys")?.unwrap_or_default() },
        name if is_known(name) => {
            // Their settings choose between algorithms with the same results.
            reader.settings.clear();
            Strategy::Optimisation(name.into())
        }
        name => return Err(unknown_strategy(step, name)),
    };
    reader.finish()?;
    options.strategies.retain(|other| name_of(other) != name);
    options.strategies.push(strategy);
    Ok(())
}
