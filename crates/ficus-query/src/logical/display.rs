//! The readable form of a logical plan: one line, the words `explain()` uses.
//!
//! `[GraphStep(vertex,[1]), VertexStep(OUT,[knows],vertex)@[a], CountGlobalStep]`: steps with their arguments in
//! parentheses and their labels after an `@`; empty arguments are left out. Literals are written without quotes, as users of
//! Gremlin know them. The text is stable: golden tests compare it.

use std::fmt::{self, Display, Formatter};

use ficus_model::{Order, Pop, Scope, Value};

use super::{
    By, Endpoint, HasContainer, HasKey, KHopReach, LabelledNode, LogicalPlan, MatchPattern, Node, Options, Passes,
    PickToken, PropertyForm, PropertyWrite, Quantifier, Reach, Reduction, Repeat, ScalarFunction, SortKey,
    SourceOptions, Strategy, TokenFlags, Traversal, ValueOrTraversal, VertexProgramKind, WherePredicate,
};

/// Writes a step's name and then its arguments, `Name(first,second)`; without arguments no parentheses.
struct StepWriter<'writer, 'output> {
    formatter: &'writer mut Formatter<'output>,
    has_arguments: bool,
}

impl<'writer, 'output> StepWriter<'writer, 'output> {
    fn new(formatter: &'writer mut Formatter<'output>, name: &str) -> Result<Self, fmt::Error> {
        formatter.write_str(name)?;
        Ok(StepWriter { formatter, has_arguments: false })
    }

    fn argument(&mut self, argument: impl Display) -> fmt::Result {
        self.formatter.write_str(if self.has_arguments { "," } else { "(" })?;
        self.has_arguments = true;
        write!(self.formatter, "{argument}")
    }

    fn optional(&mut self, argument: Option<impl Display>) -> fmt::Result {
        argument.map_or(Ok(()), |argument| self.argument(argument))
    }

    /// A list in brackets, left out when it is empty.
    fn list<I: Display>(&mut self, items: &[I]) -> fmt::Result {
        if items.is_empty() { Ok(()) } else { self.argument(list(items)) }
    }

    fn end(&mut self) -> fmt::Result {
        if self.has_arguments { self.formatter.write_str(")") } else { Ok(()) }
    }
}

/// Items in brackets with a comma and a space between them.
fn list<I: Display>(items: &[I]) -> impl Display {
    fmt::from_fn(move |f| {
        f.write_str("[")?;
        separated(f, items)?;
        f.write_str("]")
    })
}

fn separated<I: Display>(f: &mut Formatter<'_>, items: impl IntoIterator<Item = I>) -> fmt::Result {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

impl Display for WherePredicate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            WherePredicate::Compare(comparison, label) => write!(f, "{}({label})", comparison.name()),
            WherePredicate::Within(labels) => write!(f, "within({})", list(labels)),
            WherePredicate::Without(labels) => write!(f, "without({})", list(labels)),
            WherePredicate::Text(comparison, label) => write!(f, "{}({label})", comparison.name()),
            WherePredicate::And(parts) | WherePredicate::Or(parts) => {
                f.write_str(if matches!(self, WherePredicate::And(_)) { "and(" } else { "or(" })?;
                separated(f, parts)?;
                f.write_str(")")
            }
            WherePredicate::Not(inner) => write!(f, "not({inner})"),
        }
    }
}

impl Display for LogicalPlan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.source != SourceOptions::default() {
            write!(f, "{} ", self.source)?;
        }
        write!(f, "{}", self.root)
    }
}

impl Display for SourceOptions {
    /// The options that were given, `{sack=1,sum, strategies=[ReadOnlyStrategy]}`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        if let Some(sack) = &self.sack {
            let mut text = format!("sack={}", sack.initial);
            for (name, operator) in [("split", sack.split), ("merge", sack.merge)] {
                if let Some(operator) = operator {
                    text.push_str(&format!(",{name}:{operator}"));
                }
            }
            parts.push(text);
        }
        for (key, value, reducer) in &self.side_effects {
            let reducer = reducer.map(|operator| format!(",{operator}")).unwrap_or_default();
            parts.push(format!("sideEffect:{key}={}{reducer}", value));
        }
        if self.with_path {
            parts.push("path".into());
        }
        if self.without_bulk {
            parts.push("bulk=false".into());
        }
        if !self.strategies.is_empty() {
            parts.push(format!("strategies={}", list(&self.strategies)));
        }
        for (key, value) in &self.options {
            parts.push(format!("{key}={}", value));
        }
        write!(f, "{{{}}}", parts.join(", "))
    }
}

