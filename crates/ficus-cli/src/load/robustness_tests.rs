//! Readers of all forms against random bytes and against valid files with random damage: they end, with records, rejections
//! or an error, never with a panic and never with more than the input can hold.

use std::sync::Arc;

use ficus_storage::IdPrefixes;

use super::fast_table::TableReader;
use super::graphson::EdgeSides;
use super::mapping::Mapping;
use super::neo4j::{self, Neo4jOptions};
use super::record::{Batch, Consumer, Pass, ReadError, Sink, Stopped};
use super::row_chunks::Chunk;
use super::rows::{Dialect, RowStatus, Rows};
use super::table::TablePlan;
use super::{compact, graphml, graphson, gryo, neptune};
use crate::column_type::ColumnType;

/// Inputs for each form and seed; every one is damaged in a few places.
const ROUNDS: u64 = 400;

/// Splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((number ^ number >> 31) % bound.max(1) as u64) as usize
    }
}

/// Pieces that mean something to some reader.
const TOKENS: &[&str] = &[
    "\"",
    "\n",
    "\r\n",
    ",",
    "|",
    ";",
    "\t",
    "\\",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    "/>",
    "</",
    "&amp;",
    "&#x0;",
    "<![CDATA[",
    "-->",
    "\u{feff}",
    "\0",
    "é",
    "null",
    "1e999",
    "-9223372036854775808",
    "99999999999999999999",
    "{\"@type\":\"g:Int64\",\"@value\":",
    "NaN",
    ":ID",
    "~id",
    "\"@type\"",
    "\"outE\":",
    "P1DT",
    "2024-02-30",
];

fn damaged(sample: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    if random.below(20) == 0 {
        return (0..random.below(300)).map(|_| random.below(256) as u8).collect();
    }
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(12)).min(bytes.len());
        match random.below(7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..at, bytes[at..end].to_vec().repeat(1 + random.below(40))).count()),
            3 => drop(bytes.splice(at..end, TOKENS[random.below(TOKENS.len())].bytes()).count()),
            4 => drop(
                bytes.splice(at..at, TOKENS[random.below(TOKENS.len())].repeat(1 + random.below(300)).bytes()).count(),
            ),
            _ if at < bytes.len() => bytes[at] = random.below(256) as u8,
            _ => bytes.push(random.below(256) as u8),
        }
    }
    bytes
}

#[derive(Default)]
struct Counter {
    items: usize,
}

impl Consumer for Counter {
    fn take(&mut self, batch: Batch) -> Result<(), Stopped> {
        self.items += batch.items.len();
        for item in &batch.items {
            assert!(item.line > 0, "an item stands on some line");
            if let Err(reason) = &item.content {
                assert!(!reason.is_empty() && reason.len() < 4096, "a reason can be read: {} bytes", reason.len());
            }
        }
        Ok(())
    }
}

type Read<'a> = dyn FnMut(&[u8], Pass, &mut Sink<'_>) -> Result<(), ReadError> + 'a;

