//! Log records as bytes.
//!
//! ```text
//! writer u64 LE | sequence u64 LE | format u8 | time u64 LE | facts | kind u8 | body
//! ```
//! Writer, sequence and time have a fixed place because they are filled in last, when the record gets its turn. The time tells a
//! restore where to stop and nothing else: it is no part of a [`Record`], so applying cannot depend on it.

use std::sync::Arc;

use ficus_model::{Cardinality, EdgeId, Value, VertexId};

use crate::CommitTs;
use crate::mutation::{AttachBase, Body, Fact, GraphWrite, Mutation, NewProperty, OpenedBase, Record, WordRef};
use crate::root::NextIds;
use crate::schema::{put_change, read_change};
use crate::value_codec::{ByteReader, DecodeResult, put_bytes, put_number, put_value};

/// Bytes of writer and sequence.
pub(crate) const RECORD_HEADER_BYTES: usize = 16;

/// Version of everything after the header. Since 2, reads tell the directions of half-edges apart; since 3 there is a time;
/// since 4 an epoch makes the resolver forget; since 5 the words that a change of the schema brings in count as written.
const FORMAT: u8 = 5;

/// Where the time is in a record since format 3.
const TIME: std::ops::Range<usize> = RECORD_HEADER_BYTES + 1..RECORD_HEADER_BYTES + 9;

/// The oldest version that is still read.
const FORMAT_OLDEST: u8 = 1;

mod kind {
    pub(super) const WRITE: u8 = 1;
    pub(super) const CREATE_GRAPH: u8 = 2;
    pub(super) const DROP_GRAPH: u8 = 3;
    pub(super) const CLEAR_GRAPH: u8 = 4;
    pub(super) const CREATE_INDEX: u8 = 5;
    pub(super) const EPOCH: u8 = 6;
    pub(super) const ATTACH_BASE: u8 = 7;
    pub(super) const SCHEMA: u8 = 8;

    pub(super) const ADD_VERTEX: u8 = 1;
    pub(super) const ADD_EDGE: u8 = 2;
    pub(super) const SET_VERTEX_PROPERTY: u8 = 3;
    pub(super) const SET_META_PROPERTY: u8 = 4;
    pub(super) const SET_EDGE_PROPERTY: u8 = 5;
    pub(super) const REMOVE_VERTEX: u8 = 6;
    pub(super) const REMOVE_EDGE: u8 = 7;
    pub(super) const REMOVE_VERTEX_PROPERTY: u8 = 8;
    pub(super) const REMOVE_META_PROPERTY: u8 = 9;
    pub(super) const REMOVE_EDGE_PROPERTY: u8 = 10;
}

/// A record without facts, with zeroes where [`set_record_header`] puts writer, sequence and time.
pub(crate) fn encode_body(body: &Body) -> Vec<u8> {
    encode_record(body, &[])
}

