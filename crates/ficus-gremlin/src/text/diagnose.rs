//! From a place where the parser is stuck to an error that helps: what was found, what fits, what was probably meant.
//!
//! Much text that reaches a server is Groovy, which Gremlin consoles speak and gremlin-lang is a small part of. The
//! common forms (closures, variables, loops, Java calls, operators) are recognised and answered with the gremlin-lang way.
//! Everything here runs once, for a text that has already failed.

use ficus_model::{Argument, GType, Value};

use super::Terminal;
use super::error::{SyntaxError, SyntaxErrorKind};
use super::lexer::{Kind, Sign, clip};
use super::parser::Parser;
use super::print::print_value;
use super::signature::{Callable, ClassSet, class};
use super::steps::{
    PREDICATES, SOURCE_METHODS, SPAWN_STEPS, STEPS, predicate_index, source_index, spawn_index, step_index,
};
use super::words::{owns_options, qualifier, token};

type Problem = Box<SyntaxError>;

/// Words longer than this are not compared with existing ones.
const COMPARED_CHARACTERS_MAX: usize = 40;

impl Parser<'_> {
    /// The current sign, as a message names it.
    fn found(&self) -> String {
        match self.current.kind {
            Kind::End => "the end of the script".into(),
            Kind::Text | Kind::EscapedText => format!("the string {}", clip(self.word())),
            Kind::Integer | Kind::Decimal => format!("the number {}", clip(self.word())),
            _ => clip(self.word()),
        }
    }

    /// The current sign where `what` should be.
    pub(super) fn unexpected(&self, what: &str) -> Problem {
        if let Some(error) = self.groovy_operator() {
            return error;
        }
        self.error_here(SyntaxErrorKind::Unexpected, format!("unexpected {}", self.found()))
            .expecting(vec![what.to_string()])
    }

    fn unsupported(&self, at: Sign, message: impl Into<String>, advice: &str) -> Problem {
        self.error_at(at, SyntaxErrorKind::Unsupported, message).advising(advice)
    }

    // ---- statements ----

    /// A statement that begins with neither a traversal source nor an empty string.
    pub(super) fn not_a_statement(&self) -> Problem {
        let at = self.current;
        if at.kind != Kind::Word {
            let error =
                self.error_here(SyntaxErrorKind::Unexpected, format!("a statement cannot begin with {}", self.found()));
            return error.advising("a statement is a traversal such as g.V()");
        }
        let word = self.word();
        match word {
            "def" | "var" | "final" => {
                return self.unsupported(
                    at,
                    "variables cannot be declared in gremlin-lang",
                    "write the query as one traversal; keep results inside it with as()/select() or aggregate()/cap(), and send values as parameters",
                );
            }
            "import" => {
                return self.unsupported(
                    at,
                    "there are no imports in gremlin-lang",
                    "tokens and predicates need none: write T.id, Order.desc, P.gt(1) or desc, gt(1)",
                );
            }
            "for" | "while" | "if" | "switch" | "try" | "return" | "class" | "assert" | "println" | "print" => {
                return self.unsupported(
                    at,
                    format!("gremlin-lang has no {word}"),
                    "a script is traversals and nothing else: branch with choose(), union() or coalesce(), loop with repeat(), and process results in the client",
                );
            }
            "new" => {
                return self.unsupported(
                    at,
                    "objects cannot be created in gremlin-lang",
                    "only strategies take new, inside withStrategies(); send other values as parameters",
                );
            }
            "System" | "java" | "Math" | "Runtime" | "Thread" | "Class" | "groovy" | "org" => {
                return self.unsupported(
                    at,
                    format!("gremlin-lang cannot call {word}"),
                    "a script is traversals and nothing else: compute in the client and send values as parameters",
                );
            }
            "graph" | "TinkerGraph" | "TinkerFactory" | "mgmt" => {
                return self.unsupported(
                    at,
                    format!("{word} cannot be reached from gremlin-lang"),
                    "work through the traversal source: g.V(), g.addV(), g.tx().commit()",
                );
            }
            "__" => {
                return self.unsupported(
                    at,
                    "an anonymous traversal cannot be run on its own",
                    "begin with g, and use __ only inside the arguments of a step",
                );
            }
            _ => {}
        }
        let following = self.following();
        if following == b'=' {
            return self.unsupported(
                at,
                format!("{} cannot be assigned to: gremlin-lang has no variables", clip(word)),
                "write the query as one traversal; keep results inside it with as()/select() or aggregate()/cap()",
            );
        }
        if spawn_index(word).is_some() || step_index(word).is_some() || source_index(word).is_some() {
            let message = format!("{word}() needs a traversal source before it");
            return self.error_here(SyntaxErrorKind::Unexpected, message).advising(format!("write g.{word}(…)"));
        }
        let sources: Vec<String> = ["g"].iter().chain(self.options.sources).map(ToString::to_string).collect();
        let message = if self.options.bindings.get(word).is_some() {
            format!("{} is a parameter, and cannot begin a statement", clip(word))
        } else {
            format!("{} is not a traversal source", clip(word))
        };
        self.error_here(SyntaxErrorKind::Unexpected, message).expecting(sources)
    }

    /// Something after a statement that may not follow one.
    pub(super) fn not_after_a_statement(&self) -> Problem {
        if let Some(error) = self.groovy_operator() {
            return error;
        }
        match self.current.kind {
            Kind::OpenBracket => self.unsupported(
                self.current,
                "results cannot be indexed in gremlin-lang",
                "take the first with limit(1) or next(), and others with range(low, high)",
            ),
            Kind::Close | Kind::CloseBracket | Kind::CloseBrace => {
                let message = format!("this {} has no opening one", self.word());
                self.error_here(SyntaxErrorKind::Unexpected, message)
            }
            _ => {
                let message = format!("unexpected {} after a statement", self.found());
                let expected = ["a step such as .out()", "; and another statement", "the end of the script"];
                self.error_here(SyntaxErrorKind::Unexpected, message).expecting(expected.map(String::from).to_vec())
            }
        }
    }

    /// A method call on something that already ended.
    pub(super) fn after_the_end(&self, dot: Sign) -> Problem {
        let word = self.word_or_empty();
        let at = if word.is_empty() { dot } else { self.current };
        let found = if word.is_empty() { self.found() } else { format!("{}()", clip(word)) };
        let message = format!("{found} cannot follow the end of a statement; only toString() can");
        let advice = match word {
            "size" | "length" => "count inside the traversal: g.V().count()",
            "value" | "get" | "id" | "label" | "properties" | "values" | "property" => {
                "read it inside the traversal, before next() or toList(): g.V().values('name')"
            }
            "each" | "collect" | "find" | "findAll" | "sort" | "unique" | "stream" | "forEach" | "join" => {
                "use steps instead, before next() or toList(): map(), filter(), order(), dedup(), conjoin()"
            }
            _ => "next(), toList() and the like end a traversal; put further steps before them",
        };
        self.error_at(at, SyntaxErrorKind::Unexpected, message).advising(advice)
    }

    // ---- steps ----

    /// A word after a dot that is no step; also no word at all.
    pub(super) fn not_a_step(&self) -> Problem {
        let word = self.word_or_empty();
        if word.is_empty() {
            return self.unexpected("the name of a step");
        }
        if Terminal::from_name(word).is_some() {
            let message = format!("{word}() ends a query and cannot stand in an anonymous traversal");
            return self.error_here(SyntaxErrorKind::Unexpected, message);
        }
        if source_index(word).is_some() {
            let message = format!("{word}() configures the traversal source and must come first");
            return self
                .error_here(SyntaxErrorKind::Unexpected, message)
                .advising(format!("write g.{word}(…) before the first step"));
        }
        if let Some(error) = self.gone(word) {
            return error;
        }
        if spawn_index(word).is_some() {
            let message = format!("{word}() can only begin a traversal");
            return self.error_here(SyntaxErrorKind::Unexpected, message).advising(format!("write g.{word}(…)"));
        }
        if predicate_index(word).is_some() {
            let message = format!("{word}() is a predicate, not a step");
            return self
                .error_here(SyntaxErrorKind::UnknownStep, message)
                .advising(format!("filter with it: is({word}(…)) for values, has('key', {word}(…)) for properties"));
        }
        self.error_here(SyntaxErrorKind::UnknownStep, format!("there is no step {}()", clip(word)))
            .near(nearest(word, STEPS))
    }

    /// A word after a traversal source that begins no traversal.
    pub(super) fn not_a_spawn_step(&self) -> Problem {
        let word = self.word();
        if let Some(error) = self.gone(word) {
            return error;
        }
        if step_index(word).is_some() {
            let message = format!("{word}() cannot begin a traversal");
            return self
                .error_here(SyntaxErrorKind::Unexpected, message)
                .expecting(SPAWN_STEPS.iter().map(|step| format!("g.{}(…)", step.name)).collect())
                .advising(format!("to read the graph, begin with g.V() or g.E(): g.V().{word}(…)"));
        }
        if Terminal::from_name(word).is_some() {
            let message = format!("{word}() needs a traversal before it");
            return self.error_here(SyntaxErrorKind::Unexpected, message).advising(format!("write g.V().{word}()"));
        }
        let near = nearest(word, SPAWN_STEPS).or_else(|| nearest(word, SOURCE_METHODS));
        let error =
            self.error_here(SyntaxErrorKind::UnknownStep, format!("a traversal source has no {}()", clip(word)));
        if near.is_some() {
            return error.near(near);
        }
        let known = SPAWN_STEPS.iter().chain(SOURCE_METHODS).map(|callable| format!("{}()", callable.name));
        error.expecting(known.chain(["tx()".to_string()]).collect())
    }

    /// Methods of other dialects and versions.
    fn gone(&self, word: &str) -> Option<Problem> {
        let advice = match word {
            "addVertex" => "write addV('label').property('key', 'value')",
            "addEdge" | "addInE" | "addOutE" => "write addE('label').from(__.V(1)).to(__.V(2))",
            "sparql" => "write the query in Gremlin",
            "store" => "since 3.8 write local(aggregate('x'))",
            "withComputer" => {
                "pageRank(), peerPressure(), connectedComponent() and shortestPath() run without a graph computer"
            }
            "program" => {
                "use pageRank(), peerPressure(), connectedComponent(), shortestPath() or a service through call()"
            }
            "fill" | "promise" | "forEachRemaining" | "toStream" | "getBytecode" | "asAdmin" | "cancel" => {
                "end a traversal with next(), next(n), toList(), toSet(), toBulkSet(), iterate(), hasNext(), tryNext() or explain()"
            }
            "withRemote" | "close" | "getGraph" | "clone" => "connections and sessions belong to the driver",
            "each" | "collect" | "findAll" | "forEach" => "use steps instead: map(), flatMap(), filter(), sideEffect()",
            _ => return None,
        };
        Some(self.unsupported(self.current, format!("gremlin-lang has no {word}()"), advice))
    }

    /// The name of `callable` without arguments after it.
    pub(super) fn without_parentheses(&self, callable: &Callable) -> Problem {
        if let Some(error) = self.closure_of(callable.name) {
            return error;
        }
        let message = format!("{0} needs parentheses, as in {0}(), not {1}", callable.name, self.found());
        self.error_here(SyntaxErrorKind::Unexpected, message).expecting(callable.usages())
    }

    /// A query inside a query that does not end in a terminal step.
    pub(super) fn unterminated(&self, at: Sign) -> Problem {
        self.error_at(at, SyntaxErrorKind::Unexpected, "a query that begins with g cannot be an argument as it stands")
            .advising(
                "write it as an anonymous traversal, __.V(1), or end it with next() or toList() to pass its result",
            )
    }

    /// `g.…` where only an anonymous traversal may stand.
    pub(super) fn spawned_argument(&self, at: Sign, accepted: ClassSet) -> Problem {
        let callee = self.callee.map_or("this place", |callee| callee.name);
        let message = format!("a query that begins with g cannot be an argument of {callee}()");
        let advice = if accepted & class::TRAVERSAL != 0 {
            "write it as an anonymous traversal: __.V(1) instead of g.V(1)"
        } else {
            "run it first, and send its result as a parameter"
        };
        self.error_at(at, SyntaxErrorKind::WrongArguments, message).advising(advice)
    }

    // ---- arguments ----

    fn wrong_arguments(&self, at: Sign, message: String) -> Problem {
        let error = self.error_at(at, SyntaxErrorKind::WrongArguments, message);
        match self.callee {
            Some(callee) => error.expecting(callee.usages()),
            None => error,
        }
    }

    fn callee_name(&self) -> &'static str {
        self.callee.map_or("this", |callee| callee.name)
    }

    /// An argument of a class that its place does not accept.
    pub(super) fn wrong_class(&self, at: Sign, found: ClassSet) -> Problem {
        let message = format!("{}() does not take {} here", self.callee_name(), class::describe(found));
        let error = self.wrong_arguments(at, message);
        match (self.callee_name(), found) {
            ("aggregate", class::SCOPE) => error.advising("aggregate(local, 'x') is local(aggregate('x')) since 3.8"),
            ("has", class::TRAVERSAL) => {
                error.advising("has(key, traversal) is where(values(key).…) or filter(values(key).…) since 3.8")
            }
            _ => error,
        }
    }

    pub(super) fn too_many_arguments(&self, callable: &Callable, count: usize) -> Problem {
        let message = format!("{}() does not take {} arguments here", callable.name, count + 1);
        self.error_here(SyntaxErrorKind::WrongArguments, message).expecting(callable.usages())
    }

    pub(super) fn too_few_arguments(&self, callable: &Callable, at: Sign, count: usize, given: ClassSet) -> Problem {
        let message = match count {
            0 => format!("{}() needs arguments", callable.name),
            1 => format!("{}() does not take one argument alone of this kind", callable.name),
            _ => format!("{}() does not take these {count} arguments", callable.name),
        };
        let error = self.error_at(at, SyntaxErrorKind::WrongArguments, message).expecting(callable.usages());
        match callable.name {
            "none" if given == 0 => error.advising("the step that lets nothing pass is discard() since 3.8"),
            _ => error,
        }
    }

    /// A sign in an argument list that is neither comma nor closing parenthesis.
    pub(super) fn not_in_arguments(&self, open: Sign) -> Problem {
        self.not_in_brackets(open, ')')
    }

    /// A sign in a collection that is neither comma nor closing bracket.
    pub(super) fn not_in_collection(&self, open: Sign, close: char) -> Problem {
        self.not_in_brackets(open, close)
    }

    fn not_in_brackets(&self, open: Sign, close: char) -> Problem {
        if let Some(error) = self.groovy_operator() {
            return error;
        }
        if self.current.kind == Kind::End {
            let opened = &self.text[open.start..open.end];
            return self
                .error_at(open, SyntaxErrorKind::Unexpected, format!("this {opened} is never closed"))
                .expecting(vec![format!("{close} before the end of the script")]);
        }
        if self.current.kind == Kind::Dot {
            let message = "a value cannot be followed by a method call";
            return self.error_here(SyntaxErrorKind::Unexpected, message).advising(
                "only traversals and predicates can: map(values('name').toUpper()), has('age', gt(1).and(lt(9)))",
            );
        }
        let expected = vec![", and another argument".to_string(), close.to_string()];
        if self.current.kind == Kind::Colon && close == '}' {
            return self.map_in_braces();
        }
        self.error_here(SyntaxErrorKind::Unexpected, format!("unexpected {}", self.found())).expecting(expected)
    }

    fn map_in_braces(&self) -> Problem {
        self.error_here(SyntaxErrorKind::Unexpected, "a map is not written in braces")
            .advising("write it in brackets, [key: 'value']; braces are sets")
    }

    pub(super) fn not_a_number(&self, value: &Value, at: Sign, wanted: &str) -> Problem {
        let message = format!("{}() takes {wanted}, which {} is not", self.callee_name(), clip(&print_value(value)));
        self.wrong_arguments(at, message)
    }

    /// A sign that begins no argument.
    pub(super) fn not_an_argument(&self, accepted: ClassSet) -> Problem {
        if let Some(error) = self.groovy_operator() {
            return error;
        }
        let mut error = match self.current.kind {
            Kind::Open => self.unsupported(
                self.current,
                "an argument cannot be put in parentheses or cast",
                "leave the parentheses out; numbers take suffixes instead of casts: 1L, 1.5F",
            ),
            Kind::End => self.error_here(SyntaxErrorKind::Unexpected, "the script ends where an argument should be"),
            _ => {
                let message = format!("unexpected {} where an argument should be", self.found());
                self.error_here(SyntaxErrorKind::Unexpected, message)
            }
        };
        if accepted & class::LITERAL != class::LITERAL
            && let Some(callee) = self.callee
        {
            error = error.expecting(callee.usages());
        }
        error
    }

    /// A word before a parenthesis that is neither step nor predicate nor literal.
    pub(super) fn unknown_call(&self) -> Problem {
        let word = self.word();
        if Terminal::from_name(word).is_some()
            || source_index(word).is_some()
            || spawn_index(word).is_some()
            || self.gone(word).is_some()
        {
            return self.not_a_step();
        }
        if word == "g" {
            let message = "g is the traversal source and cannot be called";
            return self.error_here(SyntaxErrorKind::Unexpected, message).advising("write __.V(…) inside a step");
        }
        let advice = match word {
            "Date" => Some("write dates as datetime('2024-02-29')"),
            "BigDecimal" => Some("write it as 1.5M"),
            "BigInteger" => Some("write it as 1N"),
            "Duration" | "Binary" | "Char" => Some("values of this type have no literal: send them as parameters"),
            _ => None,
        };
        let steps = nearest(word, STEPS);
        let near = nearest(word, PREDICATES).filter(|_| steps.is_none()).or(steps);
        let message = format!("there is no step or predicate {}()", clip(word));
        let error = self.error_here(SyntaxErrorKind::UnknownStep, message).near(near);
        match advice {
            Some(advice) => error.advising(advice),
            None => error,
        }
    }

    /// A word before a dot that qualifies nothing.
    pub(super) fn unknown_qualifier(&self) -> Problem {
        let at = self.current;
        let word = self.word();
        let (message, advice) = match word {
            "it" => (
                "closures are not part of gremlin-lang".to_string(),
                "write what is done with it as a traversal: values('name') instead of it.get().value('name')",
            ),
            "System" | "java" | "Math" | "UUID" | "Thread" | "Class" | "org" | "Date" => (
                format!("gremlin-lang cannot call {word}"),
                "compute in the client and send values as parameters; datetime(), UUID() and math() exist",
            ),
            "Lambda" => (
                "lambdas are not part of gremlin-lang".to_string(),
                "write the body as a traversal: map(values('name'))",
            ),
            "VertexProperty" => ("gremlin-lang has no VertexProperty".to_string(), "write Cardinality.set or set"),
            "Compare" | "Contains" => (format!("gremlin-lang has no {word}"), "write predicates: gt(1), within(1, 2)"),
            "SackFunctions" => ("gremlin-lang has no SackFunctions".to_string(), "write Barrier.normSack"),
            _ if GType::from_class_name(word).is_some() => (
                format!("gremlin-lang has no class {word}"),
                "types are GType.INT, GType.STRING and so on, or names as strings, as in typeOf('Integer')",
            ),
            _ if self.options.bindings.get(word).is_some() => (
                format!("{} is a parameter, and methods cannot be called on it", clip(word)),
                "pass the value itself, and transform it with steps",
            ),
            _ if step_index(word).is_some() => {
                let message = format!("{word} needs parentheses, as in {word}()");
                return self.error_here(SyntaxErrorKind::Unexpected, message);
            }
            _ => {
                const QUALIFIERS: [&str; 22] = [
                    "__",
                    "P",
                    "TextP",
                    "T",
                    "Scope",
                    "Order",
                    "Direction",
                    "Cardinality",
                    "Column",
                    "Pop",
                    "Operator",
                    "Pick",
                    "DT",
                    "GType",
                    "Merge",
                    "Barrier",
                    "WithOptions",
                    "IO",
                    "ShortestPath",
                    "PageRank",
                    "PeerPressure",
                    "ConnectedComponent",
                ];
                let near = QUALIFIERS.iter().find(|known| known.eq_ignore_ascii_case(word)).map(ToString::to_string);
                return self
                    .error_here(
                        SyntaxErrorKind::UnknownToken,
                        format!("{} has no members that gremlin-lang knows", clip(word)),
                    )
                    .near(near)
                    .expecting(QUALIFIERS.map(String::from).to_vec());
            }
        };
        self.unsupported(at, message, advice)
    }

    /// A bare word in a place that takes no parameter.
    pub(super) fn misplaced_word(&self, accepted: ClassSet) -> Problem {
        let word = self.word();
        if let Some(token) = token(word, !accepted) {
            return self.wrong_class(self.current, token.class());
        }
        if let Some(error) = self.word_without_call(word) {
            return error;
        }
        if self.options.bindings.get(word).is_some() {
            let message = format!("a parameter cannot stand here: {}() takes literals only", self.callee_name());
            let error = self.wrong_arguments(self.current, message);
            return error.advising(format!("write the value of {} into the query", clip(word)));
        }
        if self.following() == b':' {
            return self.map_in_braces();
        }
        let message = format!("{} means nothing here", clip(word));
        let error = self.error_here(SyntaxErrorKind::Unexpected, message);
        match self.callee {
            Some(callee) if accepted & class::LITERAL != class::LITERAL => error.expecting(callee.usages()),
            _ => error.advising("text is quoted, 'like this'"),
        }
    }

    /// The name of a step or qualifier on its own.
    fn word_without_call(&self, word: &str) -> Option<Problem> {
        if matches!(word, "incr" | "decr") {
            let message = format!("the order {word} is gone");
            let order = if word == "incr" { "asc" } else { "desc" };
            return Some(self.unsupported(self.current, message, &format!("write Order.{order} or {order}")));
        }
        if word == "__"
            || self.is_source(word)
            || qualifier(word).is_some()
            || owns_options(word)
            || word == "P"
            || word == "TextP"
        {
            let message = format!("{word} is no value by itself");
            let example = if qualifier(word).is_some() || owns_options(word) { "member" } else { "method()" };
            return Some(
                self.error_here(SyntaxErrorKind::Unexpected, message).expecting(vec![format!("{word}.{example}")]),
            );
        }
        if word == "new" {
            return Some(self.unsupported(
                self.current,
                "objects cannot be created in gremlin-lang",
                "only strategies take new, inside withStrategies(); send other values as parameters",
            ));
        }
        if step_index(word).is_some() || predicate_index(word).is_some() {
            let message = format!("{word} needs parentheses, as in {word}()");
            return Some(self.error_here(SyntaxErrorKind::Unexpected, message));
        }
        None
    }

    /// A parameter without a value.
    pub(super) fn unbound(&self, accepted: ClassSet) -> Problem {
        let word = self.word();
        if let Some(token) = token(word, !accepted) {
            return self.wrong_class(self.current, token.class());
        }
        if let Some(error) = self.word_without_call(word) {
            return error;
        }
        let mut names = self.options.bindings.names();
        names.sort();
        let shown = names.iter().take(20).map(|name| clip(name)).collect::<Vec<_>>().join(", ");
        let bound = match names.len() {
            0 => "the request binds no parameters".to_string(),
            count if count > 20 => format!("the request binds {shown} and {} more", count - 20),
            _ => format!("the request binds {shown}"),
        };
        let near = names.iter().find(|name| half_distance(name, word) <= 2).map(|name| clip(name));
        self.error_here(
            SyntaxErrorKind::UnboundParameter,
            format!("no variable found for {}: no value is bound to this parameter", clip(word)),
        )
        .near(near)
        .advising(format!("{bound}; a string is quoted: '{}'", clip(word)))
    }

    /// A parameter bound to a value that its place does not take.
    pub(super) fn parameter_type(&self, argument: &Argument, accepted: ClassSet, at: Sign) -> Problem {
        let name = clip(self.text[at.start..at.end].trim_end());
        let value = match argument {
            Argument::Value(value) => clip(&print_value(value)),
            Argument::Predicate(_) => "a predicate".into(),
            _ => "a traversal".into(),
        };
        let wanted: Vec<&str> = [class::STRING, class::INTEGER, class::MAP, class::NULL]
            .into_iter()
            .filter(|candidate| accepted & candidate != 0)
            .map(class::describe)
            .collect();
        let message = format!(
            "the parameter {name} is bound to {value}, but {}() takes {} here",
            self.callee_name(),
            wanted.join(" or ")
        );
        self.error_at(at, SyntaxErrorKind::ParameterType, message)
    }

    /// `[(name): …]`, which in Groovy is the value of a variable.
    pub(super) fn parenthesised_name(&self) -> Problem {
        let word = clip(self.word());
        let message = format!("({word}) is no key: a map literal takes no parameters");
        self.error_here(SyntaxErrorKind::Unsupported, message)
            .advising(format!("write [{word}: …] for the key '{word}', or send the whole map as a parameter"))
    }

    // ---- Groovy ----

    /// An error if the current `{` opens a closure rather than a set.
    pub(super) fn closure(&self) -> Option<Problem> {
        self.closure_of(self.callee_name())
    }

    /// The same, with the step it would belong to.
    fn closure_of(&self, step: &str) -> Option<Problem> {
        if self.current.kind != Kind::OpenBrace {
            return None;
        }
        let body = self.text[self.current.end..].trim_start();
        let names = body.find(|character: char| !(character.is_alphanumeric() || matches!(character, '_' | ',' | ' ')));
        let (names, rest) = body.split_at(names.unwrap_or(body.len()));
        let uses_it = names.trim() == "it" && !rest.is_empty();
        if !uses_it && !rest.starts_with("->") {
            return None;
        }
        let advice = match step {
            "filter" | "where" => "write the body as a traversal or predicate: filter(values('age').is(gt(30)))",
            "by" => "write the body as a traversal: by(values('name').length())",
            "sideEffect" => "write the body as a traversal: sideEffect(property('seen', true))",
            _ => "write the body as a traversal: map(values('name').toUpper())",
        };
        Some(self.unsupported(self.current, "closures are not part of gremlin-lang", advice))
    }

    /// An error if the current sign is an operator or other sign of Groovy.
    fn groovy_operator(&self) -> Option<Problem> {
        if let Some(error) = self.closure() {
            return Some(error);
        }
        if self.current.kind == Kind::Word {
            let advice = match self.word() {
                "as" if self.following() != b'(' => {
                    "a type is given by a suffix, 1L or 1.5F, or by asNumber(), asString(), asDate()"
                }
                "instanceof" => "filter by type with typeOf(): is(typeOf(GType.INT))",
                _ => return None,
            };
            let message = format!("gremlin-lang has no operator {}", self.word());
            return Some(self.unsupported(self.current, message, advice));
        }
        if self.current.kind != Kind::Stray {
            return None;
        }
        let rest = &self.text[self.current.start..];
        let advice = match rest.as_bytes()[0] {
            b'+' | b'-' | b'*' | b'%' | b'^' => {
                "compute in the client, or inside the traversal with math(), sum() or concat()"
            }
            b'/' if rest.starts_with("/*") => {
                return Some(self.unsupported(
                    self.current,
                    "gremlin-lang has no block comments",
                    "begin each line of a comment with //",
                ));
            }
            b'/' => "compute in the client, or inside the traversal with math()",
            b'=' if !rest.starts_with("==") => "there are no variables; send values as parameters",
            b'=' | b'<' | b'>' | b'!' => "compare with predicates: eq(1), neq(1), gt(1), lte(1)",
            b'&' | b'|' => "combine with steps, and(…), or(…), or predicates, gt(1).and(lt(9))",
            b'?' => "branch with choose(condition, then, otherwise), and give defaults with coalesce()",
            b'`' => "strings are quoted with ' or \"",
            _ => {
                let message = format!("unexpected character {}", clip(self.word()));
                return Some(self.error_here(SyntaxErrorKind::Unexpected, message));
            }
        };
        let message = format!("gremlin-lang has no operator {}", self.word());
        Some(self.unsupported(self.current, message, advice))
    }
}

