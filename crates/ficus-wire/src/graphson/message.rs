//! Requests and responses in GraphSON.

use std::sync::Arc;

use ficus_model::{Shared, Value, ValueMap};
use indexmap::IndexMap;

use super::json_reader::Result;
use super::reader::Reader;
use super::writer::Writer;
use super::{Style, Version};
use crate::message::{data_of_value, expanded_length};
use crate::{Data, DecodeErrorKind, EncodeError, Limits, Request, RequestId, Response, Room};

pub(crate) fn decode_request(style: Style, body: &[u8], limits: &Limits) -> Result<Request> {
    Reader::new(style, body, limits).request().map_err(|mut error| {
        error.request_id = find_request_id(style, body, limits);
        error
    })
}

pub(crate) fn decode_response(style: Style, body: &[u8], limits: &Limits) -> Result<Response> {
    Reader::new(style, body, limits).response()
}

/// The id of a request that is malformed elsewhere, as long as its outer members can be told apart.
fn find_request_id(style: Style, body: &[u8], limits: &Limits) -> Option<RequestId> {
    let mut reader = Reader::new(style, body, limits);
    let mut first = true;
    reader.json.expect(b'{', "an object").ok()?;
    while let Some(key) = reader.json.next_key(&mut first).ok()? {
        if key == "requestId" {
            return reader.request_id().ok();
        }
        reader.json.skip_value().ok()?;
    }
    None
}

