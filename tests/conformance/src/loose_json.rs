//! The JSON inside `m[…]`: strings are notation again, and may hold unescaped quotes within brackets
//! (`{"marko":"l["666"]"}`), so an ordinary JSON reader will not do.

use crate::notation::Term;

/// Nested maps in feature files are two or three deep.
const DEPTH_MAX: usize = 64;

/// Reads one JSON text as a term.
pub fn parse(text: &str) -> Result<Term, String> {
    let mut reader = Reader { text, at: 0 };
    let term = reader.term(0)?;
    reader.skip_space();
    if reader.at == text.len() { Ok(term) } else { Err(reader.unexpected("the end")) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.text[self.at..].trim_start().len();
    }

    fn unexpected(&self, expected: &str) -> String {
        format!("expected {expected} at {:?}", &self.text[self.at..])
    }

    fn accept(&mut self, character: char) -> bool {
        self.skip_space();
        let found = self.peek() == Some(character);
        self.at += if found { character.len_utf8() } else { 0 };
        found
    }

    fn expect(&mut self, character: char) -> Result<(), String> {
        if self.accept(character) { Ok(()) } else { Err(self.unexpected(&format!("{character:?}"))) }
    }

    fn term(&mut self, depth: usize) -> Result<Term, String> {
        if depth > DEPTH_MAX {
            return Err("nested too deep".into());
        }
        if self.accept('{') {
            let mut entries = Vec::new();
            while !self.accept('}') {
                if !entries.is_empty() {
                    self.expect(',')?;
                }
                let key = self.string()?;
                self.expect(':')?;
                entries.push((key, self.term(depth + 1)?));
            }
            return Ok(Term::Map(entries));
        }
        if self.accept('[') {
            let mut items = Vec::new();
            while !self.accept(']') {
                if !items.is_empty() {
                    self.expect(',')?;
                }
                items.push(self.term(depth + 1)?);
            }
            return Ok(Term::List(items));
        }
        if self.peek() == Some('"') {
            return self.string();
        }
        let rest = &self.text[self.at..];
        let word = &rest[..rest.find([',', '}', ']', ' ', '\n']).unwrap_or(rest.len())];
        let term = match word {
            "null" => Term::Null,
            "true" => Term::Bool(true),
            "false" => Term::Bool(false),
            _ if word.parse::<f64>().is_ok() => Term::JsonNumber(word.to_owned()),
            _ => return Err(self.unexpected("a JSON value")),
        };
        self.at += word.len();
        Ok(term)
    }

    /// A string ends at the first quote outside of brackets.
    fn string(&mut self) -> Result<Term, String> {
        self.expect('"')?;
        let (mut depth, mut content) = (0usize, String::new());
        let mut characters = self.text[self.at..].char_indices();
        while let Some((offset, character)) = characters.next() {
            match character {
                '"' if depth == 0 => {
                    self.at += offset + 1;
                    return Term::parse(&content);
                }
                '\\' => content.extend(characters.next().map(|(_, escaped)| escaped)),
                other => {
                    depth = if other == '[' { depth + 1 } else { depth.saturating_sub(usize::from(other == ']')) };
                    content.push(other);
                }
            }
        }
        Err(self.unexpected("the end of the string"))
    }
}
