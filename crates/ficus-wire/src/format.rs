//! The formats a message can be in, and the mime types that name them.
//!
//! A mime type is the first thing a client says: as the prefix of a binary WebSocket frame, or as `Content-Type` and
//! `Accept` of an HTTP request. Matching ignores case, spaces and parameters other than `types`.

/// How values and messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// GraphSON 1.0 with Java class names beside the values.
    GraphSon1,
    /// GraphSON 1.0 as plain JSON.
    GraphSon1Untyped,
    /// GraphSON 2.0 with `@type` and `@value`.
    GraphSon2,
    /// GraphSON 2.0 as plain JSON.
    GraphSon2Untyped,
    /// GraphSON 3.0 with `@type` and `@value`; what `application/json` stands for.
    GraphSon3,
    /// GraphSON 3.0 as plain JSON.
    GraphSon3Untyped,
    /// GraphBinary 1.0.
    GraphBinary1,
    /// GraphBinary 1.0 whose results are the text of each value.
    GraphBinary1Stringd,
}

impl Format {
    /// Every format, in declaration order.
    pub const ALL: &'static [Format] = &[
        Format::GraphSon1,
        Format::GraphSon1Untyped,
        Format::GraphSon2,
        Format::GraphSon2Untyped,
        Format::GraphSon3,
        Format::GraphSon3Untyped,
        Format::GraphBinary1,
        Format::GraphBinary1Stringd,
    ];

    /// The format that `mime` names; `None` when we do not speak it.
    ///
    /// `application/json` is GraphSON 3.0. A parameter `types=false` chooses the untyped variant of a GraphSON version;
    /// other parameters (`charset`, `q`) are of no consequence here.
    pub fn from_mime(mime: &str) -> Option<Format> {
        let mut parts = mime.split(';').map(str::trim);
        let essence = parts.next()?.to_ascii_lowercase();
        let untyped = parts.any(|parameter| parameter.eq_ignore_ascii_case("types=false"));
        let (typed, plain) = match essence.as_str() {
            "application/json" | "application/vnd.gremlin-v3.0+json" => (Format::GraphSon3, Format::GraphSon3Untyped),
            "application/vnd.gremlin-v2.0+json" => (Format::GraphSon2, Format::GraphSon2Untyped),
            "application/vnd.gremlin-v1.0+json" => (Format::GraphSon1, Format::GraphSon1Untyped),
            "application/vnd.graphbinary-v1.0" => (Format::GraphBinary1, Format::GraphBinary1),
            "application/vnd.graphbinary-v1.0-stringd" => (Format::GraphBinary1Stringd, Format::GraphBinary1Stringd),
            _ => return None,
        };
        Some(if untyped { plain } else { typed })
    }

    /// The mime type that names this format.
    pub const fn mime(self) -> &'static str {
        match self {
            Format::GraphSon1 => "application/vnd.gremlin-v1.0+json",
            Format::GraphSon1Untyped => "application/vnd.gremlin-v1.0+json;types=false",
            Format::GraphSon2 => "application/vnd.gremlin-v2.0+json",
            Format::GraphSon2Untyped => "application/vnd.gremlin-v2.0+json;types=false",
            Format::GraphSon3 => "application/vnd.gremlin-v3.0+json",
            Format::GraphSon3Untyped => "application/vnd.gremlin-v3.0+json;types=false",
            Format::GraphBinary1 => "application/vnd.graphbinary-v1.0",
            Format::GraphBinary1Stringd => "application/vnd.graphbinary-v1.0-stringd",
        }
    }

    /// True for the formats whose bytes are UTF-8 text.
    pub const fn is_json(self) -> bool {
        !matches!(self, Format::GraphBinary1 | Format::GraphBinary1Stringd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_own_mime() {
        for &format in Format::ALL {
            assert_eq!(Format::from_mime(format.mime()), Some(format));
        }
    }

    #[test]
    fn mime_types_are_read_leniently() {
        let check = |mime: &str, expected| assert_eq!(Format::from_mime(mime), expected, "{mime}");
        check("application/json", Some(Format::GraphSon3));
        check("Application/JSON; charset=utf-8", Some(Format::GraphSon3));
        check("application/json;types=false", Some(Format::GraphSon3Untyped));
        check("application/vnd.gremlin-v2.0+json; charset=utf-8; types=FALSE", Some(Format::GraphSon2Untyped));
        check("application/vnd.gremlin-v1.0+json;types=true", Some(Format::GraphSon1));
        check("application/vnd.graphbinary-v4.0", None);
        check("text/plain", None);
        check("", None);
    }
}
