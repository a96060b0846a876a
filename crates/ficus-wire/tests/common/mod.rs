//! Values by name, the same that `fixtures/official.tsv` holds as the reference serializers wrote them.

#![allow(dead_code)] // Each test binary uses its own part.

use std::str::FromStr;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use ficus_model::*;
use num_bigint::BigInt;
use uuid::Uuid;

pub const ID: &str = "41d2e28a-20a4-4ab0-b379-d810dede3786";

pub fn string(text: &str) -> Value {
    Value::String(text.into())
}

pub fn list(values: impl IntoIterator<Item = Value>) -> Value {
    Value::List(Shared::new(values.into_iter().collect()))
}

pub fn set(values: impl IntoIterator<Item = Value>) -> Value {
    Value::Set(Shared::new(values.into_iter().collect()))
}

pub fn map(entries: impl IntoIterator<Item = (Value, Value)>) -> Value {
    Value::Map(Shared::new(entries.into_iter().collect()))
}

pub fn datetime(text: &str) -> Value {
    Value::DateTime(OffsetDateTime::parse(text).unwrap())
}

fn duration(text: &str) -> Value {
    Value::Duration(Duration::parse(text).unwrap())
}

fn big_integer(text: &str) -> Value {
    Value::BigInteger(Arc::new(BigInt::from_str(text).unwrap()))
}

fn big_decimal(unscaled: &str, scale: i64) -> Value {
    Value::BigDecimal(Arc::new(BigDecimal::new(BigInt::from_str(unscaled).unwrap(), scale)))
}

fn property(key: &str, value: Value) -> DetachedProperty {
    DetachedProperty { key: key.into(), value, owner: None }
}

pub fn vertex_property(id: i64, key: &str, value: Value, meta: &[(&str, i32)]) -> DetachedVertexProperty {
    let properties = meta.iter().map(|&(key, value)| property(key, Value::Int(value))).collect();
    DetachedVertexProperty { id: Value::Long(id), key: key.into(), value, properties, owner: None }
}

fn element(element: Element) -> Value {
    Value::Element(Arc::new(element))
}

pub fn vertex(id: i32, properties: Vec<DetachedVertexProperty>) -> Value {
    element(Element::Vertex(DetachedVertex { id: Value::Int(id), label: "person".into(), properties }))
}

fn person(id: i32, first_property: i64, name: &str, age: i32) -> Value {
    let name = vertex_property(first_property, "name", string(name), &[]);
    let age = vertex_property(first_property + 1, "age", Value::Int(age), &[]);
    vertex(id, vec![name, age])
}

fn edge(properties: Vec<DetachedProperty>) -> Element {
    let (out_id, in_id) = (Value::Int(1), Value::Int(2));
    let (out_label, in_label) = ("person".into(), "person".into());
    let id = Value::Int(7);
    Element::Edge(DetachedEdge { id, label: "knows".into(), out_id, out_label, in_id, in_label, properties })
}

fn predicate(predicate: P) -> Value {
    Value::P(Arc::new(predicate))
}

fn compare(comparison: Comparison, value: Value) -> P {
    P::Compare(comparison, value)
}

fn text(comparison: TextComparison, pattern: &str) -> P {
    P::Text(comparison, pattern.into())
}

fn ints(values: &[i32]) -> Vec<Value> {
    values.iter().map(|&value| Value::Int(value)).collect()
}

pub fn step(name: &str, args: Vec<Argument>) -> Instruction {
    Instruction { name: name.into(), args, offset: None }
}

pub fn value_argument(value: Value) -> Argument {
    Argument::Value(value)
}

pub fn steps(steps: Vec<Instruction>) -> Bytecode {
    Bytecode { source: Vec::new(), steps }
}

fn traversal(instructions: Vec<Instruction>) -> Argument {
    Argument::Traversal(Arc::new(steps(instructions)))
}