impl Display for Strategy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::ReadOnly => f.write_str("ReadOnlyStrategy"),
            Strategy::Subgraph { .. } => f.write_str("SubgraphStrategy"),
            Strategy::Partition { .. } => f.write_str("PartitionStrategy"),
            Strategy::Seed(seed) => write!(f, "SeedStrategy({seed})"),
            Strategy::ReservedKeys { keys, .. } => write!(f, "ReservedKeysVerificationStrategy({})", list(keys)),
            Strategy::EdgeLabelVerification { .. } => f.write_str("EdgeLabelVerificationStrategy"),
            Strategy::ElementId { id_key } => write!(f, "ElementIdStrategy({id_key})"),
            Strategy::StandardVerification => f.write_str("StandardVerificationStrategy"),
            Strategy::ProductiveBy { .. } => f.write_str("ProductiveByStrategy"),
            Strategy::Optimisation(name) => f.write_str(name),
            Strategy::Without(name) => write!(f, "without({name})"),
        }
    }
}

impl Display for Traversal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", list(&self.nodes))
    }
}

impl Display for LabelledNode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.node)?;
        if self.labels.is_empty() { Ok(()) } else { write!(f, "@{}", list(&self.labels)) }
    }
}

impl Display for By {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            By::Identity => f.write_str("identity"),
            By::Key(key) => write!(f, "value({key})"),
            By::Token(token) => write!(f, "{token}"),
            By::Column(column) => write!(f, "{column}"),
            By::Traversal(traversal) => write!(f, "{traversal}"),
        }
    }
}

impl Display for ValueOrTraversal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ValueOrTraversal::Value(value) => write!(f, "{}", value),
            ValueOrTraversal::Traversal(traversal) => write!(f, "{traversal}"),
        }
    }
}

impl Display for Endpoint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Label(label) => f.write_str(label),
            Endpoint::Value(value) => write!(f, "{}", value),
            Endpoint::Traversal(traversal) => write!(f, "{traversal}"),
        }
    }
}

impl Display for HasContainer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let key = match &self.key {
            HasKey::Key(key) => key,
            HasKey::Id => "~id",
            HasKey::Label => "~label",
            HasKey::PropertyKey => "~key",
            HasKey::PropertyValue => "~value",
        };
        write!(f, "{key}.{}", self.predicate)
    }
}

impl Display for SortKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}]", self.by, self.order)
    }
}

impl Display for PickToken {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            PickToken::Value(value) => write!(f, "eq({})", value),
            PickToken::Predicate(inner) => write!(f, "{}", inner),
            PickToken::Traversal(traversal) => write!(f, "{traversal}"),
            PickToken::Pick(pick) => write!(f, "{pick}"),
        }
    }
}

impl Display for MatchPattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            MatchPattern::Path { start, traversal, end } => {
                write!(f, "[MatchStartStep({start})")?;
                for node in &traversal.nodes {
                    write!(f, ", {node}")?;
                }
                match end {
                    Some(end) => write!(f, ", MatchEndStep({end})]"),
                    None => f.write_str(", MatchEndStep]"),
                }
            }
            MatchPattern::Where(traversal, labels) => write!(f, "where({}){traversal}", list(labels)),
            MatchPattern::Not(inner) => write!(f, "not({inner})"),
            MatchPattern::And(inner) => write!(f, "MatchStep(AND,{})", list(inner)),
            MatchPattern::Or(inner) => write!(f, "MatchStep(OR,{})", list(inner)),
        }
    }
}

impl Display for PropertyWrite {
    /// `name=[marko]`, with cardinality and meta-properties where there are any: `list:name=[marko]{since=2010}`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(cardinality) = self.cardinality {
            write!(f, "{cardinality}:")?;
        }
        write!(f, "{}=[{}]", self.key, self.value)?;
        if self.meta.is_empty() { Ok(()) } else { write!(f, "{{{}}}", pairs(&self.meta)) }
    }
}

fn pairs<K: Display, V: Display>(entries: &[(K, V)]) -> impl Display {
    fmt::from_fn(move |f| {
        separated(f, entries.iter().map(|(key, value)| fmt::from_fn(move |f| write!(f, "{key}={value}"))))
    })
}

/// What a new element gets, `{label=[person], name=[marko]}`; left out when there is nothing.
fn new_element<'plan>(
    label: Option<&'plan ValueOrTraversal>,
    ends: [(&'static str, Option<&'plan Endpoint>); 2],
    properties: &'plan [PropertyWrite],
) -> Option<impl Display + 'plan> {
    let has_ends = ends.iter().any(|(_, end)| end.is_some());
    (label.is_some() || has_ends || !properties.is_empty()).then(|| {
        fmt::from_fn(move |f| {
            let mut parts: Vec<String> = label.map(|label| format!("label=[{label}]")).into_iter().collect();
            parts.extend(ends.iter().filter_map(|(name, end)| end.map(|end| format!("{name}=[{end}]"))));
            parts.extend(properties.iter().map(|property| property.to_string()));
            write!(f, "{{{}}}", parts.join(", "))
        })
    })
}

