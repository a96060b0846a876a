//! Random queries give the same rows whatever the batch size and whether or not rules are applied.
//!
//! A failure prints the seed and the query; `FICUS_TEST_SEED=<seed>` repeats a run, `FICUS_TEST_TIMES=<n>` asks n times as many queries.

use std::cell::RefCell;

use ficus_gremlin::lower::lower;
use ficus_gremlin::text::generate::Generator;
use ficus_gremlin::text::{ParseOptions, parse_traversal, print};
use ficus_query::engine::{Prepared, RunOptions};
use ficus_query::error::QueryErrorKind;
use ficus_query::rules::RULES;

use crate::modern::modern;
use crate::phrases::phrase;
use crate::runner::{ALL, Answer, Circumstances, OTHER_SCOPES, Rules, Runner, Show, USUAL};

/// Queries that make sense.
const PHRASES: usize = 500;
/// Queries that are merely grammatical.
const TRAVERSALS: usize = 3000;
/// Queries that make sense, run with and without each rule.
const RULED: usize = 6000;
/// A random loop may have no end. One that runs longer is not compared; most take far less than a millisecond.
const TIMEOUT_NS: u64 = 2_000_000_000;

fn seed() -> u64 {
    match std::env::var("FICUS_TEST_SEED") {
        Ok(seed) => seed.parse().expect("FICUS_TEST_SEED is a number"),
        Err(_) => std::process::id().into(),
    }
}

/// How often as many queries as usual are asked.
fn times() -> usize {
    std::env::var("FICUS_TEST_TIMES").map_or(1, |times| times.parse().expect("FICUS_TEST_TIMES is a number"))
}

fn options() -> RunOptions {
    RunOptions { timeout_ns: Some(TIMEOUT_NS), memory_limit_bytes: 16 << 20, ..RunOptions::default() }
}

/// Whether a run says nothing about the query, since it ended for want of time or memory.
fn is_cut_off(answer: &Answer) -> bool {
    matches!(answer, Answer::Failed(QueryErrorKind::Timeout | QueryErrorKind::Budget, _))
}

/// What two runs must have in common: the rows, or the kind of error.
fn essence(answer: Answer) -> Answer {
    match answer {
        Answer::Rows(mut rows) => {
            rows.sort_unstable();
            Answer::Rows(rows)
        }
        // Which of several bad rows comes first is open.
        Answer::Failed(kind, _) => Answer::Failed(kind, String::new()),
        refused => refused,
    }
}

/// The first circumstances under which the answer is another one, with both answers.
fn difference(run: impl Fn(Circumstances) -> Answer) -> Result<Answer, String> {
    let usual = run(ALL[0]);
    if is_cut_off(&usual) {
        return Ok(usual);
    }
    if let Answer::Failed(QueryErrorKind::Internal, message) = &usual {
        return Err(format!("a bug: {message}"));
    }
    let wanted = essence(usual.clone());
    for circumstances in &ALL[1..] {
        let other = run(*circumstances);
        if is_cut_off(&other) {
            return Ok(other);
        }
        if essence(other.clone()) != wanted {
            return Err(format!("usually {usual:?}\nwith {circumstances:?} {other:?}"));
        }
    }
    Ok(usual)
}

/// Reports all differences at once; each line can be run on its own.
fn check(
    name: &str,
    count: usize,
    seed: u64,
    answered_min: usize,
    mut next: impl FnMut() -> (String, Result<Answer, String>),
) {
    let (mut answered, mut cut_off, mut failures) = (0, 0, Vec::new());
    for _ in 0..count {
        let (query, outcome) = next();
        match outcome {
            Ok(Answer::Rows(rows)) => answered += usize::from(!rows.is_empty()),
            Ok(answer) if is_cut_off(&answer) => cut_off += 1,
            Ok(_) => {}
            Err(difference) => failures.push(format!("{query}\n{difference}\n")),
        }
    }
    #[allow(clippy::print_stdout)] // The seed repeats the run.
    {
        println!("{name}: seed {seed}, {count} queries, {answered} with rows, {cut_off} cut off");
    }
    failures.sort_by_key(String::len);
    assert!(
        failures.is_empty(),
        "{name}: FICUS_TEST_SEED={seed} repeats this; {} of {count} differ:\n{}",
        failures.len(),
        failures[..failures.len().min(20)].join("\n")
    );
    assert!(answered >= answered_min, "{name}: seed {seed}: only {answered} of {count} queries give rows");
}