fn strategy(name: &str, options: Vec<(&str, Argument)>) -> Argument {
    let options = options.into_iter().map(|(key, value)| (key.into(), value)).collect();
    Argument::Strategy { name: name.into(), options }
}

pub fn bytecode(bytecode: Bytecode) -> Value {
    Value::Bytecode(Arc::new(bytecode))
}

fn scalars() -> Vec<(&'static str, Value)> {
    vec![
        ("true", Value::Bool(true)),
        ("int", Value::Int(1)),
        ("int-neg", Value::Int(-7)),
        ("long", Value::Long(5_000_000_000)),
        ("short", Value::Short(3)),
        ("byte", Value::Byte(-4)),
        ("float", Value::Float(1.5)),
        ("float-tenth", Value::Float(0.1)),
        ("double", Value::Double(0.1)),
        ("double-one", Value::Double(1.0)),
        ("double-big", Value::Double(1e21)),
        ("double-e7", Value::Double(1e7)),
        ("double-small", Value::Double(1e-5)),
        ("nan", Value::Double(f64::NAN)),
        ("inf", Value::Double(f64::INFINITY)),
        ("ninf", Value::Float(f32::NEG_INFINITY)),
        ("bigint", big_integer("123456789987654321123456789987654321")),
        ("bigint-neg", big_integer("-129")),
        ("bigdec", big_decimal("12345678998765432112345678998765432125", 2)),
        ("bigdec-exp", big_decimal("1", -10)),
        ("bigdec-small", big_decimal("1", 8)),
        ("char", Value::Char('x')),
        ("char-euro", Value::Char('€')),
        ("string", string("a\"b\\c\n\t\u{1}é\u{2028}/<>😀\u{7f}")),
        ("empty", string("")),
        ("uuid", Value::Uuid(Uuid::from_str(ID).unwrap())),
        ("odt", datetime("2007-12-03T10:15:30+01:00")),
        ("odt-utc", datetime("2018-03-21T08:35:44.741Z")),
        ("odt-nos", datetime("2018-03-21T08:35Z")),
        ("odt-old", datetime("-0001-01-01T00:00:00.000000001-05:30:15")),
        ("odt-micro", datetime("2018-03-21T08:35:44.000741Z")),
        ("odt-big", datetime("+12018-03-21T08:35:44.1Z")),
        ("duration", duration("P5D")),
        ("duration-nano", duration("PT-1.5S")),
        ("duration-mix", duration("PT1H2M3.005S")),
        ("duration-zero", duration("PT0S")),
        ("duration-negsub", duration("PT-0.000000001S")),
        ("duration-neg61", duration("PT-61S")),
        ("binary", Value::Binary(Arc::from([0, 1, 0xff, b'a']))),
        ("t", Value::T(T::Id)),
        ("direction", Value::Direction(Direction::Out)),
        ("order", Value::Order(Order::Desc)),
        ("scope", Value::Scope(Scope::Local)),
        ("pop", Value::Pop(Pop::Mixed)),
        ("column", Value::Column(Column::Keys)),
        ("cardinality", Value::Cardinality(Cardinality::Set)),
        ("merge", Value::Merge(Merge::OnCreate)),
        ("pick", Value::Pick(Pick::Unproductive)),
        ("operator", Value::Operator(Operator::SumLong)),
        ("dt", Value::DateUnit(DateUnit::Minute)),
        ("gtype", Value::GType(GType::Int)),
    ]
}