impl Display for TokenFlags {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let given = [(self.ids, "ids"), (self.labels, "labels"), (self.keys, "keys"), (self.values, "values")];
        let names: Vec<&str> = given.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        write!(f, "tokens{}", list(&names))
    }
}

fn form_name(form: PropertyForm) -> &'static str {
    match form {
        PropertyForm::Property => "property",
        PropertyForm::Value => "value",
    }
}

fn element_step<'plan>(kind: &'static str, ids: &'plan [Value]) -> impl Display + 'plan {
    fmt::from_fn(move |f| {
        write!(f, "GraphStep({kind},[")?;
        separated(f, ids.iter())?;
        f.write_str("])")
    })
}

fn write_repeat(f: &mut Formatter<'_>, repeat: &Repeat) -> fmt::Result {
    let body = fmt::from_fn(|f| {
        f.write_str("[")?;
        for node in &repeat.body.nodes {
            write!(f, "{node}, ")?;
        }
        f.write_str("RepeatEndStep]")
    });
    let until = fmt::from_fn(|f| match &repeat.until {
        None => f.write_str("until(false)"),
        Some(until) => match until.nodes.as_slice() {
            [LabelledNode { node: Node::LoopsAtLeast { times }, .. }] => write!(f, "until(loops({times}))"),
            _ => write!(f, "until({until})"),
        },
    });
    let emit = fmt::from_fn(|f| match &repeat.emit {
        None => f.write_str("emit(false)"),
        Some(emit) if emit.nodes.is_empty() => f.write_str("emit(true)"),
        Some(emit) => write!(f, "emit({emit})"),
    });
    f.write_str("RepeatStep(")?;
    if let Some(name) = &repeat.name {
        write!(f, "{name},")?;
    }
    match (repeat.until_first, repeat.emit_first) {
        (true, true) => write!(f, "{until},{emit},{body})"),
        (false, true) => write!(f, "{emit},{body},{until})"),
        (true, false) => write!(f, "{until},{body},{emit})"),
        (false, false) => write!(f, "{body},{until},{emit})"),
    }
}

/// `Name([a, b],…)`, the shape of steps that hold labels and `by()`s.
fn write_with_bys(f: &mut Formatter<'_>, name: &str, first: Option<&dyn Display>, bys: &[By]) -> fmt::Result {
    let mut step = StepWriter::new(f, name)?;
    step.optional(first)?;
    step.list(bys)?;
    step.end()
}

fn simple(f: &mut Formatter<'_>, name: &str, argument: impl Display) -> fmt::Result {
    write!(f, "{name}({argument})")
}