/// As [`encode_body`], with facts.
pub(crate) fn encode_record(body: &Body, facts: &[Fact]) -> Vec<u8> {
    let mut out = vec![0; RECORD_HEADER_BYTES];
    out.push(FORMAT);
    out.extend_from_slice(&[0; 8]);
    put_number(facts.len() as u64, &mut out);
    for (name, content) in facts {
        put_bytes(name.as_bytes(), &mut out);
        put_bytes(content, &mut out);
    }
    match body {
        Body::Write(write) => {
            out.push(kind::WRITE);
            put_write(write, &mut out);
        }
        Body::CreateGraph { name, tablet_bits } => {
            out.push(kind::CREATE_GRAPH);
            put_bytes(name.as_bytes(), &mut out);
            out.push(*tablet_bits);
        }
        Body::DropGraph { graph } => {
            out.push(kind::DROP_GRAPH);
            put_number(u64::from(*graph), &mut out);
        }
        Body::ClearGraph { graph } => {
            out.push(kind::CLEAR_GRAPH);
            put_number(u64::from(*graph), &mut out);
        }
        Body::CreateIndex { graph, label, key } => {
            out.push(kind::CREATE_INDEX);
            put_number(u64::from(*graph), &mut out);
            out.push(u8::from(label.is_some()));
            if let Some(label) = label {
                put_bytes(label.as_bytes(), &mut out);
            }
            put_bytes(key.as_bytes(), &mut out);
        }
        Body::AttachBase(attach) => {
            out.push(kind::ATTACH_BASE);
            put_number(u64::from(attach.graph), &mut out);
            for texts in [&attach.files, &attach.labels, &attach.keys] {
                put_number(texts.len() as u64, &mut out);
                texts.iter().for_each(|text| put_bytes(text.as_bytes(), &mut out));
            }
            let NextIds { vertex, edge_sequence, property, user_id } = attach.next_ids;
            [vertex, edge_sequence, property, user_id].iter().for_each(|next| put_number(*next, &mut out));
        }
        Body::Schema { graph, change, tells_words: _ } => {
            out.push(kind::SCHEMA);
            put_number(u64::from(*graph), &mut out);
            put_change(change, &mut out);
        }
        Body::Epoch { epoch, forgets: _ } => {
            out.push(kind::EPOCH);
            put_number(*epoch, &mut out);
        }
    }
    out
}

/// Fills in who wrote the record, its number, and when it was written, in milliseconds since 1970.
pub(crate) fn set_record_header(record: &mut [u8], writer: u64, sequence: u64, time_ms: u64) {
    record[..8].copy_from_slice(&writer.to_le_bytes());
    record[8..16].copy_from_slice(&sequence.to_le_bytes());
    record[TIME].copy_from_slice(&time_ms.to_le_bytes());
}

/// When a record was written, in milliseconds since 1970; `None` if it is of a format without times.
pub(crate) fn record_time_ms(record: &[u8]) -> Option<u64> {
    let format = *record.get(RECORD_HEADER_BYTES)?;
    let time = record.get(TIME).filter(|_| format >= 3)?;
    time.try_into().ok().map(u64::from_le_bytes)
}

/// The files that a record puts under a graph; none for most records, whose changes are not read.
pub(crate) fn attached_files(record: &[u8]) -> DecodeResult<Vec<Arc<str>>> {
    let mut reader = ByteReader::new(record);
    read_header(&mut reader)?;
    if reader.byte()? != kind::ATTACH_BASE {
        return Ok(Vec::new());
    }
    match decode_record(record)?.body {
        Body::AttachBase(attach) => Ok(attach.files),
        _ => Ok(Vec::new()),
    }
}

/// What records begin with: writer, sequence, format and facts.
type RecordHeader = (u64, u64, u8, Vec<(Arc<str>, Arc<[u8]>)>);

fn read_header(reader: &mut ByteReader<'_>) -> DecodeResult<RecordHeader> {
    let writer = reader.fixed()?;
    let sequence = reader.fixed()?;
    let format = reader.byte()?;
    if !(FORMAT_OLDEST..=FORMAT).contains(&format) {
        return Err("a record of a later format; use the release that wrote it");
    }
    if format >= 3 {
        reader.fixed()?;
    }
    let mut facts = Vec::new();
    for _ in 0..reader.count()? {
        facts.push((reader.text()?.into(), reader.bytes()?.into()));
    }
    Ok((writer, sequence, format, facts))
}

