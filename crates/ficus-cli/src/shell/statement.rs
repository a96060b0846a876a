//! Where one query ends: brackets and quotes decide, so that a query may run over several lines.

/// Whether a text is a whole query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// It can be sent.
    Whole,
    /// A bracket, a quote or a chain of steps is open.
    Open,
}

/// Judges a text. What is wrong in other ways counts as whole: the server explains it better.
pub fn completeness(text: &str) -> Completeness {
    let mut depth = 0i32;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(_), '\\') => {
                letters.next();
            }
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, _) => {}
        }
    }
    let trimmed = text.trim_end();
    if quote.is_some() || depth > 0 || trimmed.ends_with(['.', ',']) { Completeness::Open } else { Completeness::Whole }
}

/// Cuts a script into queries and commands with the number of their first line. A line that begins with a dot goes on
/// with the query before it; lines that begin with `//` or `#` are comments.
pub fn split_script(text: &str) -> Vec<(usize, String)> {
    let mut statements: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if !open && (trimmed.is_empty() || trimmed.starts_with("//") || trimmed.starts_with('#')) {
            continue;
        }
        match statements.last_mut() {
            Some((_, statement)) if open || trimmed.starts_with('.') => {
                statement.push('\n');
                statement.push_str(line);
            }
            _ => statements.push((index + 1, line.to_owned())),
        }
        open = statements.last().is_some_and(|(_, statement)| completeness(statement) == Completeness::Open);
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_quotes_keep_a_query_open() {
        let cases = [
            ("g.V()", Completeness::Whole),
            ("g.V().has('name', ", Completeness::Open),
            ("g.V(", Completeness::Open),
            ("g.V().", Completeness::Open),
            ("g.inject('(')", Completeness::Whole),
            ("g.inject('it\\'s (", Completeness::Open),
            ("g.inject(\"'\")", Completeness::Whole),
            ("g.V())", Completeness::Whole),
        ];
        for (text, expected) in cases {
            assert_eq!(completeness(text), expected, "{text}");
        }
    }

    #[test]
    fn scripts_are_cut_into_statements() {
        let script = "// first\n\ng.V()\n  .count()\n:source gmodern\ng.V().has('name',\n'x')\n# end\ng.E()";
        let statements = split_script(script);
        let expected = [(3, "g.V()\n  .count()"), (5, ":source gmodern"), (6, "g.V().has('name',\n'x')"), (9, "g.E()")];
        assert_eq!(statements, expected.map(|(line, text)| (line, text.to_owned())));
    }
}
