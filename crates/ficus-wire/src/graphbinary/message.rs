//! Requests and responses in GraphBinary.

use std::sync::Arc;

use ficus_model::Value;
use indexmap::IndexMap;

use super::reader::{Reader, Result};
use super::writer::Writer;
use super::{VERSION, flag};
use crate::message::{data_of_value, expanded_length};
use crate::{Data, DecodeErrorKind, EncodeError, Format, Limits, Request, RequestId, Response, Room};

pub(crate) fn decode_request(body: &[u8], limits: &Limits) -> Result<Request> {
    let mut reader = Reader::new(body, limits);
    reader.version()?;
    let id = RequestId::Uuid(reader.uuid()?);
    reader.request_after_id(&id).map_err(|mut error| {
        error.request_id = Some(id);
        error
    })
}

pub(crate) fn decode_response(body: &[u8], limits: &Limits) -> Result<Response> {
    let mut reader = Reader::new(body, limits);
    reader.version()?;
    let request_id = if reader.nullable()? { Some(RequestId::Uuid(reader.uuid()?)) } else { None };
    let status = reader.i32("a status code")?;
    let Ok(status) = u16::try_from(status) else {
        return reader.malformed("a status code", status.to_string());
    };
    let message = if reader.nullable()? { reader.text("a status message")?.to_owned() } else { String::new() };
    let attributes = reader.map()?;
    let meta = reader.map()?;
    let data = data_of_value(reader.value()?);
    reader.finish()?;
    Ok(Response { request_id, status, message, attributes, data, meta })
}

impl Reader<'_> {
    fn version(&mut self) -> Result<()> {
        match self.byte("the version")? {
            VERSION => Ok(()),
            other => self.malformed("version 0x81", format!("0x{other:02x}")),
        }
    }

    /// A value flag; true when a value follows.
    fn nullable(&mut self) -> Result<bool> {
        match self.byte("a value flag")? {
            flag::NONE => Ok(true),
            flag::NULL => Ok(false),
            other => self.malformed("value flag 0x00 or 0x01", format!("0x{other:02x}")),
        }
    }

    fn request_after_id(&mut self, id: &RequestId) -> Result<Request> {
        let op = self.shared_text("an operation")?;
        let processor = self.shared_text("a processor")?;
        let mut args: IndexMap<Arc<str>, Value> = IndexMap::new();
        for (key, value) in self.map()? {
            match key {
                Value::String(name) => args.insert(name, value),
                _ => return self.fail(DecodeErrorKind::Malformed, "a string as an argument's name", "another value"),
            };
        }
        self.finish()?;
        Ok(Request { id: id.clone(), op, processor, args })
    }
}

pub(crate) fn encode_request(request: &Request, out: &mut Vec<u8>) -> std::result::Result<(), EncodeError> {
    let uuid_bytes = uuid_bytes(&request.id)?;
    out.push(VERSION);
    out.extend_from_slice(&uuid_bytes);
    let mut writer = Writer::new(out);
    writer.text(&request.op)?;
    writer.text(&request.processor)?;
    writer.count(request.args.len())?;
    for (name, value) in &request.args {
        writer.value(&Value::String(name.clone()))?;
        writer.value(value)?;
    }
    Ok(())
}

pub(crate) fn encode_response(
    response: &Response,
    room: &mut dyn Room,
    out: &mut Vec<u8>,
) -> std::result::Result<(), EncodeError> {
    encode_head(response, out)?;
    Writer::new(out).within(room).data(&response.data)
}

/// Everything before the data.
fn encode_head(response: &Response, out: &mut Vec<u8>) -> std::result::Result<(), EncodeError> {
    out.push(VERSION);
    match &response.request_id {
        Some(id) => {
            let uuid_bytes = uuid_bytes(id)?;
            out.push(flag::NONE);
            out.extend_from_slice(&uuid_bytes);
        }
        None => out.push(flag::NULL),
    }
    out.extend_from_slice(&i32::from(response.status).to_be_bytes());
    out.push(flag::NONE);
    let mut writer = Writer::new(out);
    writer.text(&response.message)?;
    writer.map(&response.attributes)?;
    writer.map(&response.meta)
}

impl Writer<'_> {
    fn data(&mut self, data: &Data) -> std::result::Result<(), EncodeError> {
        match data {
            Data::None => {
                self.null();
                Ok(())
            }
            Data::Values(values) => {
                self.list_head(values.len())?;
                values.iter().try_for_each(|value| self.value(value))
            }
            Data::Traversers(traversers) => {
                self.list_head(traversers.len())?;
                traversers.iter().try_for_each(|(value, bulk)| self.traverser(value, *bulk))
            }
            // Written out: a bulked list is legal, but no official driver of 3.8 reads one.
            Data::Bulked(values) => {
                self.list_head(expanded_length(values)?)?;
                values.iter().try_for_each(|(value, bulk)| (0..*bulk).try_for_each(|_| self.value(value)))
            }
        }
    }
}

/// Results as the text of each value; no result is the text `null`.
pub(crate) fn encode_stringd_response(
    response: &Response,
    room: &mut dyn Room,
    out: &mut Vec<u8>,
) -> std::result::Result<(), EncodeError> {
    encode_head(response, out)?;
    let mut writer = Writer::new(out).within(room);
    // One text at a time: all of them together may be several times as much as the values.
    let text = |value: &Value| Value::String(value.to_string().into());
    match &response.data {
        Data::None => writer.value(&Value::String("null".into())),
        Data::Values(values) => {
            writer.list_head(values.len())?;
            values.iter().try_for_each(|value| writer.value(&text(value)))
        }
        Data::Traversers(values) | Data::Bulked(values) => {
            writer.list_head(expanded_length(values)?)?;
            values.iter().try_for_each(|(value, bulk)| {
                let text = text(value);
                (0..*bulk).try_for_each(|_| writer.value(&text))
            })
        }
    }
}

fn uuid_bytes(id: &RequestId) -> std::result::Result<[u8; 16], EncodeError> {
    match id {
        RequestId::Uuid(uuid) => Ok(uuid.into_bytes()),
        RequestId::Text(_) => {
            let what = "a request id that is not a UUID".into();
            Err(EncodeError::NotExpressible { what, format: Format::GraphBinary1 })
        }
    }
}
