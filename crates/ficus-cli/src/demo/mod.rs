//! Demo graphs that the binary carries, packed in the compact form.
//!
//! `modern`, `classic`, `crew` and `sink` are the toy graphs of Apache TinkerPop's documentation, `grateful-dead` and
//! `air-routes` its larger samples; `NOTICE` names their authors.

use std::borrow::Cow;
use std::sync::Arc;

use ficus_storage::{Graph, Store};

use crate::failure::Failure;
use crate::load::loader::load_compact;

/// A sample graph.
struct Sample {
    name: &'static str,
    packed: &'static [u8],
    /// Indexes worth having, as label and key.
    indexes: &'static [(&'static str, &'static str)],
}

const MODERN: Sample =
    Sample { name: "modern", packed: include_bytes!("../../demos/modern.ficus"), indexes: &[("person", "name")] };
const CLASSIC: Sample = Sample { name: "classic", packed: include_bytes!("../../demos/classic.ficus"), indexes: &[] };
const CREW: Sample = Sample { name: "crew", packed: include_bytes!("../../demos/crew.ficus"), indexes: &[] };
const SINK: Sample = Sample { name: "sink", packed: include_bytes!("../../demos/sink.ficus"), indexes: &[] };
const GRATEFUL_DEAD: Sample = Sample {
    name: "grateful-dead",
    packed: include_bytes!("../../demos/grateful-dead.ficus.zst"),
    indexes: &[("song", "name"), ("artist", "name")],
};
const AIR_ROUTES: Sample = Sample {
    name: "air-routes",
    packed: include_bytes!("../../demos/air-routes.ficus.zst"),
    indexes: &[("airport", "code"), ("country", "code")],
};

/// What `--demo` offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Demo {
    /// 3,749 airports, countries and continents with 57,645 edges, as `g`.
    AirRoutes,
    /// Six people and programs, as `g`.
    Modern,
    /// `modern` without labels, as `g`.
    Classic,
    /// People with several locations over time, as `g`.
    Crew,
    /// Loops and parallel edges, as `g`.
    Sink,
    /// 808 songs and artists with 8,049 edges, as `g`.
    GratefulDead,
    /// All samples at once: `gmodern`, `gclassic`, `gcrew`, `ggrateful`, `gsink`, and the empty `g` and `ggraph`.
    Tinkerpop,
}

impl Demo {
    /// The graphs it consists of, each with its sample if it is not empty.
    fn graphs(self) -> &'static [(&'static str, Option<&'static Sample>)] {
        match self {
            Demo::AirRoutes => &[("g", Some(&AIR_ROUTES))],
            Demo::Modern => &[("g", Some(&MODERN))],
            Demo::Classic => &[("g", Some(&CLASSIC))],
            Demo::Crew => &[("g", Some(&CREW))],
            Demo::Sink => &[("g", Some(&SINK))],
            Demo::GratefulDead => &[("g", Some(&GRATEFUL_DEAD))],
            Demo::Tinkerpop => &[
                ("g", None),
                ("ggraph", None),
                ("gmodern", Some(&MODERN)),
                ("gclassic", Some(&CLASSIC)),
                ("gcrew", Some(&CREW)),
                ("ggrateful", Some(&GRATEFUL_DEAD)),
                ("gsink", Some(&SINK)),
            ],
        }
    }

    /// The name on the command line.
    pub fn name(self) -> String {
        clap::ValueEnum::to_possible_value(&self).map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The traversal source that [`Demo::queries`] are meant for.
    pub fn source(self) -> &'static str {
        if self == Demo::Tinkerpop { "gmodern" } else { "g" }
    }

    /// Three queries that show something on this demo.
    pub fn queries(self) -> [&'static str; 3] {
        match self {
            Demo::AirRoutes => [
                "g.V().has('airport','code','AUS').out('route').count()",
                "g.V().hasLabel('airport').order().by(outE('route').count(),desc).limit(3).values('city')",
                "g.V().has('airport','code','AUS').repeat(out('route')).times(2).dedup().count()",
            ],
            Demo::GratefulDead => [
                "g.V().has('song','name','DARK STAR').out('followedBy').count()",
                "g.V().hasLabel('song').order().by('performances',desc).limit(3).values('name')",
                "g.V().hasLabel('artist').groupCount().by(__.in('writtenBy').count())",
            ],
            Demo::Crew => [
                "g.V().has('name','marko').values('location')",
                "g.V().has('name','marko').properties('location').valueMap()",
                "g.V().hasLabel('software').in('uses').values('name').dedup()",
            ],
            Demo::Sink => ["g.V().valueMap()", "g.V().out('self').count()", "g.E().label().groupCount()"],
            Demo::Modern | Demo::Classic | Demo::Tinkerpop => [
                "g.V().count()",
                "g.V().has('name','marko').out('knows').values('name')",
                "g.V().has('name','marko').repeat(out()).times(2).values('name')",
            ],
        }
    }

    /// Makes sure that the graphs are in the store; a graph that holds anything already is left as it is.
    pub fn install(self, store: &Store) -> Result<Vec<String>, Failure> {
        let mut said = Vec::new();
        for (graph_name, sample) in self.graphs() {
            let graph = crate::store::graph_or_new(store, graph_name)?;
            let Some(sample) = sample else { continue };
            if graph.vertex_count() > 0 {
                said.push(format!("{graph_name} holds {} vertices already", graph.vertex_count()));
                continue;
            }
            install_sample(&graph, sample)?;
            said.push(format!(
                "{graph_name} holds {}: {} vertices, {} edges",
                sample.name,
                graph.vertex_count(),
                graph.edge_count()
            ));
        }
        Ok(said)
    }
}

fn install_sample(graph: &Arc<Graph>, sample: &Sample) -> Result<(), Failure> {
    for (label, key) in sample.indexes {
        graph.create_index(Some(label), key)?;
    }
    let text = unpacked(sample.packed)?;
    load_compact(graph, &text).map_err(|error| Failure::failed(format!("demo {}: {error}", sample.name)))?;
    Ok(())
}

/// Large samples are packed with Zstandard; small ones are readable text in the repository.
fn unpacked(packed: &'static [u8]) -> Result<Cow<'static, [u8]>, Failure> {
    const ZSTANDARD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
    if packed.starts_with(&ZSTANDARD_MAGIC) {
        Ok(Cow::Owned(zstd::stream::decode_all(packed)?))
    } else {
        Ok(Cow::Borrowed(packed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_demo_installs_with_the_counts_it_promises() {
        type Counts = &'static [(&'static str, u64, u64)];
        let cases: &[(Demo, Counts)] = &[
            (Demo::AirRoutes, &[("g", 3749, 57645)]),
            (Demo::Classic, &[("g", 6, 6)]),
            (
                Demo::Tinkerpop,
                &[
                    ("g", 0, 0),
                    ("ggraph", 0, 0),
                    ("gmodern", 6, 6),
                    ("gclassic", 6, 6),
                    ("gcrew", 6, 14),
                    ("ggrateful", 808, 8049),
                    ("gsink", 3, 3),
                ],
            ),
        ];
        for (demo, graphs) in cases {
            let store = Store::in_memory();
            demo.install(&store).expect("it installs");
            for (name, vertices, edges) in *graphs {
                let graph = store.graph(name).expect("it was created");
                assert_eq!((graph.vertex_count(), graph.edge_count()), (*vertices, *edges), "{demo:?} {name}");
            }
            let again = demo.install(&store).expect("it installs twice");
            assert!(again.iter().all(|line| line.contains("already")), "{again:?}");
        }
    }
}
