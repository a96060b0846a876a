//! Regular expressions in Java's syntax, which is Gremlin's, as far as they can be matched in linear time.
//!
//! [`translate`] rewrites in one pass what Java means differently, or writes in another way: classes of characters are ASCII unless they are
//! told to be Unicode's, a line ends with any of six characters or pairs of these, `$` and `\Z` allow a last line end, `\Q…\E` quotes.
//! What would be read as something else is refused: possessive quantifiers, and a quantifier behind another. Look-around, back references and
//! atomic groups are refused by the library that matches. Known to differ: `(?i)` compares letters that are not ASCII too.

/// Characters that end a line, as members of a class.
const LINE_ENDS: &str = r"\n\r\x{85}\x{2028}\x{2029}";
/// An end of a line, if there is one, and the end of the text.
const LAST_LINE_END: &str = r"(?:(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z)";
const VERTICAL: &str = r"\n\x0B\x0C\r\x{85}\x{2028}\x{2029}";
const HORIZONTAL: &str = r"\x20\t\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";
const SPACE: &str = r"\x20\t\n\x0B\x0C\r";

/// What flags say where the translation is.
#[derive(Clone, Copy, Default)]
struct Flags {
    multi_line: bool,
    dot_all: bool,
}

/// Where a quantifier may stand.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// Anything else.
    Other,
    /// A quantifier that `?` would make reluctant.
    Quantifier,
    /// A reluctant quantifier.
    Reluctant,
}

struct Translation<'p> {
    rest: &'p str,
    result: String,
    /// Of the groups that are open, outermost first; the last of the innermost.
    flags: Vec<Flags>,
    /// Classes of characters that are open.
    classes: usize,
    before: Before,
}

/// Rewrites an expression of Java's into one of [`regex`]. Errors: why it cannot be.
pub(crate) fn translate(pattern: &str) -> Result<String, String> {
    let mut translation = Translation {
        rest: pattern,
        result: String::with_capacity(pattern.len()),
        flags: vec![Flags::default()],
        classes: 0,
        before: Before::Other,
    };
    while let Some(next) = translation.next() {
        translation.token(next)?;
    }
    Ok(translation.result)
}

