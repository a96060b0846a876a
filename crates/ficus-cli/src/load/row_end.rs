//! Finds where a row ends without keeping it: for rows that are longer than a row may be.

use super::rows::Dialect;

/// Where in its row a byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    RowStart,
    FieldStart,
    Plain,
    Quoted,
    /// Behind a quote within quotes, which ends the field unless another follows.
    BehindQuote,
    /// In a comment, or behind what is wrong: the row goes to the end of its line.
    Rest,
}

/// Walks over the bytes of one row, piece by piece.
#[derive(Clone, Copy, Debug)]
pub struct RowEnd {
    dialect: Dialect,
    place: Place,
}

impl RowEnd {
    /// At the start of a row.
    pub fn new(dialect: Dialect) -> RowEnd {
        RowEnd { dialect, place: Place::RowStart }
    }

    /// Walks over bytes; gives how many of them belong to the row if it ends among them, its line end included.
    pub fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        let Dialect { delimiter, quote, comment } = self.dialect;
        for (at, &byte) in bytes.iter().enumerate() {
            self.place = match self.place {
                Place::Quoted if Some(byte) == quote => Place::BehindQuote,
                Place::Quoted => Place::Quoted,
                Place::BehindQuote if Some(byte) == quote => Place::Quoted,
                _ if byte == b'\n' => {
                    self.place = Place::RowStart;
                    return Some(at + 1);
                }
                Place::RowStart if Some(byte) == comment => Place::Rest,
                Place::RowStart | Place::FieldStart if Some(byte) == quote => Place::Quoted,
                Place::Rest => Place::Rest,
                _ if byte == delimiter => Place::FieldStart,
                Place::BehindQuote => Place::Rest,
                Place::RowStart | Place::FieldStart | Place::Plain => Place::Plain,
            };
        }
        None
    }

    /// Whether the row cannot end here since a quote is open.
    pub fn is_quoted(&self) -> bool {
        self.place == Place::Quoted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_behind_their_quotes() {
        let dialect = Dialect { comment: Some(b'#'), ..Dialect::default() };
        let cases = [
            ("a,b\nc", Some(4)),
            ("\"a\nb\",c\nd", Some(8)),
            ("x,\"a\"\"\n\",\nd", Some(10)),
            ("\"a\"b\"\nc\"", Some(6)),
            ("it\"s\nb\"", Some(5)),
            ("#\"\nb", Some(3)),
            ("\"a\n", None),
            ("\"a\"\r\nb", Some(5)),
        ];
        for (text, expected) in cases {
            assert_eq!(RowEnd::new(dialect).find(text.as_bytes()), expected, "{text:?}");
            let mut row = RowEnd::new(dialect);
            let byte_by_byte = text.bytes().position(|byte| row.find(&[byte]).is_some());
            assert_eq!(byte_by_byte.map(|at| at + 1), expected, "{text:?}");
        }
        let mut open = RowEnd::new(dialect);
        assert!(open.find(b"a,\"b\n").is_none() && open.is_quoted());
    }
}