fn collections() -> Vec<(&'static str, Value)> {
    let mut bulk_set = BulkSet::default();
    bulk_set.counts.insert(string("marko"), 1);
    bulk_set.counts.insert(string("josh"), 3);
    let uuid = Value::Uuid(Uuid::from_str(ID).unwrap());
    vec![
        ("null-list", list([Value::Null])),
        ("list", list([Value::Int(1), string("a"), Value::Long(2)])),
        ("list-nested", list([list(ints(&[1])), list([]), map([])])),
        ("set", set([Value::Int(1), string("a")])),
        ("map", map([(string("a"), Value::Int(1)), (string("b"), list([Value::Long(1)]))])),
        ("map-int", map([(Value::Int(1), string("x")), (Value::Long(2), string("y"))])),
        ("map-empty", map([])),
        ("map-nullkey", map([(Value::Null, Value::Int(1))])),
        ("map-t", map([(Value::T(T::Id), Value::Int(1)), (Value::T(T::Label), string("x"))])),
        ("map-dir", map([(Value::Direction(Direction::In), Value::Int(1))])),
        ("map-list", map([(list(ints(&[1, 2])), string("x"))])),
        ("map-uuid", map([(uuid, Value::Int(1))])),
        ("map-date", map([(datetime("2018-03-21T08:35:44.741Z"), Value::Int(1))])),
        ("map-double", map([(Value::Double(1.0), Value::Int(1))])),
        ("map-vertex", map([(person(1, 0, "marko", 29), Value::Int(1))])),
        ("map-edge", map([(element(edge(vec![property("weight", Value::Double(0.5))])), Value::Int(1))])),
        ("entry", Value::Entry(Shared::new((string("k"), Value::Int(1))))),
        ("bulkset", Value::BulkSet(Shared::new(bulk_set))),
    ]
}

fn graph_values() -> Vec<(&'static str, Value)> {
    let crew = vec![
        vertex_property(1, "name", string("stephen"), &[]),
        vertex_property(10, "location", string("centreville"), &[("startTime", 1990), ("endTime", 2000)]),
        vertex_property(11, "location", string("dulles"), &[("startTime", 2000), ("endTime", 2006)]),
        vertex_property(12, "location", string("purcellville"), &[("startTime", 2006)]),
    ];
    let name = vertex_property(0, "name", string("marko"), &[]);
    let weight = || property("weight", Value::Double(0.5));
    let labels = |names: &[&str]| Some(names.iter().map(|&name| Arc::from(name)).collect());
    let path = Path::labelled(
        vec![person(1, 0, "marko", 29), person(2, 2, "vadas", 27), string("vadas")],
        vec![labels(&["a"]), labels(&["b", "c"]), None],
    );
    let branch = |key: Value, below: Tree| Tree { children: [(key, below)].into_iter().collect() };
    let vadas = branch(person(2, 2, "vadas", 27), branch(string("vadas"), Tree::default()));
    let mut names = branch(string("vadas"), Tree::default());
    names.children.insert(string("josh"), Tree::default());
    let graph_vertex = |id, properties| match vertex(id, properties) {
        Value::Element(element) => element,
        _ => unreachable!(),
    };
    let with_since = vertex_property(0, "name", string("marko"), &[("since", 2009)]);
    let graph = Subgraph {
        vertices: vec![graph_vertex(1, vec![with_since]), graph_vertex(2, Vec::new())],
        edges: vec![Arc::new(edge(vec![weight()]))],
    };
    vec![
        ("vertex", person(1, 0, "marko", 29)),
        ("vertex-crew", vertex(7, crew.clone())),
        ("edge", element(edge(vec![weight()]))),
        ("vp", element(Element::VertexProperty(name))),
        ("vp-meta", element(Element::VertexProperty(crew[1].clone()))),
        ("prop", element(Element::Property(weight()))),
        ("meta-prop", element(Element::Property(property("startTime", Value::Int(1990))))),
        ("path", Value::Path(Shared::new(path))),
        ("tree", Value::Tree(Shared::new(branch(person(1, 0, "marko", 29), vadas)))),
        ("tree-by", Value::Tree(Shared::new(branch(string("marko"), names)))),
        ("graph", Value::Graph(Arc::new(graph))),
        ("traversal-metrics", Value::Metrics(Arc::new(metrics()))),
    ]
}

