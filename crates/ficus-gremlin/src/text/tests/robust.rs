//! Whatever the text, the parser answers: no panic, no overflow, no more than linear time and memory.

use std::thread;

use crate::text::generate::Generator;
use crate::text::{ParseOptions, SyntaxErrorKind, parse, print};

/// Well-formed texts to start from, besides generated ones.
const TEXTS: [&str; 6] = [
    "g.V(1).has('größe', P.gt(1.5).and(lt(9)).negate()).out('knows', null).by(T.id, desc)",
    "g.withStrategies(new SubgraphStrategy(vertices: __.has('x')), ReadOnlyStrategy).V().next(5)",
    "g.inject([a: 1, (T.id): {1, 2L, 0x1F, 'a'..'c'}, 'x\\u0041\\n': datetime('2024-01-01')], 1..5)",
    "g.mergeV([(T.label): 'x']).option(Merge.onCreate, [k: Cardinality.set('y')]); g.tx().commit()",
    "g.V(g.V().not(not(out())).toList()).with(WithOptions.tokens, WithOptions.all).toString(); ''",
    "g.V().filter{it.get()} // closure\n.where(not(P.within(1, 2))).map({x -> x})",
];

/// Bits of text that mean something, to be put in odd places.
const FRAGMENTS: [&str; 30] = [
    "(", ")", "[", "]", "{", "}", ",", ";", ":", ".", "..", "'", "\"", "\\", "//", "/*", "-", "1", "0x", "1e", "g",
    "__", "T.", "P.", "not(", "null", "it", "->", "é", "\u{0}",
];

/// Changes `text` in a few random places.
fn mutate(text: &str, generator: &mut Generator) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..1 + generator.below(4) {
        let place = generator.below(characters.len() as u64 + 1) as usize;
        let length = (generator.below(4) as usize).min(characters.len() - place);
        let fragment = FRAGMENTS[generator.below(FRAGMENTS.len() as u64) as usize];
        match generator.below(4) {
            0 => drop(characters.drain(place..place + length)),
            1 => drop(characters.splice(place..place + length, fragment.chars())),
            2 => drop(characters.splice(place..place, fragment.chars())),
            _ => {
                let copy: Vec<char> = characters[place..place + length].to_vec();
                let target = generator.below(characters.len() as u64 + 1) as usize;
                drop(characters.splice(target..target, copy));
            }
        }
    }
    characters.into_iter().collect()
}

#[test]
fn mutated_texts_never_panic() {
    for seed in 0..6_000u64 {
        let mut generator = Generator::new(seed);
        let text = match seed % 2 {
            0 => TEXTS[generator.below(TEXTS.len() as u64) as usize].to_string(),
            _ => print(&generator.traversal(3)),
        };
        let mutated = mutate(&text, &mut generator);
        let read = || parse(&mutated, &ParseOptions::default()).map_err(|error| error.to_string());
        let outcome = std::panic::catch_unwind(read);
        assert!(outcome.is_ok(), "seed {seed}\n{mutated}");
    }
}

#[test]
fn every_prefix_is_answered() {
    for text in TEXTS {
        for (end, _) in text.char_indices() {
            if let Err(error) = parse(&text[..end], &ParseOptions::default()) {
                assert!(error.offset as usize <= end, "{}", &text[..end]);
            }
        }
    }
}

/// `opening`, many times, then `inside`, then as many times `closing`.
fn nested(prefix: &str, opening: &str, inside: &str, closing: &str, levels: usize) -> String {
    format!("{prefix}{}{inside}{}", opening.repeat(levels), closing.repeat(levels))
}

#[test]
fn deep_nesting_is_refused_and_the_limit_fits_the_smallest_stack() {
    // Every way to nest, with what it begins in.
    let ways = [
        ("g.V()", ".map(__", ".out()", ")"),
        ("g.V().map(", "map(", "out()", "))"),
        ("g.inject(", "[", "1", "]"),
        ("g.inject(", "{", "1", "}"),
        ("g.inject(", "[a:", "1", "]"),
        ("g.inject(", "[[", "1", "]:1]"),
        ("g.inject(", "set(", "1", ")"),
        ("g.V(", "g.V(", "1", ").next()"),
        ("g.V().is(", "not(", "eq(1)", ")"),
        ("g.V().filter(", "not(", "eq(1)", ")"),
        ("g.V().filter(", "not(", "out()", ")"),
        ("g.V().is(", "eq(1).and(", "eq(1)", ")"),
        ("g.V().is(eq(1)", ".and(eq(2)).or(eq(3))", "", ""),
        ("g.V().is(eq(1)", ".or(eq(2)).negate()", "", ""),
        ("g.withStrategies(A(a:", "map(", "out()", ")"),
        ("g.V().branch(", "union(out(), choose(gt(1), ", "out()", "))"),
    ];
    // Server threads may have as little as this; traversals are also printed, compared, hashed and dropped there.
    let stack_bytes = 2 << 20;
    for (prefix, opening, inside, closing) in ways {
        let worker = thread::Builder::new().stack_size(stack_bytes);
        let handle = worker.spawn(move || {
            for levels in [200, 300, 5_000, 100_000] {
                let text = nested(prefix, opening, inside, closing, levels);
                match parse(&text, &ParseOptions::default()) {
                    Ok(script) => {
                        // Flat after all, or not deep enough.
                        let copy = script.clone();
                        assert_eq!(copy, script);
                    }
                    Err(error) if levels >= 5_000 => {
                        assert_eq!(error.kind, SyntaxErrorKind::TooDeep, "{prefix}{opening} {error}");
                    }
                    Err(_) => {}
                }
            }
        });
        handle.expect("a thread starts").join().unwrap_or_else(|_| panic!("{prefix}{opening}"));
    }
}

#[test]
fn long_texts_are_read() {
    let mib = 1 << 20;
    let texts = [
        format!("g.V(){}", ".out()".repeat(mib / 6)),
        format!("g.inject({}1)", "1,".repeat(mib / 2)),
        format!("g.inject([{}1])", "'a',".repeat(mib / 4)),
        format!("g.inject('{}')", "x".repeat(mib)),
        format!("g.inject('{}')", "\\n".repeat(mib / 2)),
        format!("g.V().is(eq(1){})", ".and(eq(1))".repeat(mib / 11)),
        format!("g.V().is(eq(1){})", ".negate()".repeat(mib / 9)),
        format!("g.V(){}", " ".repeat(mib)),
        format!("g.V(){}", "// comment\n".repeat(mib / 11)),
        format!("{}g.V()", ";".repeat(mib)),
        format!("g.inject([{}a:1])", (0..mib / 10).map(|key| format!("a{key}:1,")).collect::<String>()),
    ];
    for text in &texts {
        assert!(parse(text, &ParseOptions::default()).is_ok(), "{}", &text[..40]);
    }
    let refused = [
        format!("g.inject({})", "9".repeat(mib)),
        format!("g.inject(1.{}m)", "9".repeat(mib)),
        "g;".repeat(mib / 2),
        format!("g.inject({})", "1..1000000,".repeat(mib / 11)),
        format!("g.V().{}()", "x".repeat(mib)),
        format!("g.withStrategies(A({}))", (0..mib / 10).map(|key| format!("a{key}:1,")).collect::<String>()),
    ];
    for text in &refused {
        let error = parse(text, &ParseOptions::default()).unwrap_err();
        assert!(error.to_string().len() < 2_000, "{}", error.message);
    }
}
