//! Parquet files of all types, written here, read as tables; and the same files damaged.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::record::Pass;
use super::record::testing::collect;
use super::sources::{SourceForm, SourceOptions, find};
use crate::column_type::ColumnType;

/// A file of its own, removed in the end.
struct Written(PathBuf);

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Written {
    fn path(name: &str) -> Written {
        let number = uuid::Uuid::new_v4().simple();
        Written(std::env::temp_dir().join(format!("ficus-{number}-{name}.parquet")))
    }

    /// Writes groups of rows: of each the columns, each with definition and repetition levels.
    fn new(name: &str, schema: &str, packing: Compression, groups: &[&[Stored]]) -> Written {
        let written = Written::path(name);
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let properties = Arc::new(WriterProperties::builder().set_compression(packing).build());
        let mut writer = SerializedFileWriter::new(File::create(&written.0).unwrap(), schema, properties).unwrap();
        for columns in groups {
            let mut group = writer.next_row_group().unwrap();
            for Stored { values, definitions, repetitions } in *columns {
                let levels = |levels: &'static [i16]| (!levels.is_empty()).then_some(levels);
                let (definitions, repetitions) = (levels(definitions), levels(repetitions));
                let mut column = group.next_column().unwrap().unwrap();
                match (column.untyped(), values) {
                    (ColumnWriter::BoolColumnWriter(to), Numbers::Bools(from)) => {
                        to.write_batch(from, definitions, repetitions)
                    }
                    (ColumnWriter::Int32ColumnWriter(to), Numbers::Ints(from)) => {
                        to.write_batch(from, definitions, repetitions)
                    }
                    (ColumnWriter::Int64ColumnWriter(to), Numbers::Longs(from)) => {
                        to.write_batch(from, definitions, repetitions)
                    }
                    (ColumnWriter::Int96ColumnWriter(to), Numbers::Old(from)) => {
                        to.write_batch(from, definitions, repetitions)
                    }
                    (ColumnWriter::DoubleColumnWriter(to), Numbers::Doubles(from)) => {
                        to.write_batch(from, definitions, repetitions)
                    }
                    (ColumnWriter::ByteArrayColumnWriter(to), Numbers::Bytes(from)) => {
                        let from: Vec<ByteArray> = from.iter().map(|bytes| ByteArray::from(bytes.to_vec())).collect();
                        to.write_batch(&from, definitions, repetitions)
                    }
                    (ColumnWriter::FixedLenByteArrayColumnWriter(to), Numbers::Bytes(from)) => {
                        let from: Vec<FixedLenByteArray> =
                            from.iter().map(|bytes| FixedLenByteArray::from(bytes.to_vec())).collect();
                        to.write_batch(&from, definitions, repetitions)
                    }
                    _ => panic!("values of another type than the schema says"),
                }
                .unwrap();
                column.close().unwrap();
            }
            group.close().unwrap();
        }
        writer.close().unwrap();
        written
    }

    /// All records of both passes, or why the file is refused.
    fn records(&self, mapping: Option<&str>) -> Result<Vec<String>, String> {
        let mapped = Written::path("mapping");
        if let Some(mapping) = mapping {
            let name = self.0.file_name().unwrap().to_string_lossy();
            std::fs::write(&mapped.0, mapping.replace("FILE", &name)).unwrap();
        }
        let options = SourceOptions {
            paths: vec![self.0.clone()],
            groups: Vec::new(),
            form: SourceForm::Auto,
            mapping: mapping.map(|_| mapped.0.clone()),
            id_kind: ColumnType::String,
            delimiter: b',',
            list_separator: ';',
        };
        let sources = find(&options)?.sources;
        let mut found = Vec::new();
        for pass in [Pass::Vertices, Pass::Edges] {
            found.extend(collect(|sink| sources[0].read(pass, sink, Arc::default())));
        }
        Ok(found)
    }
}

/// The values of a column that are there, and their levels.
struct Stored {
    values: Numbers,
    definitions: &'static [i16],
    repetitions: &'static [i16],
}

