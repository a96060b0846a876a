//! The template of `format()`: text with `%{name}` holes, read once and filled for every traverser.

use std::fmt::Write;
use std::sync::Arc;

use ficus_model::{ElementResolver, Value, text::shown};
use indexmap::IndexSet;

use super::strings::made_text;
use super::{FunctionError, FunctionResult, check_text_length};

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text to copy.
    Text(Arc<str>),
    /// `%{name}`: a property of the current element, else a variable in scope.
    Variable(Arc<str>),
    /// `%{_}`: what the next `by()` yields.
    By,
}

/// A template cut into its pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

impl Template {
    /// Cuts a template. `%%{` is no hole and stays as it is, and so does a hole that is not closed on its line.
    ///
    /// Cost: linear, whatever is not closed.
    pub fn parse(template: &str) -> Template {
        let mut pieces = Vec::new();
        let (mut copied, mut searched) = (0, 0);
        // What ends a name, the next that was found.
        let mut end = 0;
        while let Some(found) = template[searched..].find("%{") {
            let start = searched + found;
            let name_start = start + 2;
            let escaped = template[..start].ends_with('%');
            if end < name_start {
                let next = template[name_start..].find(['}', '\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']);
                end = next.map_or(template.len(), |next| name_start + next);
            }
            let closed = template[end..].starts_with('}').then_some(end);
            let Some(name_end) = closed.filter(|_| !escaped) else {
                searched = name_start;
                continue;
            };
            if copied < start {
                pieces.push(Piece::Text(template[copied..start].into()));
            }
            pieces.push(match &template[name_start..name_end] {
                "_" => Piece::By,
                name => Piece::Variable(name.into()),
            });
            copied = name_end + 1;
            searched = copied;
        }
        if copied < template.len() {
            pieces.push(Piece::Text(template[copied..].into()));
        }
        Template { pieces }
    }

    /// The pieces in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The names of variables, each once, in order of first mention.
    pub fn variables(&self) -> Vec<Arc<str>> {
        let mut names: IndexSet<Arc<str>> = IndexSet::new();
        for piece in &self.pieces {
            if let Piece::Variable(name) = piece {
                names.insert(name.clone());
            }
        }
        names.into_iter().collect()
    }

    /// Fills the holes with what `fill` yields; `None` as soon as one hole yields nothing, which filters the traverser.
    pub fn fill<E: From<FunctionError>>(
        &self,
        resolver: &dyn ElementResolver,
        mut fill: impl FnMut(&Piece) -> Result<Option<Value>, E>,
    ) -> Result<Option<Value>, E> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => {
                    out.push_str(text);
                    check_text_length(out.len())?;
                }
                hole => match fill(hole)? {
                    Some(value) => append(&mut out, &value, resolver)?,
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(made_text(out)))
    }
}

/// Appends the text of a value.
fn append(out: &mut String, value: &Value, resolver: &dyn ElementResolver) -> FunctionResult<()> {
    write!(out, "{}", shown(value, resolver)).expect("writing to a string does not fail");
    check_text_length(out.len())
}

#[cfg(test)]
mod tests {
    use ficus_model::InternalIds;

    use super::super::test_values::*;
    use super::*;

    fn shape(template: &str) -> String {
        let pieces = Template::parse(template).pieces.into_iter().map(|piece| match piece {
            Piece::Text(text) => format!("'{text}'"),
            Piece::Variable(name) => format!("<{name}>"),
            Piece::By => "<by>".to_string(),
        });
        pieces.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn templates_are_cut_at_holes() {
        for (template, expected) in [
            ("Hello world", "'Hello world'"),
            ("%{name} is %{age} years old", "<name> ' is ' <age> ' years old'"),
            ("%{_} %{_}", "<by> ' ' <by>"),
            ("%%{name} %{name}", "'%%{name} ' <name>"),
            ("100% %{a}%", "'100% ' <a> '%'"),
            ("%{a", "'%{a'"),
            ("%{a\n}%{b}", "'%{a\n}' <b>"),
            ("%{a %{b}", "<a %{b>"),
            ("%{}", "<>"),
            ("", ""),
            ("é%{ü}é", "'é' <ü> 'é'"),
        ] {
            assert_eq!(shape(template), expected, "{template}");
        }
        assert_eq!(Template::parse("%{a}%{b}%{a}%{_}").variables(), [Arc::from("a"), Arc::from("b")]);
    }

    #[test]
    fn long_templates_are_cut_in_linear_time() {
        const HOLES: usize = 1_000_000;
        // Each of these would look at all that follows it, or at all before it.
        let names: String = (0..HOLES).map(|number| format!("%{{v{number}}}")).collect();
        for (template, pieces) in [("%{".repeat(HOLES), 1), ("%%{".repeat(HOLES) + "}", 1), (names, HOLES)] {
            let template = Template::parse(&template);
            assert_eq!(template.pieces().len(), pieces);
            assert_eq!(template.variables().len(), if pieces == 1 { 0 } else { HOLES });
        }
    }

    #[test]
    fn holes_are_filled_or_filter() {
        let template = Template::parse("%{name} has %{_} connections");
        let fill = |count: Option<Value>| {
            template.fill::<FunctionError>(&InternalIds, |piece| {
                Ok(if *piece == Piece::By { count.clone() } else { Some(text("marko")) })
            })
        };
        assert_eq!(fill(Some(Value::Long(3))).unwrap(), Some(text("marko has 3 connections")));
        assert_eq!(fill(None).unwrap(), None);
    }
}
