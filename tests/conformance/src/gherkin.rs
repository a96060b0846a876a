//! The part of Gherkin that feature files of graph traversals use: features, backgrounds, tags, scenarios, outlines with
//! examples, doc strings and data tables.
//!
//! [`parse`] expands outlines and puts the background's steps in front, so that a [`Scenario`] is complete in itself.

use std::fmt;

/// One runnable scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Name of the feature it stands in.
    pub feature: String,
    /// Its own name; rows of an outline are told apart by a suffix.
    pub name: String,
    /// Tags of feature and scenario, without the at sign.
    pub tags: Vec<String>,
    /// Line of the scenario in its file, from 1.
    pub line: usize,
    /// What to do, the background first.
    pub steps: Vec<Step>,
}

/// One line of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The text after `Given`, `When`, `Then`, `And` or `But`.
    pub text: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// The doc string below it, if any.
    pub doc: Option<String>,
    /// The rows of the table below it, header included.
    pub table: Vec<Vec<String>>,
}

/// What the parser could not read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GherkinError {
    /// Line in the file, from 1.
    pub line: usize,
    /// What was found and what was expected.
    pub message: String,
}

impl fmt::Display for GherkinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for GherkinError {}

/// Where the parser is: what a step or a table row belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Preamble,
    Background,
    Scenario,
    Examples,
}

/// A scenario as written, before outlines are expanded.
#[derive(Default)]
struct Draft {
    name: String,
    tags: Vec<String>,
    line: usize,
    steps: Vec<Step>,
    examples: Vec<Vec<Vec<String>>>,
}

/// Reads one feature file.
pub fn parse(text: &str) -> Result<Vec<Scenario>, GherkinError> {
    let mut feature = String::new();
    let mut feature_tags = Vec::new();
    let mut pending_tags: Vec<String> = Vec::new();
    let mut background: Vec<Step> = Vec::new();
    let mut drafts: Vec<Draft> = Vec::new();
    let mut section = Section::Preamble;

    let mut lines = text.lines().enumerate();
    while let Some((index, raw)) = lines.next() {
        let (line, trimmed) = (index + 1, raw.trim());
        let fail = |message: String| Err(GherkinError { line, message });
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if trimmed.starts_with('@') {
            pending_tags.extend(trimmed.split_whitespace().map(|tag| tag.trim_start_matches('@').to_owned()));
        } else if let Some(name) = trimmed.strip_prefix("Feature:") {
            feature = name.trim().to_owned();
            feature_tags = std::mem::take(&mut pending_tags);
        } else if trimmed.starts_with("Background:") {
            section = Section::Background;
        } else if let Some(name) =
            heading(trimmed, &["Scenario Outline:", "Scenario Template:", "Scenario:", "Example:"])
        {
            section = Section::Scenario;
            let tags = feature_tags.iter().cloned().chain(pending_tags.drain(..)).collect();
            drafts.push(Draft { name: name.to_owned(), tags, line, ..Draft::default() });
        } else if heading(trimmed, &["Examples:", "Scenarios:"]).is_some() {
            let Some(draft) = drafts.last_mut() else { return fail("examples without a scenario".into()) };
            draft.examples.push(Vec::new());
            pending_tags.clear();
            section = Section::Examples;
        } else if let Some(fence) = ["\"\"\"", "```"].into_iter().find(|fence| trimmed.starts_with(fence)) {
            let indent = raw.len() - raw.trim_start().len();
            let mut body = Vec::new();
            loop {
                let Some((_, inner)) = lines.next() else { return fail("a doc string that never ends".into()) };
                if inner.trim() == fence {
                    break;
                }
                // The fence's own indentation is not part of the text.
                let cut = indent.min(inner.len() - inner.trim_start_matches(' ').len());
                body.push(&inner[cut..]);
            }
            match current_steps(section, &mut background, &mut drafts).and_then(|steps| steps.last_mut()) {
                Some(step) => step.doc = Some(body.join("\n")),
                None => return fail("a doc string without a step".into()),
            }
        } else if trimmed.starts_with('|') {
            let row = cells(trimmed);
            match section {
                Section::Examples => {
                    let table = drafts.last_mut().and_then(|draft| draft.examples.last_mut());
                    table.expect("the section starts with a table").push(row);
                }
                _ => match current_steps(section, &mut background, &mut drafts).and_then(|steps| steps.last_mut()) {
                    Some(step) => step.table.push(row),
                    None => return fail("a table without a step".into()),
                },
            }
        } else if let Some(text) = heading(trimmed, &["Given ", "When ", "Then ", "And ", "But ", "* "]) {
            let step = Step { text: text.to_owned(), line, doc: None, table: Vec::new() };
            match current_steps(section, &mut background, &mut drafts) {
                Some(steps) => steps.push(step),
                None => return fail(format!("a step outside of a scenario: {text}")),
            }
        } else if section == Section::Preamble {
            // Free text below the feature's name.
        } else {
            return fail(format!("expected a step, a table, a doc string or a scenario, found {trimmed:?}"));
        }
    }
    drafts
        .into_iter()
        .map(|draft| expand(&feature, &background, draft))
        .collect::<Result<Vec<_>, _>>()
        .map(|lists| lists.concat())
}