impl Reader<'_> {
    fn request(&mut self) -> Result<Request> {
        let mut id = None;
        let mut op: Option<Arc<str>> = None;
        let mut processor: Arc<str> = Arc::default();
        let mut args = IndexMap::new();
        self.members(|reader, key| {
            match &*key {
                "requestId" => id = Some(reader.request_id()?),
                "op" => op = Some(reader.json.string("an operation")?.into()),
                "processor" => processor = reader.nullable_text("a processor")?.into(),
                "args" => args = reader.arguments()?,
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })?;
        self.json.finish()?;
        let id = self.required(id, "requestId")?;
        let op = self.required(op, "op")?;
        Ok(Request { id, op, processor, args })
    }

    /// An id as a string or a typed UUID.
    fn request_id(&mut self) -> Result<RequestId> {
        match self.value()? {
            Value::Uuid(uuid) => Ok(RequestId::Uuid(uuid)),
            Value::String(text) => Ok(RequestId::from_text(&text)),
            _ => self.json.fail(DecodeErrorKind::Malformed, "a request id as a string or UUID", "another value"),
        }
    }

    fn nullable_text(&mut self, what: &'static str) -> Result<String> {
        if self.json.peek() == Some(b'n') {
            return self.json.literal("null").map(|()| String::new());
        }
        self.json.string(what).map(|text| text.into_owned())
    }

    fn arguments(&mut self) -> Result<IndexMap<Arc<str>, Value>> {
        let mut args = IndexMap::new();
        for (key, value) in self.value_map()? {
            match key {
                Value::String(name) => args.insert(name, value),
                _ => {
                    return self.json.fail(
                        DecodeErrorKind::Malformed,
                        "strings as names of arguments",
                        "another value",
                    );
                }
            };
        }
        Ok(args)
    }

    /// A map, typed or plain; null is an empty one.
    fn value_map(&mut self) -> Result<ValueMap> {
        match self.value()? {
            Value::Map(entries) => Ok(Shared::unwrap_or_clone(entries)),
            Value::Null => Ok(ValueMap::default()),
            _ => self.json.fail(DecodeErrorKind::Malformed, "a map", "another value"),
        }
    }

    fn response(&mut self) -> Result<Response> {
        let mut response = Response::new(None, 0, Data::None);
        let mut has_status = false;
        self.members(|reader, key| {
            match &*key {
                "requestId" => {
                    let is_null = reader.json.peek() == Some(b'n');
                    response.request_id = if is_null {
                        reader.json.literal("null")?;
                        None
                    } else {
                        Some(reader.request_id()?)
                    };
                }
                "status" => {
                    has_status = true;
                    reader.status(&mut response)?;
                }
                "result" => reader.result(&mut response)?,
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })?;
        self.json.finish()?;
        self.required(has_status.then_some(()), "status")?;
        Ok(response)
    }

    fn status(&mut self, response: &mut Response) -> Result<()> {
        self.members(|reader, key| {
            match &*key {
                "message" => response.message = reader.nullable_text("a message")?,
                "code" => match reader.value()? {
                    Value::Int(code @ 0..=65_535) => response.status = code as u16,
                    _ => return reader.json.fail(DecodeErrorKind::Malformed, "a status code", "another value"),
                },
                "attributes" => response.attributes = reader.value_map()?,
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })
    }

    fn result(&mut self, response: &mut Response) -> Result<()> {
        self.members(|reader, key| {
            match &*key {
                "data" => response.data = data_of_value(reader.value()?),
                "meta" => response.meta = reader.value_map()?,
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })
    }
}

const HASH_MAP: &str = "java.util.HashMap";

type EncodeResult = std::result::Result<(), EncodeError>;

pub(crate) fn encode_request(style: Style, request: &Request, out: &mut Vec<u8>) -> EncodeResult {
    let mut writer = Writer::new(style, out);
    let mut first = writer.open_object("org.apache.tinkerpop.gremlin.util.message.RequestMessage");
    writer.key("requestId", &mut first);
    match &request.id {
        // The Java reader of GraphSON 1.0 wants the type, all others take the text.
        RequestId::Uuid(uuid) if writer.has_java_classes() => writer.value(&Value::Uuid(*uuid))?,
        id => writer.string(&id.to_string()),
    }
    writer.key("op", &mut first);
    writer.string(&request.op);
    writer.key("processor", &mut first);
    writer.string(&request.processor);
    writer.key("args", &mut first);
    writer.metrics_map(|writer, first| {
        for (name, value) in &request.args {
            writer.metrics_key(name, first);
            writer.value(value)?;
        }
        Ok(())
    })?;
    writer.out.push(b'}');
    Ok(())
}

pub(crate) fn encode_response(
    style: Style,
    response: &Response,
    room: &mut dyn Room,
    out: &mut Vec<u8>,
) -> EncodeResult {
    let mut writer = Writer::new(style, out).within(room);
    let mut first = writer.open_object(HASH_MAP);
    writer.key("requestId", &mut first);
    match &response.request_id {
        Some(id) => writer.string(&id.to_string()),
        None => writer.raw("null"),
    }
    writer.key("status", &mut first);
    let mut first_of_status = writer.open_object(HASH_MAP);
    writer.key("message", &mut first_of_status);
    writer.string(&response.message);
    writer.key("code", &mut first_of_status);
    writer.raw(&response.status.to_string());
    writer.key("attributes", &mut first_of_status);
    writer.map(&response.attributes)?;
    writer.out.push(b'}');
    writer.key("result", &mut first);
    let mut first_of_result = writer.open_object(HASH_MAP);
    writer.key("data", &mut first_of_result);
    writer.data(&response.data)?;
    writer.key("meta", &mut first_of_result);
    writer.map(&response.meta)?;
    writer.raw("}}");
    Ok(())
}

impl Writer<'_> {
    fn data(&mut self, data: &Data) -> EncodeResult {
        match data {
            Data::None => {
                self.raw("null");
                Ok(())
            }
            Data::Values(values) => self.list(values.iter()),
            // GraphSON 1.0 has no traversers, so their values stand for them.
            Data::Traversers(traversers) if self.style.version == Version::V1 => self.expanded(traversers),
            Data::Traversers(traversers) => self.typed_collection("g:List", "", |writer| {
                writer.array(traversers, |writer, (value, bulk)| writer.traverser(value, *bulk))
            }),
            Data::Bulked(values) => self.expanded(values),
        }
    }

    fn expanded(&mut self, values: &[(Value, u64)]) -> EncodeResult {
        expanded_length(values)?;
        self.list(values.iter().flat_map(|(value, bulk)| std::iter::repeat_n(value, *bulk as usize)))
    }
}
