//! Writes Gryo, see [`crate::gryo`]: every vertex with its properties and with the edges of both directions.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;

use ficus_model::{Direction, Value, VertexId};
use num_bigint::BigInt;

use super::elements::{EdgeView, Elements, PropertyView};
use crate::gryo::{HEADER, STAR_VERSION, TERMINATOR, class, mark};

/// Writes all vertices.
///
/// Errors: `InvalidInput` for a value that Gryo has no class for, and those of `out`.
pub fn write(elements: &Elements, out: &mut dyn Write) -> io::Result<()> {
    let mut document = Vec::new();
    elements.each_vertex(|id| {
        document.clear();
        vertex(elements, id, &mut document)?;
        out.write_all(&document)
    })
}

fn vertex(elements: &Elements, id: VertexId, out: &mut Vec<u8>) -> io::Result<()> {
    let vertex = elements.vertex(id)?;
    let in_edges = edges_of(elements, id, Direction::In)?;
    let out_edges = edges_of(elements, id, Direction::Out)?;
    out.extend_from_slice(&HEADER);
    varint(mark::NEW, out);
    out.push(STAR_VERSION);
    // A loop is in both lists, and once in the map.
    let mut with_properties: Vec<&EdgeView> = out_edges.iter().filter(|edge| !edge.properties.is_empty()).collect();
    with_properties.extend(in_edges.iter().filter(|edge| !edge.properties.is_empty() && edge.out_id != vertex.id));
    properties_by_id(with_properties.iter().map(|edge| (edge.id.clone(), edge.properties.as_slice())), out)?;
    let with_meta = vertex.properties.iter().filter(|property| !property.meta.is_empty());
    properties_by_id(with_meta.map(|property| (property_id(property), property.meta.as_slice())), out)?;
    value(&vertex.id, out)?;
    text(&vertex.label, out);
    for (edges, direction) in [(&in_edges, Direction::In), (&out_edges, Direction::Out)] {
        let labels = grouped(edges, |edge| &edge.label);
        groups(&labels, out, |edge, out| {
            value(&edge.id, out)?;
            value(if direction == Direction::In { &edge.out_id } else { &edge.in_id }, out)
        })?;
    }
    groups(&grouped(&vertex.properties, |property| &property.key), out, |property, out| {
        value(&property_id(property), out)?;
        value(&property.value, out)
    })?;
    out.extend_from_slice(&TERMINATOR);
    Ok(())
}

fn edges_of(elements: &Elements, vertex: VertexId, direction: Direction) -> io::Result<Vec<EdgeView>> {
    let mut edges = Vec::new();
    elements.each_edge_of(vertex, direction, |edge| {
        edges.push(elements.edge(edge)?);
        Ok(())
    })?;
    Ok(edges)
}

fn property_id(property: &PropertyView) -> Value {
    Value::Long(i64::try_from(property.id).unwrap_or(i64::MAX))
}

/// Things of one name together, names in the order of their first.
fn grouped<T>(things: &[T], name: impl Fn(&T) -> &Arc<str>) -> Vec<(&Arc<str>, Vec<&T>)> {
    let mut groups: Vec<(&Arc<str>, Vec<&T>)> = Vec::new();
    for thing in things {
        match groups.iter_mut().find(|(other, _)| **other == *name(thing)) {
            Some((_, members)) => members.push(thing),
            None => groups.push((name(thing), vec![thing])),
        }
    }
    groups
}

/// Whether there is anything, and then names and counts, each thing written by `put`.
fn groups<T>(
    groups: &[(&Arc<str>, Vec<&T>)],
    out: &mut Vec<u8>,
    put: impl Fn(&T, &mut Vec<u8>) -> io::Result<()>,
) -> io::Result<()> {
    out.push(u8::from(!groups.is_empty()));
    if groups.is_empty() {
        return Ok(());
    }
    count(groups.len(), out)?;
    for (name, members) in groups {
        text(name, out);
        count(members.len(), out)?;
        members.iter().try_for_each(|member| put(member, out))?;
    }
    Ok(())
}

/// A map of maps, or null if it is empty.
fn properties_by_id<'a>(
    elements: impl Iterator<Item = (Value, &'a [(Arc<str>, Value)])> + Clone,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let number = elements.clone().count();
    if number == 0 {
        varint(mark::NULL, out);
        return Ok(());
    }
    varint(mark::NEW, out);
    length(number, out)?;
    for (id, properties) in elements {
        value(&id, out)?;
        begin(class::HASH_MAP, out);
        length(properties.len(), out)?;
        for (key, member) in properties {
            varint(class::STRING + mark::OFFSET, out);
            text(key, out);
            value(member, out)?;
        }
    }
    Ok(())
}

// numbers