/// The rest of `line` when it starts with one of `keywords`.
fn heading<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    keywords.iter().find_map(|keyword| line.strip_prefix(keyword)).map(str::trim)
}

/// The list that a step read in `section` goes to.
fn current_steps<'a>(
    section: Section,
    background: &'a mut Vec<Step>,
    drafts: &'a mut [Draft],
) -> Option<&'a mut Vec<Step>> {
    match section {
        Section::Background => Some(background),
        Section::Scenario => drafts.last_mut().map(|draft| &mut draft.steps),
        Section::Preamble | Section::Examples => None,
    }
}

/// Splits `| a | b |` into its cells; `\|`, `\n` and `\\` are escapes.
fn cells(row: &str) -> Vec<String> {
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut characters = row.chars().skip(1);
    while let Some(character) = characters.next() {
        match character {
            '|' => cells.push(std::mem::take(&mut cell).trim_matches([' ', '\t']).to_owned()),
            '\\' => match characters.next() {
                Some('n') => cell.push('\n'),
                Some(escaped @ ('|' | '\\')) => cell.push(escaped),
                Some(other) => cell.extend(['\\', other]),
                None => cell.push('\\'),
            },
            other => cell.push(other),
        }
    }
    cells
}

/// One scenario, or one per row of its examples.
fn expand(feature: &str, background: &[Step], draft: Draft) -> Result<Vec<Scenario>, GherkinError> {
    let scenario = |name: String, steps: Vec<Step>| Scenario {
        feature: feature.to_owned(),
        name,
        tags: draft.tags.clone(),
        line: draft.line,
        steps: background.iter().cloned().chain(steps).collect(),
    };
    if draft.examples.is_empty() {
        return Ok(vec![scenario(draft.name.clone(), draft.steps.clone())]);
    }
    let mut expanded = Vec::new();
    for table in &draft.examples {
        let Some((header, rows)) = table.split_first() else { continue };
        for row in rows {
            if row.len() != header.len() {
                let message = format!("{} cells in a row of examples, expected {}", row.len(), header.len());
                return Err(GherkinError { line: draft.line, message });
            }
            let fill = |text: &str| {
                header
                    .iter()
                    .zip(row)
                    .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("<{name}>"), value))
            };
            let steps = draft.steps.iter().map(|step| Step {
                text: fill(&step.text),
                line: step.line,
                doc: step.doc.as_deref().map(fill),
                table: step.table.iter().map(|row| row.iter().map(|cell| fill(cell)).collect()).collect(),
            });
            expanded.push(scenario(format!("{} [{}]", fill(&draft.name), row.join(", ")), steps.collect()));
        }
    }
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_has_its_tags_doc_string_and_table() {
        let text = "# licence\n@A @B\nFeature: Step - x()\n\n  free text\n\n  @C\n  Scenario: g_V\n    Given the modern graph\n    \
                    And the traversal of\n      \"\"\"\n      g.V().\n        out()\n      \"\"\"\n    Then the result should be ordered\n      \
                    | result |\n      | str[ a\\|b] |\n";
        let scenarios = parse(text).unwrap();
        assert_eq!(scenarios.len(), 1);
        let scenario = &scenarios[0];
        assert_eq!((scenario.feature.as_str(), scenario.name.as_str(), scenario.line), ("Step - x()", "g_V", 8));
        assert_eq!(scenario.tags, ["A", "B", "C"]);
        assert_eq!(scenario.steps[1].doc.as_deref(), Some("g.V().\n  out()"));
        assert_eq!(scenario.steps[2].table, [["result"], ["str[ a|b]"]]);
    }

    #[test]
    fn an_outline_is_run_once_per_example_with_the_background_first() {
        let text = "Feature: f\nBackground:\n  Given the empty graph\nScenario Outline: has <n>\n  Then count of <n>\n\
                    Examples:\n  | n |\n  | 1 |\n  | 2 |\nScenario: last\n  Then z\n";
        let scenarios = parse(text).unwrap();
        let texts = |s: &Scenario| s.steps.iter().map(|step| step.text.clone()).collect::<Vec<_>>().join("; ");
        assert_eq!(scenarios.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["has 1 [1]", "has 2 [2]", "last"]);
        assert_eq!(texts(&scenarios[1]), "the empty graph; count of 2");
        assert_eq!(texts(&scenarios[2]), "the empty graph; z");
    }

    #[test]
    fn what_is_not_gherkin_is_refused_with_its_line() {
        let check = |text: &str, line: usize| assert_eq!(parse(text).unwrap_err().line, line, "{text}");
        check("Feature: f\nGiven x\n", 2);
        check("Feature: f\nScenario: s\nnonsense\n", 3);
        check("Feature: f\nScenario: s\n| a |\n", 3);
        check("Feature: f\nScenario: s\nGiven x\n\"\"\"\nopen\n", 4);
    }
}