/// Reads a record back.
pub(crate) fn decode_record(bytes: &[u8]) -> DecodeResult<Record> {
    let mut reader = ByteReader::new(bytes);
    let (writer, sequence, format, facts) = read_header(&mut reader)?;
    let body = match reader.byte()? {
        kind::WRITE => Body::Write(read_write(format, &mut reader)?),
        kind::CREATE_GRAPH => Body::CreateGraph { name: reader.text()?.into(), tablet_bits: reader.byte()? },
        kind::DROP_GRAPH => Body::DropGraph { graph: reader.narrow()? },
        kind::CLEAR_GRAPH => Body::ClearGraph { graph: reader.narrow()? },
        kind::CREATE_INDEX => {
            let graph = reader.narrow()?;
            let label = match reader.byte()? {
                0 => None,
                _ => Some(reader.text()?.into()),
            };
            Body::CreateIndex { graph, label, key: reader.text()?.into() }
        }
        kind::ATTACH_BASE => {
            let graph = reader.narrow()?;
            let mut texts = || -> DecodeResult<Vec<Arc<str>>> {
                (0..reader.count()?).map(|_| Ok(Arc::from(reader.text()?))).collect()
            };
            let (files, labels, keys) = (texts()?, texts()?, texts()?);
            let next_ids = NextIds {
                vertex: reader.number()?,
                edge_sequence: reader.number()?,
                property: reader.number()?,
                user_id: reader.number()?,
            };
            Body::AttachBase(AttachBase { graph, files, labels, keys, next_ids, opened: OpenedBase::default() })
        }
        kind::SCHEMA => {
            Body::Schema { graph: reader.narrow()?, change: read_change(&mut reader)?, tells_words: format >= 5 }
        }
        kind::EPOCH => Body::Epoch { epoch: reader.number()?, forgets: format >= 4 },
        _ => return Err("a record of an unknown kind"),
    };
    reader.finish()?;
    Ok(Record { writer, sequence, facts, body })
}

fn put_write(write: &GraphWrite, out: &mut Vec<u8>) {
    put_number(u64::from(write.graph), out);
    // 0 for none; a snapshot's timestamp never is the largest number.
    put_number(write.snapshot_ts.map_or(0, |ts| ts.0 + 1), out);
    put_number(write.reads.len() as u64, out);
    for read in &write.reads {
        out.extend_from_slice(&read.to_le_bytes());
    }
    put_number(write.next_user_id, out);
    put_number(write.words.len() as u64, out);
    for word in &write.words {
        put_bytes(word.as_bytes(), out);
    }
    put_number(write.mutations.len() as u64, out);
    for mutation in &write.mutations {
        put_mutation(mutation, out);
    }
}

fn put_properties(properties: &[(WordRef, Value)], out: &mut Vec<u8>) {
    put_number(properties.len() as u64, out);
    for (key, value) in properties {
        put_number(u64::from(*key), out);
        put_value(value, out);
    }
}

fn put_mutation(mutation: &Mutation, out: &mut Vec<u8>) {
    match mutation {
        Mutation::AddVertex { vertex, label, id, properties } => {
            put_numbers(kind::ADD_VERTEX, &[vertex.0, u64::from(*label)], out);
            put_value(id, out);
            put_number(properties.len() as u64, out);
            for property in properties {
                put_number(property.id, out);
                put_number(u64::from(property.key), out);
                put_value(&property.value, out);
                put_properties(&property.meta, out);
            }
        }
        Mutation::AddEdge { edge, label, out: source, in_, id, properties } => {
            put_numbers(kind::ADD_EDGE, &[edge.0, u64::from(*label), source.0, in_.0], out);
            put_value(id, out);
            put_properties(properties, out);
        }
        Mutation::SetVertexProperty { vertex, property, key, value, cardinality } => {
            put_numbers(kind::SET_VERTEX_PROPERTY, &[vertex.0, *property, u64::from(*key)], out);
            out.push(match cardinality {
                Cardinality::Single => 0,
                Cardinality::List => 1,
                Cardinality::Set => 2,
            });
            put_value(value, out);
        }
        Mutation::SetMetaProperty { vertex, property, key, value } => {
            put_numbers(kind::SET_META_PROPERTY, &[vertex.0, *property, u64::from(*key)], out);
            put_value(value, out);
        }
        Mutation::SetEdgeProperty { edge, key, value } => {
            put_numbers(kind::SET_EDGE_PROPERTY, &[edge.0, u64::from(*key)], out);
            put_value(value, out);
        }
        Mutation::RemoveVertex { vertex } => put_numbers(kind::REMOVE_VERTEX, &[vertex.0], out),
        Mutation::RemoveEdge { edge } => put_numbers(kind::REMOVE_EDGE, &[edge.0], out),
        Mutation::RemoveVertexProperty { vertex, property } => {
            put_numbers(kind::REMOVE_VERTEX_PROPERTY, &[vertex.0, *property], out);
        }
        Mutation::RemoveMetaProperty { vertex, property, key } => {
            put_numbers(kind::REMOVE_META_PROPERTY, &[vertex.0, *property, u64::from(*key)], out);
        }
        Mutation::RemoveEdgeProperty { edge, key } => {
            put_numbers(kind::REMOVE_EDGE_PROPERTY, &[edge.0, u64::from(*key)], out);
        }
    }
}