fn varint(number: u32, out: &mut Vec<u8>) {
    let mut rest = number;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn int(number: i32, out: &mut Vec<u8>) {
    varint(((number << 1) ^ (number >> 31)) as u32, out);
}

/// Nine bytes at most, of which the last is whole.
fn long(number: i64, out: &mut Vec<u8>) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if rest < 0x80 {
            break;
        }
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn refuse<T>(reason: String) -> io::Result<T> {
    Err(io::Error::new(ErrorKind::InvalidInput, reason))
}

/// A number of things, as an `int`.
fn count(number: usize, out: &mut Vec<u8>) -> io::Result<()> {
    match i32::try_from(number) {
        Ok(number) => int(number, out),
        Err(_) => return refuse("Gryo counts up to 2147483647; write GraphSON instead".to_owned()),
    }
    Ok(())
}

/// A number of things, without a sign.
fn length(number: usize, out: &mut Vec<u8>) -> io::Result<()> {
    match i32::try_from(number) {
        Ok(number) => varint(number as u32, out),
        Err(_) => return refuse("Gryo counts up to 2147483647; write GraphSON instead".to_owned()),
    }
    Ok(())
}

// objects

/// A new object of a class.
fn begin(class: u32, out: &mut Vec<u8>) {
    varint(class + mark::OFFSET, out);
    if !class::is_plain(class) {
        varint(mark::NEW, out);
    }
}

/// A new object that is a text.
fn text(text: &str, out: &mut Vec<u8>) {
    varint(mark::NEW, out);
    characters(text, out);
}

fn characters(text: &str, out: &mut Vec<u8>) {
    if text.is_ascii() && (2..64).contains(&text.len()) {
        out.extend_from_slice(text.as_bytes());
        if let Some(last) = out.last_mut() {
            *last |= 0x80;
        }
        return;
    }
    let length = text.encode_utf16().count() + 1;
    if length < 1 << 6 {
        out.push(length as u8 | 0x80);
    } else {
        out.push(length as u8 & 0x3f | 0xc0);
        let mut rest = length >> 6;
        while rest >= 0x80 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }
    for unit in text.encode_utf16() {
        match unit {
            0..=0x7f => out.push(unit as u8),
            0x80..=0x7ff => out.extend([0xc0 | (unit >> 6) as u8, 0x80 | (unit & 0x3f) as u8]),
            _ => out.extend([0xe0 | (unit >> 12) as u8, 0x80 | (unit >> 6 & 0x3f) as u8, 0x80 | (unit & 0x3f) as u8]),
        }
    }
}

fn big_integer(number: &BigInt, out: &mut Vec<u8>) -> io::Result<()> {
    let bytes = number.to_signed_bytes_be();
    length(bytes.len() + 1, out)?;
    out.extend_from_slice(&bytes);
    Ok(())
}

/// An object with its class.
fn value(value: &Value, out: &mut Vec<u8>) -> io::Result<()> {
    match value {
        Value::Null => varint(mark::NULL, out),
        Value::Bool(value) => {
            begin(class::BOOLEAN, out);
            out.push(u8::from(*value));
        }
        Value::Byte(value) => {
            begin(class::BYTE, out);
            out.push(*value as u8);
        }
        Value::Short(value) => {
            begin(class::SHORT, out);
            out.extend_from_slice(&value.to_be_bytes());
        }
        Value::Int(value) => {
            begin(class::INTEGER, out);
            int(*value, out);
        }
        Value::Long(value) => {
            begin(class::LONG, out);
            long(*value, out);
        }
        Value::BigInteger(value) => {
            begin(class::BIG_INTEGER, out);
            big_integer(value, out)?;
        }
        Value::Float(value) => {
            begin(class::FLOAT, out);
            out.extend_from_slice(&value.to_be_bytes());
        }
        Value::Double(value) => {
            begin(class::DOUBLE, out);
            out.extend_from_slice(&value.to_be_bytes());
        }
        Value::BigDecimal(value) => {
            let (unscaled, scale) = value.as_bigint_and_exponent();
            let Ok(scale) = i32::try_from(scale) else {
                return refuse(format!("the scale of {value} is more than Gryo can hold; write GraphSON instead"));
            };
            begin(class::BIG_DECIMAL, out);
            big_integer(&unscaled, out)?;
            int(scale, out);
        }
        Value::Char(value) => {
            let mut units = [0; 2];
            let [unit] = value.encode_utf16(&mut units) else {
                return refuse(format!(
                    "the character {value} is none of Gryo's, which have 16 bits; write GraphSON instead"
                ));
            };
            begin(class::CHARACTER, out);
            out.extend_from_slice(&unit.to_be_bytes());
        }
        Value::String(value) => {
            varint(class::STRING + mark::OFFSET, out);
            text(value, out);
        }
        Value::Uuid(value) => {
            begin(class::UUID, out);
            out.extend_from_slice(value.as_bytes());
        }
        Value::DateTime(value) => {
            let civil = value.civil();
            let Ok(year) = i32::try_from(civil.year) else {
                return refuse(format!("the year of {value} is more than Gryo can hold; write GraphSON instead"));
            };
            begin(class::OFFSET_DATE_TIME, out);
            varint(mark::NEW, out);
            let second = civil.second_of_day;
            let fields = [civil.month, civil.day, second / 3600, second / 60 % 60, second % 60, civil.nanos];
            out.extend_from_slice(&year.to_be_bytes());
            fields.iter().for_each(|field| out.extend_from_slice(&field.to_be_bytes()));
            text(&offset_name(value.offset_seconds), out);
        }
        Value::Duration(value) => {
            let Ok(nanos) = i64::try_from(value.total_nanos()) else {
                return refuse(format!("{value} is longer than Gryo can hold; write GraphSON instead"));
            };
            begin(class::DURATION, out);
            out.extend_from_slice(&nanos.to_be_bytes());
        }
        Value::Binary(value) => {
            let Ok(count) = i32::try_from(value.len()) else {
                return refuse("Gryo holds up to 2147483647 bytes in a value; write GraphSON instead".to_owned());
            };
            begin(class::BYTE_BUFFER, out);
            out.extend_from_slice(&count.to_be_bytes());
            out.extend_from_slice(value);
        }
        Value::List(members) => collection(class::ARRAY_LIST, members.len(), members.iter(), out)?,
        Value::Set(members) => collection(class::LINKED_HASH_SET, members.len(), members.iter(), out)?,
        Value::Map(entries) => {
            let members = entries.iter().flat_map(|(key, member)| [key, member]);
            collection(class::LINKED_HASH_MAP, entries.len(), members, out)?;
        }
        other => return refuse(format!("Gryo has no property of type {}; write GraphSON instead", other.type_name())),
    }
    Ok(())
}

fn collection<'a>(
    class: u32,
    count: usize,
    members: impl Iterator<Item = &'a Value>,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    begin(class, out);
    length(count, out)?;
    for member in members {
        value(member, out)?;
    }
    Ok(())
}