fn write_options(step: &mut StepWriter<'_, '_>, options: &Options) -> fmt::Result {
    if options.is_empty() { Ok(()) } else { step.argument(fmt::from_fn(|f| write!(f, "{{{}}}", pairs(options)))) }
}

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Node::Vertices { ids, .. } => write!(f, "{}", element_step("vertex", ids)),
            Node::Edges { ids, .. } => write!(f, "{}", element_step("edge", ids)),
            Node::Inject { values } => simple(f, "InjectStep", list(values)),
            Node::Call { service, parameters, parameter_traversal, settings, .. } => {
                let mut step = StepWriter::new(f, "CallStep")?;
                step.argument(service.as_deref().unwrap_or("--list"))?;
                write_options(&mut step, parameters)?;
                step.optional(parameter_traversal.as_deref())?;
                write_options(&mut step, settings)?;
                step.end()
            }
            Node::Io { file, write, options } => {
                let mut step = StepWriter::new(f, "IoStep")?;
                step.argument(if *write { "write" } else { "read" })?;
                step.argument(file)?;
                write_options(&mut step, options)?;
                step.end()
            }
            Node::Adjacent { direction, labels, reach } => {
                let mut step = StepWriter::new(f, "VertexStep")?;
                step.argument(direction)?;
                step.list(labels)?;
                step.argument(match reach {
                    Reach::Vertex => "vertex",
                    Reach::Edge => "edge",
                })?;
                step.end()
            }
            Node::KeepLabels { labels } => {
                let mut step = StepWriter::new(f, "KeepLabelsStep")?;
                step.list(labels)?;
                step.end()
            }
            Node::AdjacentFrom { label, direction, labels, passes } => {
                let mut step = StepWriter::new(f, "ClosingEdgeStep")?;
                step.argument(label)?;
                step.argument(direction)?;
                step.list(labels)?;
                match passes {
                    Passes::EachEdge => {}
                    Passes::AnyEdge => step.argument("any")?,
                    Passes::NoEdge => step.argument("none")?,
                }
                step.end()
            }
            Node::Recall { label } => simple(f, "RecallStep", label),
            Node::EdgeVertex { direction } => simple(f, "EdgeVertexStep", direction),
            Node::OtherVertex => f.write_str("EdgeOtherVertexStep"),
            Node::Properties { keys, form } => {
                let mut step = StepWriter::new(f, "PropertiesStep")?;
                step.list(keys)?;
                step.argument(form_name(*form))?;
                step.end()
            }
            Node::PropertyMap { keys, form, tokens, by, filter } => {
                let mut step = StepWriter::new(f, "PropertyMapStep")?;
                step.list(keys)?;
                step.argument(form_name(*form))?;
                if *tokens != TokenFlags::default() {
                    step.argument(tokens)?;
                }
                step.optional(by.as_ref())?;
                step.optional(filter.as_ref().map(|filter| format!("filter({filter})")))?;
                step.end()
            }
            Node::ElementMap { keys, filter } => {
                let mut step = StepWriter::new(f, "ElementMapStep")?;
                step.list(keys)?;
                step.optional(filter.as_ref().map(|filter| format!("filter({filter})")))?;
                step.end()
            }
            Node::Id => f.write_str("IdStep"),
            Node::Label => f.write_str("LabelStep"),
            Node::Key => f.write_str("PropertyKeyStep"),
            Node::ValueOf => f.write_str("PropertyValueStep"),
            Node::Element => f.write_str("ElementStep"),

            Node::Has { containers } => simple(f, "HasStep", list(containers)),
            Node::HasProperty { key, negated } => {
                let name = if *negated { "NotStep" } else { "TraversalFilterStep" };
                write!(f, "{name}([PropertiesStep([{key}],value)])")
            }
            Node::Is { predicate } => simple(f, "IsStep", predicate),
            Node::WherePredicate { start, predicate, bys } => {
                let mut step = StepWriter::new(f, "WherePredicateStep")?;
                step.optional(start.as_ref())?;
                step.argument(predicate)?;
                step.list(bys)?;
                step.end()
            }
            Node::WhereTraversal { start, traversal, end } => {
                f.write_str("WhereTraversalStep([WhereStartStep")?;
                if let Some(start) = start {
                    write!(f, "({start})")?;
                }
                for node in &traversal.nodes {
                    write!(f, ", {node}")?;
                }
                if let Some(end) = end {
                    write!(f, ", WhereEndStep({end})")?;
                }
                f.write_str("])")
            }
            Node::Filter { traversal } => simple(f, "TraversalFilterStep", traversal),
            Node::Not { traversal } => simple(f, "NotStep", traversal),
            Node::And { traversals } => simple(f, "AndStep", list(traversals)),
            Node::Or { traversals } => simple(f, "OrStep", list(traversals)),
            Node::Collection { quantifier, predicate: inner } => {
                let name = match quantifier {
                    Quantifier::All => "AllStep",
                    Quantifier::Any => "AnyStep",
                    Quantifier::None => "NoneStep",
                };
                simple(f, name, inner)
            }
            Node::Coin { probability } => write!(f, "CoinStep({probability:?})"),
            Node::Sample { amount, by } => {
                let mut step = StepWriter::new(f, "SampleGlobalStep")?;
                step.argument(amount)?;
                step.optional((*by != By::Identity).then_some(by))?;
                step.end()
            }
            Node::Dedup { labels, by } => {
                let mut step = StepWriter::new(f, "DedupGlobalStep")?;
                step.list(labels)?;
                step.optional(by.as_ref())?;
                step.end()
            }
            Node::Range { low, high } => write!(f, "RangeGlobalStep({low},{high})"),
            Node::Tail { count } => simple(f, "TailGlobalStep", count),
            Node::PathFilter { simple, from, to, bys } => {
                let mut step = StepWriter::new(f, "PathFilterStep")?;
                step.argument(if *simple { "simple" } else { "cyclic" })?;
                step.optional(from.as_ref().map(|from| format!("from:{from}")))?;
                step.optional(to.as_ref().map(|to| format!("to:{to}")))?;
                step.list(bys)?;
                step.end()
            }
            Node::TimeLimit { milliseconds } => simple(f, "TimeLimitStep", milliseconds),
            Node::Discard => f.write_str("DiscardStep"),
            Node::LoopsAtLeast { times } => write!(f, "loops({times})"),

            Node::Identity => f.write_str("IdentityStep"),
            Node::Constant { value } => simple(f, "ConstantStep", value),
            Node::Scalar { function } => write!(f, "{function}"),
            Node::Format { template, bys } => write_with_bys(f, "FormatStep", Some(template), bys),
            Node::Math { expression, bys } => write_with_bys(f, "MathStep", Some(expression), bys),
            Node::Map { traversal } => simple(f, "TraversalMapStep", traversal),
            Node::FlatMap { traversal } => simple(f, "TraversalFlatMapStep", traversal),
            Node::Local { traversal } => simple(f, "LocalStep", traversal),
            Node::SideEffect { traversal } => simple(f, "TraversalSideEffectStep", traversal),
            Node::Unfold => f.write_str("UnfoldStep"),
            Node::Path { from, to, bys } => {
                let mut step = StepWriter::new(f, "PathStep")?;
                step.optional(from.as_ref().map(|from| format!("from:{from}")))?;
                step.optional(to.as_ref().map(|to| format!("to:{to}")))?;
                step.list(bys)?;
                step.end()
            }
            Node::Project { keys, bys } => write_with_bys(f, "ProjectStep", Some(&list(keys)), bys),
            Node::Select { pop, labels, bys } => {
                let mut step = StepWriter::new(f, if labels.len() == 1 { "SelectOneStep" } else { "SelectStep" })?;
                step.argument(pop.unwrap_or(Pop::Last))?;
                match labels.as_slice() {
                    [label] => step.argument(label)?,
                    _ => step.list(labels)?,
                }
                step.list(bys)?;
                step.end()
            }
            Node::SelectColumn { column } => simple(f, "TraversalMapStep", column),
            Node::SelectTraversal { pop, traversal, by } => {
                let mut step = StepWriter::new(f, "TraversalSelectStep")?;
                step.optional(pop.as_ref())?;
                step.argument(traversal)?;
                step.optional(by.as_ref())?;
                step.end()
            }
            Node::Sack => f.write_str("SackStep"),
            Node::SackWith { operator, by } => {
                let mut step = StepWriter::new(f, "SackValueStep")?;
                step.argument(operator)?;
                step.optional((*by != By::Identity).then_some(by))?;
                step.end()
            }
            Node::Loops { name } => {
                let mut step = StepWriter::new(f, "LoopsStep")?;
                step.optional(name.as_ref())?;
                step.end()
            }
            Node::Match { patterns, conjunctive } => {
                write!(f, "MatchStep({},{})", if *conjunctive { "AND" } else { "OR" }, list(patterns))
            }
            Node::Order { scope, keys } => {
                let name = match scope {
                    Scope::Global => "OrderGlobalStep",
                    Scope::Local => "OrderLocalStep",
                };
                let ascending = [SortKey { by: By::Identity, order: Order::Asc }];
                simple(f, name, list(if keys.is_empty() { &ascending } else { keys }))
            }

            Node::Reduce { reduction } => f.write_str(match reduction {
                Reduction::Count => "CountGlobalStep",
                Reduction::Sum => "SumGlobalStep",
                Reduction::Min => "MinGlobalStep",
                Reduction::Max => "MaxGlobalStep",
                Reduction::Mean => "MeanGlobalStep",
            }),
            Node::Fold { seed } => match seed {
                None => f.write_str("FoldStep"),
                Some((seed, operator)) => write!(f, "FoldStep({},{operator})", seed),
            },
            Node::Group { side_effect, key, value } => match side_effect {
                None => write!(f, "GroupStep({key},{value})"),
                Some(name) => write!(f, "GroupSideEffectStep({name},{key},{value})"),
            },
            Node::GroupCount { side_effect, key } => {
                let name = if side_effect.is_some() { "GroupCountSideEffectStep" } else { "GroupCountStep" };
                let mut step = StepWriter::new(f, name)?;
                step.optional(side_effect.as_ref())?;
                step.optional((*key != By::Identity).then_some(key))?;
                step.end()
            }
            Node::Tree { side_effect, bys } => match side_effect {
                None => write_with_bys(f, "TreeStep", None, bys),
                Some(name) => write_with_bys(f, "TreeSideEffectStep", Some(name), bys),
            },
            Node::Barrier { size, norm_sack } => {
                let mut step =
                    StepWriter::new(f, if *norm_sack { "LambdaCollectingBarrierStep" } else { "NoOpBarrierStep" })?;
                step.optional(norm_sack.then_some("normSack"))?;
                step.optional(size.as_ref())?;
                step.end()
            }
            Node::Profile { side_effect } => {
                let mut step = StepWriter::new(f, "ProfileSideEffectStep")?;
                step.optional(side_effect.as_ref())?;
                step.end()
            }

            Node::Aggregate { key, by } => {
                let mut step = StepWriter::new(f, "AggregateStep")?;
                step.argument(key)?;
                step.optional((*by != By::Identity).then_some(by))?;
                step.end()
            }
            Node::Cap { keys } => simple(f, "SideEffectCapStep", list(keys)),
            Node::Subgraph { key } => simple(f, "SubgraphStep", key),
            Node::Fail { message } => {
                let mut step = StepWriter::new(f, "FailStep")?;
                step.optional(message.as_ref())?;
                step.end()
            }

            Node::Union { branches, .. } => simple(f, "UnionStep", list(branches)),
            Node::Choose { choice, boolean, options, pass_unmatched } => {
                let mut step = StepWriter::new(f, if *pass_unmatched { "ChooseStep" } else { "BranchStep" })?;
                if *boolean {
                    step.argument(format_args!("hasNext({choice})"))?;
                } else {
                    step.argument(choice)?;
                }
                let options: Vec<String> = options.iter().map(|(token, option)| format!("{token}->{option}")).collect();
                step.list(&options)?;
                step.end()
            }
            Node::Coalesce { branches } => simple(f, "CoalesceStep", list(branches)),
            Node::Optional { traversal } => simple(f, "OptionalStep", traversal),
            Node::Repeat(repeat) => write_repeat(f, repeat),
            Node::KHop(walk) => {
                let mut step = StepWriter::new(f, "KHopStep")?;
                step.argument(walk.direction)?;
                step.list(&walk.labels)?;
                match walk.hops {
                    Some(hops) => step.argument(format_args!("hops({hops})"))?,
                    None => step.argument("hops(all)")?,
                }
                step.argument(match walk.reach {
                    KHopReach::Exactly => "exactly",
                    KHopReach::Within => "within",
                    KHopReach::WithinOrStart => "withinOrStart",
                })?;
                if let Some(edges) = &walk.edges {
                    step.argument(format_args!("edges({edges})"))?;
                }
                if let Some(vertices) = &walk.vertices {
                    step.argument(format_args!("vertices({vertices})"))?;
                }
                if let Some(mark) = &walk.mark {
                    let what = if mark.goes_on { "emit" } else { "until" };
                    let first = if mark.tests_start { ", first" } else { "" };
                    step.argument(format_args!("{what}({}{first})", mark.condition))?;
                }
                if let Some(seen) = &walk.seen {
                    step.argument(if seen.with_start { "none twice" } else { "none twice but the start" })?;
                    if seen.last_only {
                        step.argument("last hop")?;
                    }
                    if let Some((operator, value)) = &seen.sack {
                        step.argument(format_args!("sack({operator},{value})"))?;
                    }
                }
                if let Some(limit) = walk.limit {
                    step.argument(format_args!("limit({limit})"))?;
                }
                if let Some(target) = &walk.target {
                    step.argument(format_args!("to({target})"))?;
                }
                if walk.count {
                    step.argument("count")?;
                }
                step.end()
            }

            Node::VertexProgram(program) => {
                let name = match &program.kind {
                    VertexProgramKind::PageRank { .. } => "PageRankVertexProgramStep",
                    VertexProgramKind::ConnectedComponent => "ConnectedComponentVertexProgramStep",
                    VertexProgramKind::PeerPressure { .. } => "PeerPressureVertexProgramStep",
                    VertexProgramKind::ShortestPath { .. } => "ShortestPathVertexProgramStep",
                };
                let mut step = StepWriter::new(f, name)?;
                step.argument(&program.edges)?;
                match &program.kind {
                    VertexProgramKind::PageRank { alpha, times } => {
                        step.argument(&program.property)?;
                        step.argument(format_args!("alpha({alpha})"))?;
                        step.argument(format_args!("times({times})"))?;
                    }
                    VertexProgramKind::ConnectedComponent => step.argument(&program.property)?,
                    VertexProgramKind::PeerPressure { times } => {
                        step.argument(&program.property)?;
                        step.argument(format_args!("times({times})"))?;
                    }
                    VertexProgramKind::ShortestPath { target, distance, distance_limit, include_edges } => {
                        step.argument(format_args!("target({target})"))?;
                        step.optional(distance.as_deref())?;
                        step.optional(distance_limit.map(|limit| format!("maxDistance({limit})")))?;
                        step.optional(include_edges.then_some("includeEdges"))?;
                    }
                }
                if program.is_behind_steps {
                    step.argument("fromTraversers")?;
                }
                step.end()
            }

            Node::AddVertex { label, properties, start } => {
                let mut step = StepWriter::new(f, if *start { "AddVertexStartStep" } else { "AddVertexStep" })?;
                step.optional(new_element(label.as_ref(), [("~from", None), ("~to", None)], properties))?;
                step.end()
            }
            Node::AddEdge { label, from, to, properties, start } => {
                let mut step = StepWriter::new(f, if *start { "AddEdgeStartStep" } else { "AddEdgeStep" })?;
                let ends = [("~from", from.as_ref()), ("~to", to.as_ref())];
                step.optional(new_element(Some(label), ends, properties))?;
                step.end()
            }
            Node::AddProperty { property } => write!(f, "AddPropertyStep({{{property}}})"),
            Node::MergeVertex { search, on_create, on_match, match_cardinality, create_cardinality, .. } => {
                let mut step = StepWriter::new(f, "MergeVertexStep")?;
                step.optional(search.as_ref())?;
                for (name, map, cardinality) in
                    [("onCreate", on_create, create_cardinality), ("onMatch", on_match, match_cardinality)]
                {
                    if let Some(map) = map {
                        let cardinality = cardinality.map(|cardinality| format!(":{cardinality}")).unwrap_or_default();
                        step.argument(format_args!("{name}({map}{cardinality})"))?;
                    }
                }
                step.end()
            }
            Node::MergeEdge { search, on_create, on_match, out_vertex, in_vertex, .. } => {
                let mut step = StepWriter::new(f, "MergeEdgeStep")?;
                step.optional(search.as_ref())?;
                for (name, map) in
                    [("onCreate", on_create), ("onMatch", on_match), ("outV", out_vertex), ("inV", in_vertex)]
                {
                    if let Some(map) = map {
                        step.argument(format_args!("{name}({map})"))?;
                    }
                }
                step.end()
            }
            Node::Drop => f.write_str("DropStep"),
        }
    }
}