impl Translation<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn token(&mut self, token: char) -> Result<(), String> {
        if self.classes == 0 && (matches!(token, '*' | '+' | '?') || (token == '{' && self.is_count())) {
            return self.quantifier(token);
        }
        self.before = Before::Other;
        let flags = self.flags.last().copied().unwrap_or_default();
        match (token, self.classes) {
            ('\\', _) => self.escape(),
            ('[', _) => self.open_class(),
            (']', 1..) => {
                self.classes -= 1;
                self.result.push(']');
            }
            ('(', 0) => self.open_group(flags),
            (')', 0) => {
                if self.flags.len() > 1 {
                    self.flags.pop();
                }
                self.result.push(')');
            }
            ('.', 0) if !flags.dot_all => self.class(true, LINE_ENDS),
            ('^', 0) if flags.multi_line => self.result.push_str("(?mR:^)"),
            ('$', 0) => self.result.push_str(if flags.multi_line { "(?mR:$)" } else { LAST_LINE_END }),
            _ => self.result.push(token),
        }
        Ok(())
    }

    /// Whether what is left goes on as a quantifier that counts.
    fn is_count(&self) -> bool {
        self.rest.split_once('}').is_some_and(|(count, _)| {
            count.starts_with(|first: char| first.is_ascii_digit())
                && count.chars().all(|part| part.is_ascii_digit() || part == ',')
        })
    }

    fn quantifier(&mut self, token: char) -> Result<(), String> {
        self.before = match (self.before, token) {
            (Before::Other, _) | (_, '{') => Before::Quantifier,
            (Before::Quantifier, '?') => Before::Reluctant,
            (Before::Quantifier, '+') => {
                return Err("possessive quantifiers, as in a*+, are not supported: leave out the last +".into());
            }
            _ => return Err(format!("there is nothing that {token} could repeat: a quantifier stands before it")),
        };
        self.result.push(token);
        if token == '{' {
            while let Some(next) = self.next() {
                self.result.push(next);
                if next == '}' {
                    break;
                }
            }
        }
        Ok(())
    }

    fn open_class(&mut self) {
        self.classes += 1;
        self.result.push('[');
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.rest = rest;
            self.result.push('^');
        }
        // The first one is a member.
        if let Some(rest) = self.rest.strip_prefix(']') {
            self.rest = rest;
            self.result.push_str(r"\]");
        }
    }

    fn open_group(&mut self, mut flags: Flags) {
        self.result.push('(');
        let set = self.rest.strip_prefix('?').and_then(|rest| {
            let end = rest.find(|letter: char| !letter.is_ascii_alphabetic() && letter != '-')?;
            matches!(rest.as_bytes()[end], b':' | b')').then(|| (&rest[..end], rest.as_bytes()[end], &rest[end + 1..]))
        });
        let Some((letters, end, rest)) = set else {
            self.flags.push(flags);
            return;
        };
        self.rest = rest;
        let mut is_on = true;
        let mut kept = String::new();
        for letter in letters.chars() {
            match letter {
                '-' => is_on = false,
                'm' => flags.multi_line = is_on,
                's' => flags.dot_all = is_on,
                _ => {}
            }
            // Letters are Unicode's anyway; what ends a line is written out.
            if !matches!(letter, 'u' | 'U' | 'd') {
                kept.push(letter);
            }
        }
        let kept = kept.strip_suffix('-').unwrap_or(&kept);
        if end == b':' {
            self.flags.push(flags);
            self.result.push('?');
            self.result.push_str(kept);
            self.result.push(':');
            return;
        }
        if let Some(innermost) = self.flags.last_mut() {
            *innermost = flags;
        }
        if kept.is_empty() {
            self.result.pop();
        } else {
            self.result.push('?');
            self.result.push_str(kept);
            self.result.push(')');
        }
    }

    /// Writes a class of these members, or of all others.
    fn class(&mut self, is_negated: bool, members: &str) {
        self.result.push_str(if is_negated { "[^" } else { "[" });
        self.result.push_str(members);
        self.result.push(']');
    }

    fn code(&mut self, code: u32) {
        self.result.push_str(&format!(r"\x{{{code:X}}}"));
    }

    fn escape(&mut self) {
        let Some(escaped) = self.next() else {
            self.result.push('\\');
            return;
        };
        match escaped {
            'd' | 'D' => self.class(escaped == 'D', "0-9"),
            'w' | 'W' => self.class(escaped == 'W', "A-Za-z0-9_"),
            's' | 'S' => self.class(escaped == 'S', SPACE),
            'v' | 'V' => self.class(escaped == 'V', VERTICAL),
            'h' | 'H' => self.class(escaped == 'H', HORIZONTAL),
            'R' if self.classes == 0 => {
                self.result.push_str(r"(?:\r\n|");
                self.class(false, VERTICAL);
                self.result.push(')');
            }
            'Z' if self.classes == 0 => self.result.push_str(LAST_LINE_END),
            'e' => self.code(0x1B),
            'c' => match self.next() {
                Some(control) => self.code(u32::from(control) ^ 64),
                None => self.result.push_str(r"\c"),
            },
            '0' => self.octal(),
            'Q' => {
                let (quoted, unquoted) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                self.rest = unquoted;
                self.result.push_str(&regex::escape(quoted));
            }
            'p' | 'P' => self.property(escaped),
            // Elsewhere these would be ends of words, or no escapes at all.
            '<' | '>' => self.result.push(escaped),
            other if !other.is_ascii() => self.result.push(other),
            other => {
                self.result.push('\\');
                self.result.push(other);
            }
        }
    }

    /// `\0` and up to three digits, 377 at most.
    fn octal(&mut self) {
        let digits = self.rest.bytes().take(3).take_while(|digit| matches!(digit, b'0'..=b'7')).count();
        let digits = if digits == 3 && self.rest.as_bytes()[0] > b'3' { 2 } else { digits };
        match u32::from_str_radix(&self.rest[..digits], 8) {
            Ok(code) => {
                self.rest = &self.rest[digits..];
                self.code(code);
            }
            Err(_) => self.result.push_str(r"\0"),
        }
    }

    /// `\p{…}` and `\P{…}`: names of POSIX are ASCII, those that begin with `java` ask Java's methods.
    fn property(&mut self, escaped: char) {
        let named = self.rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let members = named.and_then(|(name, _)| {
            Some(match name {
                "Lower" => "a-z",
                "Upper" => "A-Z",
                "ASCII" => r"\x00-\x7F",
                "Alpha" => "A-Za-z",
                "Digit" => "0-9",
                "Alnum" => "A-Za-z0-9",
                "Punct" => r"!-/:-@\[-`\{-~",
                "Graph" => "!-~",
                "Print" => r"\x20-~",
                "Blank" => r"\x20\t",
                "Cntrl" => r"\x00-\x1F\x7F",
                "XDigit" => "0-9A-Fa-f",
                "Space" => SPACE,
                "javaLowerCase" => r"\p{Lowercase}",
                "javaUpperCase" => r"\p{Uppercase}",
                "javaAlphabetic" => r"\p{Alphabetic}",
                "javaLetter" => r"\p{L}",
                "javaDigit" => r"\p{Nd}",
                "javaLetterOrDigit" => r"\p{L}\p{Nd}",
                _ => return None,
            })
        });
        match (members, named) {
            (Some(members), Some((_, rest))) => {
                self.rest = rest;
                self.class(escaped == 'P', members);
            }
            _ => {
                self.result.push('\\');
                self.result.push(escaped);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts in which the expression is found, out of these.
    fn found<'t>(pattern: &str, texts: &[&'t str]) -> Vec<&'t str> {
        let translated = translate(pattern).unwrap_or_else(|reason| panic!("{pattern}: {reason}"));
        let regex = regex::Regex::new(&translated).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        texts.iter().copied().filter(|text| regex.is_match(text)).collect()
    }

    #[test]
    fn classes_are_of_ascii() {
        let texts = ["é", "E", "a", "1", " ", "!", "_", "٣", "\t"];
        for (class, expected) in [
            (r"\p{Lower}", &["a"][..]),
            (r"\P{Lower}", &["é", "E", "1", " ", "!", "_", "٣", "\t"]),
            (r"\p{Alpha}", &["E", "a"]),
            (r"\p{Alnum}", &["E", "a", "1"]),
            (r"\p{Digit}", &["1"]),
            (r"\p{Punct}", &["!", "_"]),
            (r"\p{Graph}", &["E", "a", "1", "!", "_"]),
            (r"\p{Print}", &["E", "a", "1", " ", "!", "_"]),
            (r"\p{Blank}", &[" ", "\t"]),
            (r"\p{XDigit}", &["E", "a", "1"]),
            (r"[\p{Lower}\d]", &["a", "1"]),
            (r"[^\p{Lower}\d]", &["é", "E", " ", "!", "_", "٣", "\t"]),
            (r"\p{L}", &["é", "E", "a"]),
            (r"\p{IsAlphabetic}", &["é", "E", "a"]),
            (r"\p{javaLowerCase}", &["é", "a"]),
            (r"\h", &[" ", "\t"]),
            (r"\w", &["E", "a", "1", "_"]),
        ] {
            assert_eq!(found(&format!("^{class}$"), &texts), expected, "{class}");
        }
    }

    #[test]
    fn lines_end_with_any_of_six() {
        let texts = ["a\nb", "a\rb", "a\u{2028}b", "a b", "ab"];
        assert_eq!(found("a.b", &texts), ["a b"]);
        assert_eq!(found("(?s)a.b", &texts), ["a\nb", "a\rb", "a\u{2028}b", "a b"]);
        assert_eq!(found("(?s:a.)|(?:b.)", &["a\n", "b\n"]), ["a\n"]);
        assert_eq!(found("(?m)^b", &texts), ["a\nb", "a\rb"]);
        assert_eq!(found("a$", &["a", "a\n", "a\r\n", "a\n\n", "ab"]), ["a", "a\n", "a\r\n"]);
        assert_eq!(found(r"a\Z", &["a", "a\n", "ab"]), ["a", "a\n"]);
        assert_eq!(found(r"a\z", &["a", "a\n", "ab"]), ["a"]);
        assert_eq!(found("(?m)a$", &["a\nb", "a\rb", "ab"]), ["a\nb", "a\rb"]);
        assert_eq!(found("[.$^]", &["a", ".", "$", "^"]), [".", "$", "^"]);
        assert_eq!(found(r"^\R$", &["\r\n", "\n", "\u{B}", "a"]), ["\r\n", "\n", "\u{B}"]);
        assert_eq!(found(r"^\v$", &["\n", "\u{B}", " "]), ["\n", "\u{B}"]);
    }

    #[test]
    fn characters_are_written_as_there() {
        assert_eq!(found(r"^\0101\x41\u0041\cA\e$", &["AAA\u{1}\u{1B}"]).len(), 1);
        assert_eq!(found(r"^\0778$", &["?8", "\u{7}78"]), ["?8"]);
        assert_eq!(found(r"^\04771$", &["'71", "\u{13F}1"]), ["'71"]);
        assert_eq!(found(r"\<a\>", &["<a>", "a"]), ["<a>"]);
        assert_eq!(found(r"\é", &["é", "e"]), ["é"]);
        assert_eq!(found(r"\Qa.b\E.$", &["a.bc", "axbc"]), ["a.bc"]);
        assert_eq!(found(r"[\Q^]\E]", &["^", "]", "Q"]), ["^", "]"]);
        assert_eq!(found(r"[]a]", &["]", "a", "b"]), ["]", "a"]);
        assert_eq!(found("(?iu)é(?-u)A", &["ÉA", "ÉB"]), ["ÉA"]);
        assert_eq!(found("(?u:a)", &["a", "b"]), ["a"]);
    }

    #[test]
    fn what_would_be_something_else_is_refused() {
        for pattern in ["a*+a", "a++", "a?+", "a{1,2}+", "a**", "a+?*", "a??+"] {
            assert!(translate(pattern).is_err(), "{pattern}");
        }
        assert_eq!(found(r"^a+?b{1,2}?\+[*+]?$", &["ab+", "abb+*", "a+"]), ["ab+", "abb+*"]);
    }
}
