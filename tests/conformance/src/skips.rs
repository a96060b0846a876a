//! `skip.toml`: the scenarios that are not counted as passed, each with its reason.
//!
//! Two kinds. A `[[skip]]` is what a TinkerPop provider may leave out (a feature the graph says it does not have); a
//! `[[known_failure]]` is a wrong answer of ours that is known, with its cause. Both are run all the same: an entry that
//! matches nothing, or whose scenario passes, is an error, so the file cannot rot.

use ficus_wire::Format;
use serde::Deserialize;

use crate::gherkin::Scenario;

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skips {
    /// What a provider may leave out.
    #[serde(default)]
    pub skip: Vec<Entry>,
    /// What is wrong and known.
    #[serde(default)]
    pub known_failure: Vec<Entry>,
}

/// One entry; all patterns given must match, and at least one must be given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Path of the feature file from the `features` folder on, `*` for any text.
    pub feature: Option<String>,
    /// Name of the scenario, `*` for any text.
    pub scenario: Option<String>,
    /// A tag, without the at sign.
    pub tag: Option<String>,
    /// Text of a step.
    pub step: Option<String>,
    /// `graphbinary` or `graphson3`, when only that is concerned.
    pub format: Option<FormatName>,
    /// `literal` or `binding`, when only that way of passing parameters is concerned.
    pub parameters: Option<Parameters>,
    /// Why.
    pub reason: String,
    /// Names of scenarios that the patterns match but the entry does not mean.
    #[serde(default)]
    pub except: Vec<String>,
}

/// A serializer by the name that options and files use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum FormatName {
    /// GraphBinary 1.0.
    GraphBinary,
    /// GraphSON 3.0.
    GraphSon3,
}

impl FormatName {
    /// The format as the codecs know it.
    pub fn format(self) -> Format {
        match self {
            FormatName::GraphBinary => Format::GraphBinary1,
            FormatName::GraphSon3 => Format::GraphSon3,
        }
    }
}

/// How parameters of a scenario reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum Parameters {
    /// Written into the text.
    Literal,
    /// As bindings beside it.
    Binding,
}

impl Entry {
    /// True when the entry speaks of this scenario in this run.
    pub fn matches(&self, feature: &str, scenario: &Scenario, format: FormatName, parameters: Parameters) -> bool {
        let fits = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|pattern| glob(pattern, text));
        self.concerns(format, parameters)
            && !self.except.contains(&scenario.name)
            && fits(&self.feature, feature)
            && fits(&self.scenario, &scenario.name)
            && self.tag.as_ref().is_none_or(|tag| scenario.tags.contains(tag))
            && self.step.as_ref().is_none_or(|pattern| scenario.steps.iter().any(|step| glob(pattern, &step.text)))
    }

    /// True when the entry speaks of this kind of run at all.
    pub fn concerns(&self, format: FormatName, parameters: Parameters) -> bool {
        self.format.is_none_or(|wanted| wanted == format) && self.parameters.is_none_or(|wanted| wanted == parameters)
    }

    /// What the entry looks for, for messages.
    pub fn describe(&self) -> String {
        let part = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} {value:?}"));
        let parts = [
            part("feature", &self.feature),
            part("scenario", &self.scenario),
            part("tag", &self.tag),
            part("step", &self.step),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Skips {
    /// Reads the file's text.
    pub fn parse(text: &str) -> Result<Skips, String> {
        let skips: Skips = toml::from_str(text).map_err(|error| error.to_string())?;
        for entry in skips.skip.iter().chain(&skips.known_failure) {
            if entry.describe().is_empty() {
                return Err(format!(
                    "the entry with reason {:?} names no feature, scenario, tag or step",
                    entry.reason
                ));
            }
            if entry.reason.trim().is_empty() {
                return Err(format!("the entry for {} has no reason", entry.describe()));
            }
        }
        Ok(skips)
    }
}

/// True when `text` is `pattern`, in which `*` stands for any text.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        let check = |pattern: &str, text: &str, expected| assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        check("abc", "abc", true);
        check("abc", "abcd", false);
        check("a*", "abc", true);
        check("*c", "abc", true);
        check("a*c*e", "abcde", true);
        check("a*c*e", "abde", false);
        check("*", "", true);
        check("aa*a", "aa", false);
    }

    #[test]
    fn an_entry_without_a_pattern_or_reason_is_refused() {
        assert!(Skips::parse("[[skip]]\nreason = \"x\"\n").is_err());
        assert!(Skips::parse("[[skip]]\ntag = \"T\"\nreason = \" \"\n").is_err());
        assert!(Skips::parse("[[skip]]\ntagg = \"T\"\nreason = \"x\"\n").is_err());
        assert_eq!(Skips::parse("[[skip]]\ntag = \"T\"\nreason = \"x\"\n").unwrap().skip.len(), 1);
    }
}
