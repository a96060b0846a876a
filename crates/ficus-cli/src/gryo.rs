//! Gryo, the binary form in which TinkerPop writes graphs: what its reader ([`crate::load`]) and its writer ([`crate::export`])
//! both know. Versions 1.0 and 3.0 do not differ for graphs.
//!
//! A file is a run of vertices, each with its edges, every one a document of Kryo's object format:
//!
//! ```text
//! file        (header, object of no stated class: star, object of class 13: terminator)*
//! star        version byte 0x80 | edge properties: map by edge id, or null | meta-properties: map by id of the property, or null
//!             | id: value | label: text | edges in | edges out
//!             | boolean; if true: keys int, (key: text, count int, (id: value, value: value)*)*
//! edges       boolean; if true: labels int, (label: text, count int, (edge id: value, id of the other vertex: value)*)*
//!
//! value       class varint: 0 null, 1 a class by its name, else number + 2 | object
//! object      numbers, booleans and characters: the content. All others: 0 null, 1 an object that comes here: its content,
//!             else the number + 2 of an object that came before in this document | content
//! ```
//! Integers are zigzag varints, big-endian where their size is fixed. A text of 2 to 63 ASCII characters ends with the byte that has
//! its highest bit set; others begin with their number of UTF-16 units + 1 in a varint whose first byte has the highest bit set and
//! 6 bits, and have one to three bytes for each unit.
//! Source: the published format of Apache TinkerPop 3.8, `GryoVersion` and `StarGraphSerializer`, and of Kryo 3.

/// Before every vertex.
pub const HEADER: [u8; 16] = *b"gio\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// Behind every vertex: class and content of an object that means nothing else.
pub const TERMINATOR: [u8; 12] = [0x0f, 1, 1, 9, 0x3a, 0x15, 0x8a, 0x11, 0x70, 0x9b, 0x99, 0x96];

/// The version of a star; that of TinkerPop 4 differs.
pub const STAR_VERSION: u8 = 0x80;

/// Instead of an object: null, and an object that is here.
pub mod mark {
    pub const NULL: u32 = 0;
    pub const NEW: u32 = 1;
    /// Added to the number of an object that came before, and to that of a class.
    pub const OFFSET: u32 = 2;
}

/// Numbers of classes.
pub mod class {
    pub const INTEGER: u32 = 0;
    pub const STRING: u32 = 1;
    pub const FLOAT: u32 = 2;
    pub const BOOLEAN: u32 = 3;
    pub const BYTE: u32 = 4;
    pub const CHARACTER: u32 = 5;
    pub const SHORT: u32 = 6;
    pub const LONG: u32 = 7;
    pub const DOUBLE: u32 = 8;
    pub const ARRAY_LIST: u32 = 10;
    pub const HASH_MAP: u32 = 11;
    pub const UUID: u32 = 17;
    pub const SINGLETON_MAP: u32 = 23;
    pub const SINGLETON_LIST: u32 = 24;
    pub const BYTES: u32 = 25;
    pub const BIG_INTEGER: u32 = 34;
    pub const BIG_DECIMAL: u32 = 35;
    pub const DATE: u32 = 38;
    pub const LINKED_HASH_MAP: u32 = 47;
    pub const EMPTY_LIST: u32 = 51;
    pub const EMPTY_MAP: u32 = 52;
    pub const EMPTY_SET: u32 = 53;
    pub const SINGLETON_SET: u32 = 54;
    pub const HASH_SET: u32 = 62;
    pub const LINKED_HASH_SET: u32 = 71;
    pub const DURATION: u32 = 93;
    pub const INSTANT: u32 = 94;
    pub const LOCAL_DATE_TIME: u32 = 96;
    pub const OFFSET_DATE_TIME: u32 = 99;
    pub const LINKED_LIST: u32 = 116;
    pub const ARRAY_AS_LIST: u32 = 134;
    pub const TIMESTAMP: u32 = 161;
    pub const BYTE_BUFFER: u32 = 163;

    /// Whether objects of a class are written without a mark, each anew.
    pub fn is_plain(class: u32) -> bool {
        matches!(class, INTEGER | FLOAT | BOOLEAN | BYTE | CHARACTER | SHORT | LONG | DOUBLE)
    }
}