/// `ToLowerGlobalStep` or `ToLowerLocalStep`.
fn scoped(f: &mut Formatter<'_>, name: &str, scope: Scope) -> fmt::Result {
    let scope = match scope {
        Scope::Global => "Global",
        Scope::Local => "Local",
    };
    write!(f, "{name}{scope}Step")
}

impl Display for ScalarFunction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ScalarFunction::AsString { scope } => scoped(f, "AsString", *scope),
            ScalarFunction::AsNumber { gtype } => {
                let mut step = StepWriter::new(f, "AsNumberStep")?;
                step.optional(gtype.as_ref())?;
                step.end()
            }
            ScalarFunction::AsBool => f.write_str("AsBoolStep"),
            ScalarFunction::AsDate => f.write_str("AsDateStep"),
            ScalarFunction::DateAdd { unit, amount } => write!(f, "DateAddStep({unit},{amount})"),
            ScalarFunction::DateDiff { other } => simple(f, "DateDiffStep", other),
            ScalarFunction::ToLower { scope } => scoped(f, "ToLower", *scope),
            ScalarFunction::ToUpper { scope } => scoped(f, "ToUpper", *scope),
            ScalarFunction::Trim { scope } => scoped(f, "Trim", *scope),
            ScalarFunction::LTrim { scope } => scoped(f, "LTrim", *scope),
            ScalarFunction::RTrim { scope } => scoped(f, "RTrim", *scope),
            ScalarFunction::Length { scope } => scoped(f, "Length", *scope),
            ScalarFunction::Reverse => f.write_str("ReverseStep"),
            ScalarFunction::Replace { scope, from, to } => {
                scoped(f, "Replace", *scope)?;
                write!(f, "({},{})", from, to)
            }
            ScalarFunction::Split { scope, separator } => {
                scoped(f, "Split", *scope)?;
                write!(f, "({})", separator)
            }
            ScalarFunction::Substring { scope, start, end } => {
                scoped(f, "Substring", *scope)?;
                match end {
                    None => write!(f, "({start})"),
                    Some(end) => write!(f, "({start},{end})"),
                }
            }
            ScalarFunction::Concat { parts } => {
                let mut step = StepWriter::new(f, "ConcatStep")?;
                step.list(parts)?;
                step.end()
            }
            ScalarFunction::Conjoin { delimiter } => simple(f, "ConjoinStep", delimiter),
            ScalarFunction::Combine { other } => simple(f, "CombineStep", other),
            ScalarFunction::Difference { other } => simple(f, "DifferenceStep", other),
            ScalarFunction::Disjunct { other } => simple(f, "DisjunctStep", other),
            ScalarFunction::Intersect { other } => simple(f, "IntersectStep", other),
            ScalarFunction::Merge { other } => simple(f, "MergeStep", other),
            ScalarFunction::Product { other } => simple(f, "ProductStep", other),
            ScalarFunction::Index { as_map } => simple(f, "IndexStep", if *as_map { "map" } else { "list" }),
            ScalarFunction::CountLocal => f.write_str("CountLocalStep"),
            ScalarFunction::SumLocal => f.write_str("SumLocalStep"),
            ScalarFunction::MinLocal => f.write_str("MinLocalStep"),
            ScalarFunction::MaxLocal => f.write_str("MaxLocalStep"),
            ScalarFunction::MeanLocal => f.write_str("MeanLocalStep"),
            ScalarFunction::RangeLocal { low, high } => write!(f, "RangeLocalStep({low},{high})"),
            ScalarFunction::TailLocal { count } => simple(f, "TailLocalStep", count),
            ScalarFunction::SampleLocal { amount } => simple(f, "SampleLocalStep", amount),
            ScalarFunction::DedupLocal => f.write_str("DedupLocalStep"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ficus_model::{Comparison, Direction, Operator, P, Shared, T, TextComparison};

    use super::*;
    use crate::logical::{Name, OfEqual, SackOptions};

    fn name(text: &str) -> Name {
        text.into()
    }

    fn check(node: Node, expected: &str) {
        assert_eq!(node.to_string(), expected);
    }

    #[test]
    fn a_plan_is_one_line_of_steps_with_their_labels() {
        let plan = LogicalPlan {
            root: Traversal {
                nodes: vec![
                    Node::Vertices { ids: vec![Value::Int(1)], all: false }.into(),
                    LabelledNode {
                        node: Node::Adjacent {
                            direction: Direction::Out,
                            labels: vec![name("knows")],
                            reach: Reach::Vertex,
                        },
                        labels: vec![name("a"), name("b")],
                    },
                    Node::Reduce { reduction: Reduction::Count }.into(),
                ],
            },
            ..LogicalPlan::default()
        };
        assert_eq!(plan.to_string(), "[GraphStep(vertex,[1]), VertexStep(OUT,[knows],vertex)@[a, b], CountGlobalStep]");
    }

    #[test]
    fn source_options_stand_before_the_plan() {
        let source = SourceOptions {
            sack: Some(SackOptions { initial: Value::Double(1.0), split: None, merge: Some(Operator::Sum) }),
            side_effects: vec![(name("x"), Value::Int(2), Some(Operator::Max))],
            without_bulk: true,
            strategies: vec![Strategy::ReadOnly],
            ..SourceOptions::default()
        };
        let plan = LogicalPlan { source, root: Traversal::default() };
        let expected = "{sack=1.0,merge:sum, sideEffect:x=2,max, bulk=false, strategies=[ReadOnlyStrategy]} []";
        assert_eq!(plan.to_string(), expected);
    }

    #[test]
    fn repeat_shows_its_parts_in_the_order_they_are_tested() {
        let out = Node::Adjacent { direction: Direction::Out, labels: vec![], reach: Reach::Vertex };
        let mut repeat = Repeat {
            body: Arc::new(Traversal { nodes: vec![out.into()] }),
            until: Some(Arc::new(Traversal { nodes: vec![Node::LoopsAtLeast { times: 2 }.into()] })),
            until_first: false,
            emit: Some(Arc::default()),
            emit_first: true,
            name: None,
            distinct: OfEqual::All,
        };
        check(
            Node::Repeat(repeat.clone()),
            "RepeatStep(emit(true),[VertexStep(OUT,vertex), RepeatEndStep],until(loops(2)))",
        );
        repeat.emit = None;
        repeat.emit_first = false;
        repeat.until_first = true;
        check(Node::Repeat(repeat), "RepeatStep(until(loops(2)),[VertexStep(OUT,vertex), RepeatEndStep],emit(false))");
    }

    #[test]
    fn predicates_and_literals_read_as_in_gremlin() {
        let containers = vec![
            HasContainer {
                key: HasKey::Key(name("age")),
                predicate: P::And(vec![
                    P::Compare(Comparison::Gt, Value::Int(1)),
                    P::Not(Box::new(P::Within(Shared::new(vec![Value::Null, Value::String("x".into())])))),
                ]),
            },
            HasContainer { key: HasKey::Label, predicate: P::Text(TextComparison::Regex, "p.*".into()) },
        ];
        check(Node::Has { containers }, "HasStep([age.and(gt(1), not(within([null, x]))), ~label.regex(p.*)])");
        let map = [(Value::T(T::Id), Value::List(Shared::new(vec![Value::Double(0.5)])))].into_iter().collect();
        check(Node::Constant { value: Value::Map(Shared::new(map)) }, "ConstantStep({id=[0.5]})");
    }
}
