//! What a run of the suite found: per scenario, in total, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

/// How one scenario ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As the feature file says.
    Passed,
    /// Not so.
    Failed,
    /// Left out for a reason of the provider, and indeed not passing.
    Skipped,
    /// Wrong, and listed as known with its cause.
    KnownFailure,
    /// Listed as skipped or known to fail, but it passes: the list is out of date.
    UnexpectedPass,
}

/// One scenario of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Path of the feature file.
    pub feature: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Line of the scenario in its file.
    pub line: usize,
    /// How it ended.
    pub verdict: Verdict,
    /// The reason of a skip or known failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The step that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What was expected and what came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
}

/// A whole run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Serializer and way of passing parameters.
    pub run: String,
    /// The scenarios in order.
    pub scenarios: Vec<Line>,
    /// What is wrong with the list of skips.
    pub stale_skips: Vec<String>,
}

impl Report {
    /// Scenarios with that verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.scenarios.iter().filter(|line| line.verdict == verdict).count()
    }

    /// True when nothing failed and the list of skips is true.
    pub fn is_green(&self) -> bool {
        self.count(Verdict::Failed) == 0 && self.count(Verdict::UnexpectedPass) == 0 && self.stale_skips.is_empty()
    }

    /// The failures in full, the totals last.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.scenarios {
            match line.verdict {
                Verdict::Failed => {
                    let (step, difference) = (line.step.as_deref(), line.difference.as_deref());
                    let _ = writeln!(text, "FAILED {}:{} {}", line.feature, line.line, line.scenario);
                    let _ = writeln!(text, "  {}: {}\n", step.unwrap_or_default(), difference.unwrap_or_default());
                }
                Verdict::UnexpectedPass => {
                    let (feature, scenario) = (&line.feature, &line.scenario);
                    let _ = writeln!(text, "PASSES although listed: {feature}:{} {scenario}", line.line);
                }
                Verdict::Passed | Verdict::Skipped | Verdict::KnownFailure => {}
            }
        }
        let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for line in &self.scenarios {
            let kind = match line.verdict {
                Verdict::Skipped => "skipped",
                Verdict::KnownFailure => "known failure",
                _ => continue,
            };
            *reasons.entry((kind, line.reason.as_deref().unwrap_or_default())).or_default() += 1;
        }
        for ((kind, reason), count) in reasons {
            let _ = writeln!(text, "{kind}: {count:4} {reason}");
        }
        for stale in &self.stale_skips {
            let _ = writeln!(text, "STALE {stale}");
        }
        let _ = writeln!(
            text,
            "{}: {} passed, {} failed, {} known failures, {} skipped, {} passes not expected",
            self.run,
            self.count(Verdict::Passed),
            self.count(Verdict::Failed),
            self.count(Verdict::KnownFailure),
            self.count(Verdict::Skipped),
            self.count(Verdict::UnexpectedPass),
        );
        text
    }
}