/// `Z`, `+02:00` or `-05:30:15`.
fn offset_name(seconds: i32) -> String {
    if seconds == 0 {
        return "Z".to_owned();
    }
    let (sign, seconds) = (if seconds < 0 { '-' } else { '+' }, seconds.abs());
    let mut name = format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
    if seconds % 60 != 0 {
        name.push_str(&format!(":{:02}", seconds % 60));
    }
    name
}

#[cfg(test)]
mod tests {
    use bigdecimal::BigDecimal;
    use ficus_model::{Duration, OffsetDateTime, Shared};

    use super::*;
    use crate::load::kryo::KryoInput;

    /// What is written is read back the same, at the edges of every encoding.
    #[test]
    fn values_come_back() {
        let moment = |text: &str| Value::DateTime(OffsetDateTime::parse(text).unwrap());
        let big = |text: &str| text.parse::<BigInt>().unwrap();
        let mut values = vec![
            Value::Null,
            Value::Bool(true),
            Value::Byte(-128),
            Value::Short(-2),
            Value::Float(-0.5),
            Value::Double(1e300),
            Value::Char('é'),
            Value::Uuid(uuid::Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef)),
            Value::Binary(vec![1, 0, 255].into()),
            moment("2024-02-29T23:59:59.000000001+05:45"),
            moment("-0044-03-15T12:00:00Z"),
            Value::Duration(Duration::from_nanos(-1_500_000_001).unwrap()),
            Value::BigInteger(Arc::new(big("-123456789012345678901234567890"))),
            Value::BigInteger(Arc::new(big("0"))),
            Value::BigDecimal(Arc::new(BigDecimal::new(big("12345"), -3))),
        ];
        for shift in 0..64 {
            let number = 1i64 << shift;
            values.extend([number, number.wrapping_sub(1), number.wrapping_neg()].map(Value::Long));
            values.extend([number as i32, (number as i32).wrapping_neg()].map(Value::Int));
        }
        for length in [0, 1, 2, 62, 63, 64, 65, 127, 128, 8191, 8192, 70_000] {
            values.push(Value::String("a".repeat(length).into()));
            values.push(Value::String("ü€𝄞".repeat(length).into()));
        }
        let members = values.clone();
        values.push(Value::List(Shared::new(members.clone())));
        values.push(Value::Set(Shared::new(members.iter().cloned().collect())));
        values.push(Value::Map(Shared::new(members.iter().cloned().zip(members.iter().rev().cloned()).collect())));
        let mut bytes = Vec::new();
        values.iter().for_each(|member| value(member, &mut bytes).unwrap());
        let mut rest = bytes.as_slice();
        let mut input = KryoInput::new(&mut rest);
        for expected in &values {
            let found = input.value();
            assert!(matches!(&found, Ok(found) if found == expected), "{found:?} instead of {expected:?}");
        }
        assert!(matches!(input.next_document(), Ok(false)), "nothing is left");
    }

    #[test]
    fn what_gryo_cannot_hold_is_refused() {
        for unfit in [Value::Char('𝄞'), Value::Duration(Duration::from_seconds(i64::MAX)), Value::Vertex(VertexId(1))]
        {
            let refusal = value(&unfit, &mut Vec::new()).unwrap_err();
            assert_eq!(refusal.kind(), ErrorKind::InvalidInput);
            assert!(refusal.to_string().contains("GraphSON"), "{refusal}");
        }
    }
}