fn metrics() -> TraversalMetrics {
    let nested = Metrics {
        id: "3.0.0()".into(),
        name: "VertexStep(OUT,vertex)".into(),
        duration_ns: 1500,
        ..Metrics::default()
    };
    let outer = Metrics {
        id: "7.0.0()".into(),
        name: "TinkerGraphStep(vertex,[~label.eq(person)])".into(),
        duration_ns: 100_000_000,
        counts: vec![("traverserCount".into(), 4), ("elementCount".into(), 4)],
        annotations: vec![("percentDur".into(), Value::Double(25.0))],
        nested: vec![nested],
    };
    TraversalMetrics { duration_ns: 4000, metrics: vec![outer] }
}

fn predicates() -> Vec<(&'static str, Value)> {
    use Comparison::*;
    let int = |comparison, value| compare(comparison, Value::Int(value));
    let strings = |values: &[&str]| Shared::new(values.iter().map(|value| string(value)).collect());
    let regex = || text(TextComparison::Regex, "^x");
    let ends = vec![text(TextComparison::StartingWith, "x"), text(TextComparison::EndingWith, "y")];
    let all = [
        ("p-eq", int(Eq, 1)),
        ("p-gt", compare(Gt, Value::Long(1))),
        ("p-within", P::Within(strings(&["a", "b"]))),
        ("p-within-one", P::Within(strings(&["a"]))),
        ("p-within-none", P::Within(strings(&[]))),
        ("p-without", P::Without(Shared::new(ints(&[1, 2])))),
        ("p-between", P::And(vec![int(Gte, 1), int(Lt, 2)])),
        ("p-outside", P::Or(vec![int(Lt, 1), int(Gt, 2)])),
        ("p-and", P::And(vec![int(Gt, 1), int(Lt, 3), int(Neq, 2)])),
        ("p-or", P::Or(vec![compare(Eq, string("a")), compare(Eq, string("b"))])),
        ("p-not", P::Not(Box::new(int(Eq, 1)))),
        ("p-not-within", P::Not(Box::new(P::Within(Shared::new(ints(&[1, 2])))))),
        ("p-typeof", P::TypeOf(GType::Int)),
        ("p-eq-null", compare(Eq, Value::Null)),
        ("p-eq-list", compare(Eq, list(ints(&[1, 2])))),
        ("textp", text(TextComparison::Containing, "ark")),
        ("textp-not", text(TextComparison::NotStartingWith, "x")),
        ("textp-regex", regex()),
        ("p-not-text", P::Not(Box::new(regex()))),
        ("textp-and", P::And(ends)),
    ];
    all.into_iter().map(|(name, value)| (name, predicate(value))).collect()
}