#[allow(clippy::print_stdout, reason = "shown if a round fails")]
fn check<S: AsRef<[u8]>>(name: &str, samples: &[S], read: &mut Read<'_>) {
    let given = std::env::var("FICUS_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or(0..ROUNDS, |seed| seed..seed + 1);
    for seed in seeds {
        println!("{name}: FICUS_TEST_SEED={seed}");
        let mut random = Random(seed);
        let bytes = damaged(samples[random.below(samples.len())].as_ref(), &mut random);
        for pass in [Pass::Vertices, Pass::Edges] {
            let mut counter = Counter::default();
            let mut sink = Sink::new(Arc::from(name), &mut counter);
            if let Err(ReadError::File { reason, .. }) = read(&bytes, pass, &mut sink) {
                assert!(!reason.is_empty());
            }
            sink.flush().expect("the counter takes everything");
            assert!(counter.items <= bytes.len() + 1, "more items than bytes");
        }
    }
}

#[test]
fn graphson_readers_survive() {
    let samples = [
        "{\"id\":{\"@type\":\"g:Int32\",\"@value\":1},\"label\":\"person\",\"outE\":{\"knows\":[{\"id\":{\"@type\":\"g:Int32\",\
         \"@value\":7},\"inV\":{\"@type\":\"g:Int32\",\"@value\":2},\"properties\":{\"weight\":{\"@type\":\"g:Double\",\"@value\":0.5}}}]},\
         \"properties\":{\"name\":[{\"id\":{\"@type\":\"g:Int64\",\"@value\":0},\"value\":\"marko\",\"properties\":{\"a\":1}}]}}\n",
        "{\"vertices\":[{\"id\":1,\"label\":\"a\",\"outE\":{\"x\":[{\"id\":3,\"inV\":2}]}},{\"id\":2}]}",
        "{\"id\":1,\"label\":\"v\",\"type\":\"vertex\",\"properties\":{\"n\":[{\"id\":0,\"value\":[1,2,{\"a\":null}]}]}}\n{\"id\":2}\n",
    ];
    let sides = EdgeSides::default();
    check("graphson", &samples, &mut |mut bytes, pass, sink| graphson::read(&mut bytes, pass, &sides, sink));
}

#[test]
fn graphml_readers_survive() {
    let samples = [
        "<?xml version=\"1.0\"?><graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\"><key id=\"labelV\" for=\"node\" \
         attr.name=\"labelV\" attr.type=\"string\"/><key id=\"age\" for=\"node\" attr.name=\"age\" attr.type=\"int\"><default>1</default></key>\
         <graph id=\"G\" edgedefault=\"directed\"><node id=\"1\"><data key=\"labelV\">person</data><data key=\"age\">29</data></node>\n\
         <node id=\"2\"/><edge id=\"7\" source=\"1\" target=\"2\"><data key=\"labelE\">knows &lt;</data></edge></graph></graphml>",
    ];
    check("graphml", &samples, &mut |mut bytes, pass, sink| graphml::read(&mut bytes, pass, ColumnType::Int, sink));
}

#[test]
fn gryo_readers_survive() {
    let sample = include_bytes!("../../../../tests/fixtures/io/tinkerpop-modern.kryo");
    let sides = EdgeSides::default();
    check("gryo", &[sample], &mut |mut bytes, pass, sink| gryo::read(&mut bytes, pass, &sides, sink));
}

#[test]
fn compact_readers_survive() {
    let samples =
        ["#ficus-graph 1\nv\ti1\tperson\np\t0\tname\tsa b\tsince\ti1\nv\tsb\tx\ne\tl7\tknows\ti1\tsb\tweight\td0.5\n"];
    check("compact", &samples, &mut |mut bytes, pass, sink| compact::read(&mut bytes, pass, sink));
}

/// Reads with the header that the bytes have; the same rows by the road of chunks.
fn read_table(
    plan: &dyn Fn(Vec<String>) -> Result<TablePlan, String>,
    bytes: &[u8],
    pass: Pass,
    sink: &mut Sink<'_>,
) -> Result<(), ReadError> {
    let dialect = Dialect::default();
    let mut rows = Rows::new(bytes, dialect);
    if !matches!(rows.next_row()?, RowStatus::Row) {
        return Ok(());
    }
    let fields = (0..rows.len()).filter_map(|index| rows.field(index));
    let Ok(header) = fields.map(|field| field.text().map(str::to_owned)).collect::<Result<Vec<_>, _>>() else {
        return Ok(());
    };
    let Ok(plan) = plan(header) else { return Ok(()) };
    let prefixes = Arc::new(IdPrefixes::new(plan.id_spaces().iter().map(|space| &***space)));
    let name = Arc::from("table");
    let reader = TableReader { plan: &plan, dialect, pass, name, directory: None, prefixes: &prefixes };
    if plan.speaks_in(pass) {
        let piece = reader.read(Chunk { bytes: rows.input().to_vec(), lines_left_out: 0 })?;
        assert!(piece.vertices.len() + piece.edges.len() + piece.rejected.len() <= 2 * bytes.len() + 2);
    }
    plan.read(&mut rows, pass, sink)
}

#[test]
fn table_readers_survive() {
    let options = || Neo4jOptions { label: None, id_kind: ColumnType::String, list_separator: ';' };
    let samples = [
        "personId:ID(Person),name,age:int,:LABEL,langs:string[],born:date\n1,\"Ann, B\",30,Person;Actor,en;de,1970-01-01\n2,,,,,\n",
        ":START_ID(Person),:END_ID{id-type:long},:TYPE,since:date,w:double\n1,20,KNOWS,1970-01-02,0.5\n1,x,KNOWS,,\n",
    ];
    check("neo4j", &samples, &mut |bytes, pass, sink| {
        read_table(&|header| neo4j::plan(header, &options()), bytes, pass, sink)
    });
    let samples = [
        "~id,~label,name:String(single),age:Int,tags:String[],a\\:b:Date\nv1,person,a;b,29,x;y,1970-01-01\nv2,,,,,\n",
        "~id,~from,~to,~label,weight:Double\ne1,v1,v2,knows,0.5\ne2,v1,,knows,\n",
    ];
    check("neptune", &samples, &mut |bytes, pass, sink| {
        read_table(&|header| neptune::plan(header, ColumnType::Long), bytes, pass, sink)
    });
    let mapping = "[[vertices]]\nfiles = [\"a\"]\nlabel = \"a\"\nid = \"id\"\nid_space = \"m\"\nproperties = { t = \"epoch-millis\" }\n\
                   [[vertices.edges]]\ncolumn = \"r\"\nlabel = \"r\"\nother_space = \"m\"\n";
    let mapping = Mapping::parse(mapping).expect("it is understood");
    check("mapping", &["id,t,r\n1,1000,\n2,-1,1\n"], &mut |bytes, pass, sink| {
        read_table(&|header| mapping.tables()[0].plan(header), bytes, pass, sink)
    });
}

#[test]
fn mapping_files_survive() {
    let sample = include_str!("../../../../docs/examples/mappings/snb.toml");
    check("mapping file", &[sample], &mut |bytes, _, _| {
        if let Ok(text) = std::str::from_utf8(bytes)
            && let Err(reason) = Mapping::parse(text)
        {
            assert!(!reason.is_empty());
        }
        Ok(())
    });
}