fn put_numbers(kind: u8, numbers: &[u64], out: &mut Vec<u8>) {
    out.push(kind);
    numbers.iter().for_each(|number| put_number(*number, out));
}

/// Reads a write; every word reference in it is checked against its list.
fn read_write(format: u8, reader: &mut ByteReader<'_>) -> DecodeResult<GraphWrite> {
    let graph = reader.narrow()?;
    let snapshot_ts = reader.number()?.checked_sub(1).map(CommitTs);
    let reads = (0..reader.count()?).map(|_| reader.fixed()).collect::<DecodeResult<Vec<u64>>>()?;
    let next_user_id = reader.number()?;
    let mut words = Vec::new();
    for _ in 0..reader.count()? {
        words.push(reader.text()?.into());
    }
    let word_count = words.len();
    let count = reader.count()?;
    let mut mutations = Vec::with_capacity(count);
    for _ in 0..count {
        mutations.push(read_mutation(reader, word_count)?);
    }
    let has_old_fingerprints = format < 2;
    Ok(GraphWrite { graph, snapshot_ts, has_old_fingerprints, reads, next_user_id, words, mutations })
}

fn read_word(reader: &mut ByteReader<'_>, word_count: usize) -> DecodeResult<WordRef> {
    let word: WordRef = reader.narrow()?;
    if (word as usize) < word_count { Ok(word) } else { Err("a change names a word that its record does not have") }
}

fn read_properties(reader: &mut ByteReader<'_>, word_count: usize) -> DecodeResult<Vec<(WordRef, Value)>> {
    (0..reader.count()?).map(|_| Ok((read_word(reader, word_count)?, reader.value()?))).collect()
}