/// The callable whose name is closest to `word`, if any is close.
fn nearest(word: &str, callables: &'static [Callable]) -> Option<String> {
    // No name is as long, and a word may be as long as the text.
    if word.chars().nth(COMPARED_CHARACTERS_MAX).is_some() {
        return None;
    }
    let tolerated = match word.chars().count() {
        0..=2 => 2,
        3..=5 => 4,
        _ => 6,
    };
    callables
        .iter()
        .map(|callable| (half_distance(callable.name, word), callable.name))
        .filter(|(distance, name)| *distance <= tolerated && *distance < 2 * name.len())
        .min_by_key(|(distance, name)| (*distance, !word.starts_with(name), name.len().abs_diff(word.len())))
        .map(|(_, name)| format!("{name}()"))
}

/// How many insertions, deletions, replacements and swaps of neighbours apart two words are, in halves: a letter of the
/// other case costs one half. Words that are too long are infinitely far apart.
fn half_distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    if left.len().max(right.len()) > COMPARED_CHARACTERS_MAX {
        return usize::MAX;
    }
    let width = right.len() + 1;
    let mut costs = vec![0; (left.len() + 1) * width];
    for row in 0..=left.len() {
        for column in 0..=right.len() {
            let at = row * width + column;
            if row == 0 || column == 0 {
                costs[at] = 2 * row.max(column);
                continue;
            }
            let (a, b) = (left[row - 1], right[column - 1]);
            let replacement = if a == b {
                0
            } else if a.eq_ignore_ascii_case(&b) {
                1
            } else {
                2
            };
            let mut cost = (costs[at - width] + 2).min(costs[at - 1] + 2).min(costs[at - width - 1] + replacement);
            if row > 1 && column > 1 && a == right[column - 2] && left[row - 2] == b {
                cost = cost.min(costs[at - 2 * width - 2] + 2);
            }
            costs[at] = cost;
        }
    }
    costs[costs.len() - 1]
}