#[test]
fn sensible_queries_do_not_depend_on_circumstances() {
    let (seed, runner) = (seed(), Runner::new(modern()));
    let mut random = Generator::new(seed);
    check("phrases", PHRASES * times(), seed, PHRASES / 2, || {
        let text = phrase(&mut random);
        // Loops have another order of rows with other batches, too: they are compared with all that they keep.
        let text = match keeps_the_first(&text) && text.contains("repeat(") {
            true => text.replace(".dedup()", ""),
            false => text,
        };
        let run = |circumstances| runner.text(&text, circumstances, &options(), Show::Sorted);
        let outcome = match keeps_the_first(&text) {
            true if text.contains("repeat(") => Ok(run(USUAL)),
            // The ways of those rows that `dedup()` and `limit()` leave decide which of them a barrier makes one of, that counts as one then.
            true if ["withBulk(false)", "dedup(", "limit(", "barrier("].iter().all(|part| text.contains(part)) => {
                Ok(run(USUAL))
            }
            true => difference(run),
            false => difference(run).and_then(|usual| difference_of_scopes(usual, run)),
        };
        (text, outcome)
    });
}

#[test]
fn no_rule_changes_an_answer() {
    let (seed, runner) = (seed(), Runner::new(modern()));
    let mut random = Generator::new(seed);
    let applied = RefCell::new(vec![0; RULES.len()]);
    check("rules", RULED * times(), seed, RULED / 2, || {
        let text = phrase(&mut random);
        let Ok(bytecode) = parse_traversal(&text, &ParseOptions::default()) else {
            return (text, Err("this is no query".into()));
        };
        let run = |rules| runner.bytecode(&bytecode, Circumstances { rules, ..USUAL }, &options(), Show::Sorted);
        let usual = run(Rules::All);
        if is_cut_off(&usual) || keeps_the_first(&text) {
            return (text, Ok(usual));
        }
        let wanted = essence(usual.clone());
        // A rule that is not applied leaves the plan as it is.
        for rule in Runner::applied(&bytecode) {
            applied.borrow_mut()[rule as usize] += 1;
            for rules in [Rules::Without(rule), Rules::Only(rule)] {
                let other = run(rules);
                if !is_cut_off(&other) && essence(other.clone()) != wanted {
                    return (text, Err(format!("usually {usual:?}\nwith {rules:?} {other:?}")));
                }
            }
        }
        (text, Ok(usual))
    });
    let applied = applied.into_inner();
    let counted: Vec<String> =
        RULES.iter().zip(&applied).map(|(info, count)| format!("{} {count}", info.name)).collect();
    #[allow(clippy::print_stdout)] // What the run is worth.
    {
        println!("rules applied: {}", counted.join(", "));
    }
    let never: Vec<&str> =
        RULES.iter().zip(&applied).filter(|(_, count)| **count == 0).map(|(info, _)| info.name).collect();
    assert!(never.is_empty(), "seed {seed}: no query has what these rules look for: {never:?}");
}

/// Whether a query keeps the first of rows that are equal but for what it labelled: which that is depends on the order of rows, and a
/// policy gives them another. Without bulk any barrier does, and the labels that name scopes make rows different. Rows with the labels `w` and `u` are
/// asked for nothing but these.
fn keeps_the_first(text: &str) -> bool {
    let has = |part: &str| text.contains(part);
    let has_labels = text.replace("as('w')", "").replace("as('u')", "").contains("as('");
    has("dedup(") && (has_labels || has("path()")) || has("withBulk(false)")
}

/// As [`difference`], with and without scopes, and with other policies.
fn difference_of_scopes(usual: Answer, run: impl Fn(Circumstances) -> Answer) -> Result<Answer, String> {
    let Answer::Rows(_) = &usual else { return Ok(usual) };
    let wanted = essence(usual.clone());
    for circumstances in OTHER_SCOPES {
        match run(circumstances) {
            // Where rows have effects, or behind what decides, these say no.
            Answer::Failed(QueryErrorKind::Option, _) => {}
            cut_off if is_cut_off(&cut_off) => {}
            other if essence(other.clone()) == wanted => {}
            other => return Err(format!("usually {usual:?}\nwith {circumstances:?} {other:?}")),
        }
    }
    Ok(usual)
}

/// Steps with random outcomes, which draw row by row, so that which row gets which number is open; and one that looks at the clock.
const DRAWS: [&str; 4] = ["coin(", "sample(", "shuffle", "timeLimit("];
/// Fails with an error of its own kind, and which of several bad rows comes first is open.
const FAILS: [&str; 1] = ["fail("];
/// Steps that end a query before all rows are there: a bad row behind the last that is wanted may be met or not.
const ENDS: [&str; 2] = ["limit(", "range("];
/// Steps that may make ids, which are never made twice: of their rows only the number is compared.
const MAKES_IDS: [&str; 3] = ["addV(", "addE(", "merge"];
/// Its row tells which operators there were, and that is what rules change.
const TELLS_OPERATORS: [&str; 1] = ["profile("];