fn read_mutation(reader: &mut ByteReader<'_>, word_count: usize) -> DecodeResult<Mutation> {
    Ok(match reader.byte()? {
        kind::ADD_VERTEX => {
            let vertex = VertexId(reader.number()?);
            let label = read_word(reader, word_count)?;
            let id = reader.value()?;
            let mut properties = Vec::new();
            for _ in 0..reader.count()? {
                let id = reader.number()?;
                let key = read_word(reader, word_count)?;
                let value = reader.value()?;
                properties.push(NewProperty { id, key, value, meta: read_properties(reader, word_count)? });
            }
            Mutation::AddVertex { vertex, label, id, properties }
        }
        kind::ADD_EDGE => Mutation::AddEdge {
            edge: EdgeId(reader.number()?),
            label: read_word(reader, word_count)?,
            out: VertexId(reader.number()?),
            in_: VertexId(reader.number()?),
            id: reader.value()?,
            properties: read_properties(reader, word_count)?,
        },
        kind::SET_VERTEX_PROPERTY => Mutation::SetVertexProperty {
            vertex: VertexId(reader.number()?),
            property: reader.number()?,
            key: read_word(reader, word_count)?,
            cardinality: match reader.byte()? {
                0 => Cardinality::Single,
                1 => Cardinality::List,
                2 => Cardinality::Set,
                _ => return Err("an unknown cardinality"),
            },
            value: reader.value()?,
        },
        kind::SET_META_PROPERTY => Mutation::SetMetaProperty {
            vertex: VertexId(reader.number()?),
            property: reader.number()?,
            key: read_word(reader, word_count)?,
            value: reader.value()?,
        },
        kind::SET_EDGE_PROPERTY => Mutation::SetEdgeProperty {
            edge: EdgeId(reader.number()?),
            key: read_word(reader, word_count)?,
            value: reader.value()?,
        },
        kind::REMOVE_VERTEX => Mutation::RemoveVertex { vertex: VertexId(reader.number()?) },
        kind::REMOVE_EDGE => Mutation::RemoveEdge { edge: EdgeId(reader.number()?) },
        kind::REMOVE_VERTEX_PROPERTY => {
            Mutation::RemoveVertexProperty { vertex: VertexId(reader.number()?), property: reader.number()? }
        }
        kind::REMOVE_META_PROPERTY => Mutation::RemoveMetaProperty {
            vertex: VertexId(reader.number()?),
            property: reader.number()?,
            key: read_word(reader, word_count)?,
        },
        kind::REMOVE_EDGE_PROPERTY => {
            Mutation::RemoveEdgeProperty { edge: EdgeId(reader.number()?), key: read_word(reader, word_count)? }
        }
        _ => return Err("a change of an unknown kind"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value_codec::tests::any_value;

    fn any_mutation() -> impl Strategy<Value = Mutation> {
        let word = 0u32..2;
        let n = any::<u64>();
        let properties = || prop::collection::vec((0u32..2, any_value()), 0..3);
        let cardinality = prop::sample::select(Cardinality::ALL);
        prop_oneof![
            (n, word.clone(), any_value(), prop::collection::vec((n, word.clone(), any_value(), properties()), 0..3))
                .prop_map(|(vertex, label, id, properties)| Mutation::AddVertex {
                    vertex: VertexId(vertex),
                    label,
                    id,
                    properties: properties
                        .into_iter()
                        .map(|(id, key, value, meta)| NewProperty { id, key, value, meta })
                        .collect(),
                }),
            (n, word.clone(), n, n, any_value(), properties()).prop_map(|(edge, label, out, in_, id, properties)| {
                let (out, in_) = (VertexId(out), VertexId(in_));
                Mutation::AddEdge { edge: EdgeId(edge), label, out, in_, id, properties }
            }),
            (n, n, word.clone(), any_value(), cardinality).prop_map(|(vertex, property, key, value, cardinality)| {
                Mutation::SetVertexProperty { vertex: VertexId(vertex), property, key, value, cardinality }
            }),
            (n, n, word.clone(), any_value()).prop_map(|(vertex, property, key, value)| Mutation::SetMetaProperty {
                vertex: VertexId(vertex),
                property,
                key,
                value
            }),
            (n, word.clone(), any_value()).prop_map(|(edge, key, value)| Mutation::SetEdgeProperty {
                edge: EdgeId(edge),
                key,
                value
            }),
            n.prop_map(|vertex| Mutation::RemoveVertex { vertex: VertexId(vertex) }),
            n.prop_map(|edge| Mutation::RemoveEdge { edge: EdgeId(edge) }),
            (n, n).prop_map(|(vertex, property)| Mutation::RemoveVertexProperty { vertex: VertexId(vertex), property }),
            (n, n, word.clone()).prop_map(|(vertex, property, key)| Mutation::RemoveMetaProperty {
                vertex: VertexId(vertex),
                property,
                key
            }),
            (n, word).prop_map(|(edge, key)| Mutation::RemoveEdgeProperty { edge: EdgeId(edge), key }),
        ]
    }

    fn any_body() -> impl Strategy<Value = Body> {
        prop_oneof![
            8 => (any::<u32>(), prop::option::of(0..u64::MAX), prop::collection::vec(any::<u64>(), 0..3), any::<u64>(),
             prop::collection::vec(any_mutation(), 0..5)).prop_map(|(graph, ts, reads, next_user_id, mutations)| {
                let words = vec!["knows".into(), "".into()];
                let snapshot_ts = ts.map(CommitTs);
                let has_old_fingerprints = false;
                Body::Write(GraphWrite {
                    graph,
                    snapshot_ts,
                    has_old_fingerprints,
                    reads,
                    next_user_id,
                    words,
                    mutations,
                })
            }),
            1 => (".{0,5}", any::<u8>())
                .prop_map(|(name, tablet_bits)| Body::CreateGraph { name: name.into(), tablet_bits }),
            1 => any::<u32>().prop_map(|graph| Body::DropGraph { graph }),
            1 => any::<u32>().prop_map(|graph| Body::ClearGraph { graph }),
            1 => (any::<u32>(), prop::option::of(".{0,5}"), ".{0,5}").prop_map(|(graph, label, key)| Body::CreateIndex {
                graph,
                label: label.map(Into::into),
                key: key.into()
            }),
            1 => any::<u32>().prop_map(|graph| Body::Schema {
                graph,
                change: crate::schema::SchemaChange::CancelTask { task: 7 },
                tells_words: true,
            }),
            1 => any::<u64>().prop_map(|epoch| Body::Epoch { epoch, forgets: true }),
            1 => (any::<u32>(), prop::collection::vec(".{0,5}", 0..4), any::<[u64; 4]>()).prop_map(|(graph, texts, next)| {
                let texts: Vec<Arc<str>> = texts.into_iter().map(Into::into).collect();
                let [vertex, edge_sequence, property, user_id] = next;
                let next_ids = NextIds { vertex, edge_sequence, property, user_id };
                let (files, labels, keys) = (texts.clone(), texts[..texts.len() / 2].to_vec(), texts);
                Body::AttachBase(AttachBase { graph, files, labels, keys, next_ids, opened: OpenedBase::default() })
            }),
        ]
    }

    proptest! {
        #[test]
        fn records_come_back_as_they_were(body in any_body(), writer in any::<u64>(), sequence in any::<u64>(), time_ms in any::<u64>()) {
            let facts: Vec<(Arc<str>, Arc<[u8]>)> = vec![("offset".into(), [1u8, 2].as_slice().into())];
            let mut bytes = encode_record(&body, &facts);
            set_record_header(&mut bytes, writer, sequence, time_ms);
            prop_assert_eq!(record_time_ms(&bytes), Some(time_ms));
            prop_assert_eq!(decode_record(&bytes), Ok(Record { writer, sequence, facts, body }));
        }

        /// Cutting or changing a record gives a record or an error, never anything else.
        #[test]
        fn damaged_records_do_no_harm(body in any_body(), place in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = encode_body(&body);
            let place = place.index(bytes.len());
            let _ = decode_record(&bytes[..place]);
            bytes[place] = byte;
            let _ = decode_record(&bytes);
        }
    }

    #[test]
    fn words_of_the_schema_of_earlier_releases_were_not_told() {
        let body = |tells_words| {
            let change = crate::schema::SchemaChange::CancelTask { task: 7 };
            Body::Schema { graph: 1, change, tells_words }
        };
        let mut bytes = encode_body(&body(true));
        assert_eq!(decode_record(&bytes).map(|record| record.body), Ok(body(true)));
        bytes[RECORD_HEADER_BYTES] = 4;
        assert_eq!(decode_record(&bytes).map(|record| record.body), Ok(body(false)));
    }

    #[test]
    fn epochs_of_earlier_releases_leave_the_resolver_as_it_is() {
        let mut bytes = encode_body(&Body::Epoch { epoch: 3, forgets: true });
        assert_eq!(decode_record(&bytes).map(|record| record.body), Ok(Body::Epoch { epoch: 3, forgets: true }));
        bytes[RECORD_HEADER_BYTES] = 3;
        assert_eq!(decode_record(&bytes).map(|record| record.body), Ok(Body::Epoch { epoch: 3, forgets: false }));
    }
}
