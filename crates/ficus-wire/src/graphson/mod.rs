//! GraphSON 1.0, 2.0 and 3.0: values as JSON, with or without their types.
//!
//! ```text
//! 3.0           {"@type":"g:Map","@value":["a",{"@type":"g:Int64","@value":1}]}
//! 2.0           {"a":{"@type":"g:Int64","@value":1}}
//! 1.0           {"@class":"java.util.LinkedHashMap","a":["java.lang.Long",1]}
//! any, untyped  {"a":1}
//! ```
//!
//! Reading takes all of these at once: what has a type is read by it, whatever version the message claims. Only the
//! Java types of 1.0 are looked for in that version alone, since a list may begin with a class name by chance.

mod adjacency;
mod element_writer;
mod json_reader;
mod json_writer;
mod message;
mod reader;
mod structure;
mod typed;
mod writer;

pub(crate) use message::{decode_request, decode_response, encode_request, encode_response};
pub(crate) use reader::Reader;
pub(crate) use writer::Writer;

use crate::Format;

/// The version of GraphSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    V1,
    V2,
    V3,
}

/// Version and whether types are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) version: Version,
    pub(crate) typed: bool,
}

impl Style {
    /// The style of a JSON format; GraphBinary has none and is taken as GraphSON 3.0.
    pub(crate) fn of(format: Format) -> Style {
        let (version, typed) = match format {
            Format::GraphSon1 => (Version::V1, true),
            Format::GraphSon1Untyped => (Version::V1, false),
            Format::GraphSon2 => (Version::V2, true),
            Format::GraphSon2Untyped => (Version::V2, false),
            Format::GraphSon3 | Format::GraphBinary1 | Format::GraphBinary1Stringd => (Version::V3, true),
            Format::GraphSon3Untyped => (Version::V3, false),
        };
        Style { version, typed }
    }

    pub(crate) fn format(self) -> Format {
        match (self.version, self.typed) {
            (Version::V1, true) => Format::GraphSon1,
            (Version::V1, false) => Format::GraphSon1Untyped,
            (Version::V2, true) => Format::GraphSon2,
            (Version::V2, false) => Format::GraphSon2Untyped,
            (Version::V3, true) => Format::GraphSon3,
            (Version::V3, false) => Format::GraphSon3Untyped,
        }
    }
}
