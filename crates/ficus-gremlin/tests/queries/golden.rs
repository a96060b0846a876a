//! Queries with the rows they give; see the top of `cases.txt` for its form.

use ficus_query::engine::RunOptions;

use crate::modern::modern;
use crate::runner::{ALL, Answer, Circumstances, Runner, Show, USUAL};

/// What a case expects of the rows.
enum Expected<'a> {
    InOrder(Vec<&'a str>),
    AnyOrder(Vec<&'a str>),
    Error(&'a str),
}

fn expected(line: &str) -> Expected<'_> {
    let (mark, rest) = line.trim_start().split_at(1);
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let rows = || if rest.is_empty() { Vec::new() } else { rest.split(" | ").collect() };
    match mark {
        ">" => Expected::InOrder(rows()),
        "=" => Expected::AnyOrder(rows()),
        "!" => Expected::Error(rest),
        other => panic!("a case begins with >, = or !, not {other}"),
    }
}

/// Why the answer is not the expected one, if it is not.
fn difference(answer: Answer, expected: &Expected<'_>) -> Option<String> {
    let fits = match (&answer, expected) {
        (Answer::Rows(rows), Expected::InOrder(wanted)) => rows == wanted,
        (Answer::Rows(rows), Expected::AnyOrder(wanted)) => {
            let (mut rows, mut wanted): (Vec<&str>, Vec<&str>) =
                (rows.iter().map(String::as_str).collect(), wanted.clone());
            rows.sort_unstable();
            wanted.sort_unstable();
            rows == wanted
        }
        (Answer::Refused(message) | Answer::Failed(_, message), Expected::Error(part)) => message.contains(part),
        _ => false,
    };
    (!fits).then(|| match answer {
        Answer::Rows(rows) => rows.join(" | "),
        other => format!("{other:?}"),
    })
}

#[test]
fn queries_give_these_rows_under_all_circumstances() {
    let runner = Runner::new(modern());
    let mut lines = include_str!("cases.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut cases, mut failures) = (0, Vec::new());
    while let (Some(query), Some(line)) = (lines.next(), lines.next()) {
        cases += 1;
        let expected = expected(line);
        let run = |circumstances: Circumstances| runner.text(query, circumstances, &RunOptions::default(), Show::AsIs);
        for circumstances in ALL {
            if let Some(found) = difference(run(circumstances), &expected) {
                let how = if circumstances == USUAL { String::new() } else { format!(" with {circumstances:?}") };
                failures.push(format!("{query}{how}\n  expected {}\n     found {found}", line.trim_start()));
                break;
            }
        }
    }
    assert!(cases > 150, "only {cases} cases were read");
    assert!(failures.is_empty(), "{} of {cases} cases differ:\n{}", failures.len(), failures.join("\n"));
}