fn bytecodes() -> Vec<(&'static str, Value)> {
    let int = |value| value_argument(Value::Int(value));
    let text = |value: &str| value_argument(string(value));
    let plain = steps(vec![
        step("V", vec![]),
        step("hasLabel", vec![text("person")]),
        step("has", vec![text("age"), Argument::Predicate(compare(Comparison::Gt, Value::Int(30)))]),
        step("repeat", vec![traversal(vec![step("out", vec![])])]),
        step("times", vec![int(2)]),
    ]);
    let with_source = Bytecode {
        source: vec![
            step("withSack", vec![value_argument(Value::Float(1.0))]),
            step("withSideEffect", vec![text("a"), value_argument(list(ints(&[1])))]),
            step(
                "withStrategies",
                vec![strategy("OptionsStrategy", vec![("evaluationTimeout", value_argument(Value::Long(500)))])],
            ),
        ],
        steps: vec![
            step("V", vec![int(1), value_argument(Value::Long(2))]),
            step("order", vec![]),
            step("by", vec![text("name"), value_argument(Value::Order(Order::Desc))]),
            step("by", vec![value_argument(Value::T(T::Id))]),
        ],
    };
    let subgraph = vec![
        ("checkAdjacentVertices", value_argument(Value::Bool(true))),
        ("vertices", traversal(vec![step("hasLabel", vec![text("x")])])),
    ];
    let partition = vec![
        ("includeMetaProperties", value_argument(Value::Bool(false))),
        ("writePartition", text("a")),
        ("readPartitions", value_argument(set([string("a"), string("b")]))),
        ("partitionKey", text("p")),
    ];
    let with_strategies = Bytecode {
        source: vec![
            step(
                "withStrategies",
                vec![
                    strategy("SubgraphStrategy", subgraph),
                    strategy("ReadOnlyStrategy", vec![]),
                    strategy("PartitionStrategy", partition),
                ],
            ),
            step("withoutStrategies", vec![strategy("ReadOnlyStrategy", vec![])]),
        ],
        steps: vec![step("V", vec![])],
    };
    let set_value = Argument::CardinalityValue(Cardinality::Set, Box::new(text("y")));
    let with_cardinality = steps(vec![
        step("mergeV", vec![value_argument(map([(Value::T(T::Label), string("x"))]))]),
        step(
            "option",
            vec![value_argument(Value::Merge(Merge::OnCreate)), Argument::Map(vec![(text("name"), set_value)])],
        ),
        step("property", vec![value_argument(Value::Cardinality(Cardinality::List)), text("k"), int(1)]),
    ]);
    let one_to_two = P::And(vec![compare(Comparison::Gte, Value::Int(1)), compare(Comparison::Lt, Value::Int(2))]);
    let nested = steps(vec![
        step("V", vec![]),
        step("choose", vec![traversal(vec![step("values", vec![text("age")])])]),
        step("option", vec![value_argument(Value::Pick(Pick::None)), traversal(vec![step("identity", vec![])])]),
        step(
            "option",
            vec![
                Argument::Predicate(one_to_two),
                traversal(vec![step("out", vec![]), step("where", vec![traversal(vec![step("in", vec![])])])]),
            ],
        ),
        step("sack", vec![value_argument(Value::Operator(Operator::Sum))]),
    ]);
    vec![
        ("bytecode", bytecode(plain)),
        ("bytecode-src", bytecode(with_source)),
        ("bytecode-strategy", bytecode(with_strategies)),
        ("bytecode-card", bytecode(with_cardinality)),
        ("bytecode-nested", bytecode(nested)),
    ]
}

/// Values that are written as the fixtures say, and read back equal.
pub fn named_values() -> Vec<(&'static str, Value)> {
    [scalars(), collections(), graph_values(), predicates(), bytecodes()].concat()
}

/// Values that are only read: types that have no value of their own.
pub fn read_only_values() -> Vec<(&'static str, Value)> {
    let millis = datetime("2016-12-14T21:14:36.295Z");
    let one = metrics().metrics.remove(0);
    let reference = |value: Element| element(value);
    vec![
        ("double-min", Value::Double(5e-324)),
        ("date", millis.clone()),
        ("timestamp", millis),
        ("instant", datetime("2016-12-14T16:39:19.349Z")),
        ("localdate", datetime("2016-01-01")),
        ("localdatetime", datetime("2016-01-01T12:30")),
        ("zdt", datetime("2016-12-23T12:12:24.000000036+02:00")),
        ("class", string("java.lang.String")),
        ("barrier", string("normSack")),
        ("vertex-ref", vertex(1, Vec::new())),
        ("edge-ref", reference(edge(Vec::new()))),
        ("traverser", Value::Entry(Shared::new((string("marko"), Value::Long(2))))),
        ("metrics", Value::Metrics(Arc::new(TraversalMetrics { duration_ns: 100_000_000, metrics: vec![one] }))),
        ("bytecode-bind", bytecode(steps(vec![step("V", vec![value_argument(Value::Int(5))])]))),
    ]
}

/// Everything a value holds, where equality of elements looks at ids only.
pub fn shown(value: &Value) -> String {
    format!("{value:?}")
}

/// The fixtures as name, format and text.
pub fn fixtures() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    include_str!("../fixtures/official.tsv").lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut parts = line.splitn(3, '\t');
        let mut part = || parts.next().expect("three columns");
        (part(), part(), part())
    })
}

pub fn bytes_of_hex(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
