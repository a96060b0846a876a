//! GraphBinary 1.0: values as type code, value flag and bytes, big-endian throughout.
//!
//! ```text
//! value    = code:u8 flag:u8 bytes            a fully qualified value; flag 1 means null, then no bytes follow
//! list     = 09 00 count:i32 value*           flag 2: each member is followed by its bulk, an i64
//! request  = 81 id:16 op:string processor:string args:map          string, map: without code and flag
//! response = 81 flag [id:16] status:i32 flag [message:string] attributes:map meta:map data:value
//! ```

mod message;
mod reader;
mod structure;
mod temporal;
mod writer;

pub(crate) use message::{decode_request, decode_response, encode_request, encode_response, encode_stringd_response};
pub(crate) use reader::Reader;
pub(crate) use writer::Writer;

/// The version byte of messages: version 1 with the highest bit set.
const VERSION: u8 = 0x81;

/// Value flags.
mod flag {
    pub(super) const NONE: u8 = 0;
    pub(super) const NULL: u8 = 1;
    /// Lists only: every member is followed by its bulk.
    pub(super) const BULKED: u8 = 2;
}

/// Type codes.
mod code {
    pub(super) const CUSTOM: u8 = 0x00;
    pub(super) const INT: u8 = 0x01;
    pub(super) const LONG: u8 = 0x02;
    pub(super) const STRING: u8 = 0x03;
    pub(super) const DATE: u8 = 0x04;
    pub(super) const TIMESTAMP: u8 = 0x05;
    pub(super) const CLASS: u8 = 0x06;
    pub(super) const DOUBLE: u8 = 0x07;
    pub(super) const FLOAT: u8 = 0x08;
    pub(super) const LIST: u8 = 0x09;
    pub(super) const MAP: u8 = 0x0a;
    pub(super) const SET: u8 = 0x0b;
    pub(super) const UUID: u8 = 0x0c;
    pub(super) const EDGE: u8 = 0x0d;
    pub(super) const PATH: u8 = 0x0e;
    pub(super) const PROPERTY: u8 = 0x0f;
    pub(super) const GRAPH: u8 = 0x10;
    pub(super) const VERTEX: u8 = 0x11;
    pub(super) const VERTEX_PROPERTY: u8 = 0x12;
    pub(super) const BARRIER: u8 = 0x13;
    pub(super) const BINDING: u8 = 0x14;
    pub(super) const BYTECODE: u8 = 0x15;
    pub(super) const CARDINALITY: u8 = 0x16;
    pub(super) const COLUMN: u8 = 0x17;
    pub(super) const DIRECTION: u8 = 0x18;
    pub(super) const OPERATOR: u8 = 0x19;
    pub(super) const ORDER: u8 = 0x1a;
    pub(super) const PICK: u8 = 0x1b;
    pub(super) const POP: u8 = 0x1c;
    pub(super) const LAMBDA: u8 = 0x1d;
    pub(super) const P: u8 = 0x1e;
    pub(super) const SCOPE: u8 = 0x1f;
    pub(super) const T: u8 = 0x20;
    pub(super) const TRAVERSER: u8 = 0x21;
    pub(super) const BIG_DECIMAL: u8 = 0x22;
    pub(super) const BIG_INTEGER: u8 = 0x23;
    pub(super) const BYTE: u8 = 0x24;
    pub(super) const BYTE_BUFFER: u8 = 0x25;
    pub(super) const SHORT: u8 = 0x26;
    pub(super) const BOOLEAN: u8 = 0x27;
    pub(super) const TEXT_P: u8 = 0x28;
    pub(super) const TRAVERSAL_STRATEGY: u8 = 0x29;
    pub(super) const BULK_SET: u8 = 0x2a;
    pub(super) const TREE: u8 = 0x2b;
    pub(super) const METRICS: u8 = 0x2c;
    pub(super) const TRAVERSAL_METRICS: u8 = 0x2d;
    pub(super) const MERGE: u8 = 0x2e;
    pub(super) const DATE_UNIT: u8 = 0x2f;
    pub(super) const GTYPE: u8 = 0x30;
    pub(super) const CHAR: u8 = 0x80;
    pub(super) const DURATION: u8 = 0x81;
    pub(super) const INSTANT: u8 = 0x83;
    pub(super) const LOCAL_DATE: u8 = 0x84;
    pub(super) const LOCAL_DATE_TIME: u8 = 0x85;
    pub(super) const OFFSET_DATE_TIME: u8 = 0x88;
    pub(super) const ZONED_DATE_TIME: u8 = 0x8d;
    pub(super) const UNSPECIFIED_NULL: u8 = 0xfe;
}