enum Numbers {
    Bools(&'static [bool]),
    Ints(&'static [i32]),
    Longs(&'static [i64]),
    Old(Vec<Int96>),
    Doubles(&'static [f64]),
    Bytes(&'static [&'static [u8]]),
}

fn required(values: Numbers) -> Stored {
    Stored { values, definitions: &[], repetitions: &[] }
}

/// Two vertices, the second with nothing but its id.
fn of_all_types(packing: Compression) -> Written {
    let schema = "message vertices {
        required int64 ~id; required binary ~label (UTF8); optional boolean a; optional int32 b (INTEGER(8,true));
        optional int32 c; optional int64 d (TIMESTAMP(MICROS,true)); optional int32 e (DATE); optional int64 f (DECIMAL(9,2));
        optional double g; optional binary h (UTF8); optional binary i; optional fixed_len_byte_array(16) j (UUID);
        optional group k (LIST) { repeated group list { optional int32 element; } } optional int96 l;
    }";
    let one = |values| Stored { values, definitions: &[1, 0], repetitions: &[] };
    let columns = [
        required(Numbers::Longs(&[1, 2])),
        required(Numbers::Bytes(&[b"person", b"thing"])),
        one(Numbers::Bools(&[true])),
        one(Numbers::Ints(&[-1])),
        one(Numbers::Ints(&[70_000])),
        one(Numbers::Longs(&[1_500_000])),
        one(Numbers::Ints(&[1])),
        one(Numbers::Longs(&[1234])),
        one(Numbers::Doubles(&[0.5])),
        one(Numbers::Bytes(&[b"\xc3\x9f"])),
        one(Numbers::Bytes(&[&[1, 2]])),
        one(Numbers::Bytes(&[&[7; 16]])),
        // A list of 1, null and 3; no list.
        Stored { values: Numbers::Ints(&[1, 3]), definitions: &[3, 2, 3, 0], repetitions: &[0, 1, 1, 0] },
        one(Numbers::Old(vec![Int96::from(vec![5, 0, 2_440_589])])),
    ];
    Written::new("types", schema, packing, &[&columns])
}

#[test]
fn values_keep_their_types() {
    let packings = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::GZIP(Default::default()),
        Compression::ZSTD(ZstdLevel::default()),
    ];
    for packing in packings {
        let found = of_all_types(packing).records(None).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        for part in [
            "1:0 vertex Long(1) person",
            "a=Bool(true)",
            "b=Byte(-1)",
            "c=Int(70000)",
            "d=DateTime(OffsetDateTime { epoch_seconds: 1, nanos: 500000000",
            "e=DateTime(OffsetDateTime { epoch_seconds: 86400, nanos: 0",
            "g=Double(0.5)",
            "h=String(\"ß\")",
            "k=List([Int(1), Null, Int(3)])",
            "l=DateTime(OffsetDateTime { epoch_seconds: 86400, nanos: 5",
        ] {
            assert!(found[0].contains(part), "{part} in {found:?}");
        }
        assert!(found[0].contains("f=BigDecimal(") && found[0].contains("j=Uuid("), "{found:?}");
        assert_eq!(found[1], "2:0 vertex Long(2) thing");
    }
}

#[test]
fn lists_empty_and_absent_and_groups_of_rows() {
    let schema = "message knows { required int32 src; required int32 dst; optional group tags (LIST) { repeated group list { required binary element (UTF8); } } repeated int32 n; }";
    let group = |first: &'static [i32], second: &'static [i32]| {
        [
            required(Numbers::Ints(first)),
            required(Numbers::Ints(second)),
            // Two, an empty list, none.
            Stored { values: Numbers::Bytes(&[b"a", b"b"]), definitions: &[2, 2, 1, 0], repetitions: &[0, 1, 0, 0] },
            Stored { values: Numbers::Ints(&[5]), definitions: &[0, 1, 0], repetitions: &[0, 0, 0] },
        ]
    };
    let groups = [group(&[1, 2, 3], &[2, 3, 1]), group(&[4, 5, 6], &[5, 6, 4])];
    let file = Written::new("knows", schema, Compression::SNAPPY, &[&groups[0], &groups[1]]);
    let mapping =
        "[[edges]]\nfiles = [\"FILE\"]\nlabel = \"knows\"\nfrom = \"src\"\nto = \"dst\"\nto_type = \"long\"\n";
    let found = file.records(Some(mapping)).unwrap();
    assert_eq!(found[0], "1:0 edge - knows Int(1)->Long(2) tags=List([String(\"a\"), String(\"b\")]) n=List([])");
    assert_eq!(found[1], "2:0 edge - knows Int(2)->Long(3) tags=List([]) n=List([Int(5)])");
    assert_eq!(found[2], "3:0 edge - knows Int(3)->Long(1) n=List([])");
    assert_eq!(found[3].split(' ').next(), Some("4:0"), "rows are counted through the file: {found:?}");
    assert_eq!(found.len(), 6);
    let ids_in_a_space =
        mapping.replace("to_type = \"long\"", "to_space = \"p\"\nfrom_space = \"p\"\nunlisted = \"ignore\"");
    assert_eq!(file.records(Some(&ids_in_a_space)).unwrap()[0], "1:0 edge - knows String(\"p:1\")->String(\"p:2\")");
}

#[test]
fn what_cannot_be_read_is_refused_or_rejected() {
    let schema = "message v { required int32 ~id; required binary ~label (UTF8); required group s { required int32 x; required int32 y; } }";
    let column = |values| required(Numbers::Ints(values));
    let columns = [column(&[1]), required(Numbers::Bytes(&[b"a"])), column(&[1]), column(&[2])];
    let structs = Written::new("structs", schema, Compression::UNCOMPRESSED, &[&columns]);
    let refused = structs.records(None).unwrap_err();
    assert!(refused.contains("column 's' cannot be loaded: it is made of several columns"), "{refused}");
    let mapping = "[[vertices]]\nfiles = [\"FILE\"]\nlabel = \"a\"\nid = \"~id\"\nunlisted = \"ignore\"\n";
    assert_eq!(structs.records(Some(mapping)).unwrap(), ["1:0 vertex Int(1) a"]);
    let schema = "message v { required int32 id; required binary name (UTF8); }";
    let columns = [column(&[1, 2]), required(Numbers::Bytes(&[b"\xff", b"b"]))];
    let texts = Written::new("texts", schema, Compression::UNCOMPRESSED, &[&columns]);
    let refused = texts.records(None).unwrap_err();
    assert!(refused.contains("describe the file in a --mapping"), "{refused}");
    let mapping = "[[vertices]]\nfiles = [\"FILE\"]\nlabel = \"a\"\nid = \"id\"\nproperties = { name = \"string\" }\n";
    let found = texts.records(Some(mapping)).unwrap();
    assert_eq!(found, ["1:2 reject column 'name': not UTF-8 from byte 1 on", "2:0 vertex Int(2) a name=String(\"b\")"]);
}

#[test]
fn damaged_files_are_refused_or_read_and_never_panic() {
    for packing in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
        let file = of_all_types(packing);
        let sound = std::fs::read(&file.0).unwrap();
        let first =
            std::env::var("FICUS_TEST_SEED").map_or(0, |seed| seed.parse().expect("FICUS_TEST_SEED is a number"));
        let (mut refused, mut failed) = (0, 0);
        for seed in first..first + 400u64 {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            let mut below = |limit: usize| {
                state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                (state >> 33) as usize % limit
            };
            let mut damaged = sound.clone();
            match below(4) {
                0 => damaged.truncate(below(sound.len())),
                _ => (0..=below(3)).for_each(|_| damaged[below(sound.len())] ^= 1 << below(8)),
            }
            std::fs::write(&file.0, &damaged).unwrap();
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| file.records(None)));
            match outcome.unwrap_or_else(|_| panic!("it panics; FICUS_TEST_SEED={seed} repeats it")) {
                Err(_) => refused += 1,
                Ok(found) => failed += usize::from(found.iter().any(|line| line.contains("cannot be read as Parquet"))),
            }
        }
        assert!(refused > 50 && failed > 10, "{refused} {failed}");
    }
}