#[test]
fn random_traversals_do_not_depend_on_circumstances() {
    let (seed, runner) = (seed(), Runner::new(modern()));
    let mut random = Generator::new(seed);
    check("traversals", TRAVERSALS * times(), seed, TRAVERSALS / 100, || {
        let bytecode = random.traversal(2);
        let text = print(&bytecode);
        let has = |steps: &[&str]| steps.iter().any(|step| text.contains(step));
        let (draws, fails) = (has(&DRAWS), has(&FAILS));
        let is_counted = has(&MAKES_IDS) || has(&TELLS_OPERATORS);
        let run =
            |circumstances: Circumstances| match runner.bytecode(&bytecode, circumstances, &options(), Show::Sorted) {
                Answer::Rows(rows) if is_counted => Answer::Rows(vec![String::new(); rows.len()]),
                Answer::Failed(QueryErrorKind::Failed, message) if fails => {
                    Answer::Failed(QueryErrorKind::Invalid, message)
                }
                answer => answer,
            };
        let meets_bad_rows =
            || ALL.into_iter().any(|how| matches!(run(how), Answer::Failed(QueryErrorKind::Invalid, _)));
        let outcome = match draws {
            true => Ok(run(USUAL)),
            false => difference(run).or_else(|different| match has(&ENDS) && meets_bad_rows() {
                true => Ok(run(USUAL)),
                false => Err(different),
            }),
        };
        (text, outcome)
    });
}

#[test]
fn explain_shows_rules_operators_and_what_was_left_out() {
    let shown = |text: &str| {
        let plan = lower(&parse_traversal(text, &ParseOptions::default()).unwrap()).unwrap();
        let explanation = Prepared::explained(plan).unwrap().explanation();
        explanation.intermediate.iter().map(|(name, category, text)| format!("{name} [{category}] {text}")).collect()
    };
    let query = "V().has('name', 'josh').out('knows').has('age', gt(3)).where(__.out('created').count().is(1))";
    let all: Vec<String> = shown(&format!("g.{query}"));
    let starts = |lines: &[String], start: &str| lines.iter().any(|line| line.starts_with(start));
    assert!(starts(&all, "AccessPaths [P] GraphStep"), "{all:#?}");
    assert!(starts(&all, "FilterInScan [P] HasStep([name"), "{all:#?}");
    assert!(starts(&all, "FilterInHop [P] HasStep([age"), "{all:#?}");
    assert!(starts(&all, "InPlace [P] "), "{all:#?}");
    let operators =
        all.iter().find(|line| line.starts_with("Operators [P] GraphStep")).unwrap_or_else(|| panic!("{all:#?}"));
    assert!(operators.contains(" { ") && operators.ends_with(" }"), "{operators}");
    let without: Vec<String> = shown(&format!("g.with('ficus.rule.FilterInHop', false).{query}"));
    assert!(!starts(&without, "FilterInHop") && starts(&without, "FilterInScan"), "{without:#?}");
    let sorted = "V().order().by('age').by('name').limit(2)";
    let first: Vec<String> = shown(&format!("g.{sorted}"));
    assert!(starts(&first, "FirstOfOrder") && starts(&first, "BoundOfOrder"), "{first:#?}");
    let whole: Vec<String> = shown(&format!("g.with('ficus.rule.FirstOfOrder', false).{sorted}"));
    assert!(!whole.iter().any(|line| line.contains("[first")), "all rows are to be sorted: {whole:#?}");
    let last: Vec<String> = shown("g.V().order().by('age').by('name').tail(2)");
    assert!(starts(&last, "BoundOfOrder") && last.iter().any(|line| line.contains("[last 2]")), "{last:#?}");
    for (labelled, is_forgotten) in [
        ("V().as('a').out().where(neq('a')).order().by('name')", true),
        ("V().as('a').out().where(neq('a')).order().by(select('a').by('name'))", false),
        ("V().as('a').out().where(neq('a')).barrier().limit(2)", false),
        ("V().as('a').out().where(neq('a')).barrier()", false),
        ("V().as('a').out().where(neq('a')).barrier().order().by('name').count()", false),
        ("V().as('a').out().where(neq('a')).barrier().barrier().count()", true),
        ("V().as('a').out().where(neq('a')).barrier().groupCount().unfold()", true),
        ("V().as('a').out().where(neq('a')).barrier().dedup().out().barrier()", false),
        ("V().as('a').out().where(neq('a')).sample(2)", true),
        ("V().as('a').out().where(neq('a')).sample(2).local(count())", false),
        ("withStrategies(new SeedStrategy(seed: 1)).V().as('a').out().where(neq('a')).sample(2)", false),
        ("V().as('a').out().order().by('name')", false),
        ("V().out().path().by('name').order()", true),
    ] {
        assert_eq!(starts(&shown(&format!("g.{labelled}")), "ForgottenWays [P] "), is_forgotten, "{labelled}");
    }
    assert!(starts(&shown("g.V().out().where(__.out())"), "TestInHop [P] TraversalFilterStep("));
    assert!(starts(&shown("g.V().dedup().not(__.out())"), "TestsOfMany [P] NotStep("));
    let none: Vec<String> = shown(&format!("g.with('ficus.rules', false).{query}"));
    assert!(
        none.iter().all(|line| ["Operators", "Spread", "Scope"].contains(&line.split(' ').next().unwrap())),
        "{none:#?}"
    );
}
