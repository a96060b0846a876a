//! Every step and modulator by name, with the handler that lowers it.

use super::arguments::Step;
use super::builder::Builder;
use super::error::{LowerError, LowerErrorKind, Lowered};
use super::nearest::nearest;
use super::{
    analytics, branch, filter, map, match_step, merge, modulate, mutate, navigation, predicates, reduce, scalar,
    sources, where_step,
};

/// Lowers one instruction.
type Handler = for<'builder, 'query, 'step> fn(&'builder mut Builder<'query>, Step<'step>) -> Lowered;

/// One word.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) lower: Handler,
    /// Whether it changes the step before it instead of being one.
    pub(super) modulates: bool,
}

const fn step(name: &'static str, lower: Handler) -> Entry {
    Entry { name, lower, modulates: false }
}

const fn modulator(name: &'static str, lower: Handler) -> Entry {
    Entry { name, lower, modulates: true }
}

/// Sorted by name, for binary search.
static STEPS: &[Entry] = &[
    step("E", sources::edges),
    step("V", sources::vertices),
    step("addE", mutate::add_edge),
    step("addV", mutate::add_vertex),
    step("aggregate", reduce::aggregate),
    step("all", filter::all),
    step("and", filter::and),
    step("any", filter::any),
    modulator("as", modulate::label),
    step("asBool", scalar::as_bool),
    step("asDate", scalar::as_date),
    step("asNumber", scalar::as_number),
    step("asString", scalar::as_string),
    step("barrier", reduce::barrier),
    step("both", navigation::both),
    step("bothE", navigation::both_edges),
    step("bothV", navigation::both_vertices),
    step("branch", branch::branch),
    modulator("by", modulate::by),
    step("call", sources::call),
    step("cap", reduce::cap),
    step("choose", branch::choose),
    step("coalesce", branch::coalesce),
    step("coin", filter::coin),
    step("combine", scalar::combine),
    step("concat", scalar::concat),
    step("conjoin", scalar::conjoin),
    step("connectedComponent", analytics::connected_component),
    step("constant", map::constant),
    step("count", reduce::count),
    step("cyclicPath", filter::cyclic_path),
    step("dateAdd", scalar::date_add),
    step("dateDiff", scalar::date_diff),
    step("dedup", filter::dedup),
    step("difference", scalar::difference),
    step("discard", filter::discard),
    step("disjunct", scalar::disjunct),
    step("drop", mutate::drop),
    step("element", navigation::element),
    step("elementMap", navigation::element_map),
    step("emit", branch::emit),
    step("fail", reduce::fail),
    step("filter", filter::filter),
    step("flatMap", map::flat_map),
    step("fold", reduce::fold),
    step("format", map::format),
    modulator("from", modulate::from),
    step("group", reduce::group),
    step("groupCount", reduce::group_count),
    step("has", predicates::has),
    step("hasId", predicates::has_id),
    step("hasKey", predicates::has_property_key),
    step("hasLabel", predicates::has_label),
    step("hasNot", predicates::has_not),
    step("hasValue", predicates::has_value),
    step("id", navigation::id),
    step("identity", map::identity),
    step("in", navigation::in_),
    step("inE", navigation::in_edges),
    step("inV", navigation::in_vertex),
    step("index", scalar::index),
    step("inject", sources::inject),
    step("intersect", scalar::intersect),
    step("io", sources::io),
    step("is", predicates::is),
    step("key", navigation::key),
    step("lTrim", scalar::trim_left),
    step("label", navigation::label),
    step("length", scalar::length),
    step("limit", filter::limit),
    step("local", map::local),
    step("loops", map::loops),
    step("map", map::map),
    step("match", match_step::match_),
    step("math", map::math),
    step("max", reduce::max),
    step("mean", reduce::mean),
    step("merge", scalar::merge),
    step("mergeE", merge::merge_edge),
    step("mergeV", merge::merge_vertex),
    step("min", reduce::min),
    step("next", filter::next),
    step("none", filter::none),
    step("not", filter::not),
    modulator("option", modulate::option),
    step("optional", branch::optional),
    step("or", filter::or),
    step("order", map::order),
    step("otherV", navigation::other_vertex),
    step("out", navigation::out),
    step("outE", navigation::out_edges),
    step("outV", navigation::out_vertex),
    step("pageRank", analytics::page_rank),
    step("path", map::path),
    step("peerPressure", analytics::peer_pressure),
    step("product", scalar::product),
    step("profile", reduce::profile),
    step("program", analytics::program),
    step("project", map::project),
    step("properties", navigation::properties),
    modulator("property", mutate::property),
    step("propertyMap", navigation::property_map_step),
    step("rTrim", scalar::trim_right),
    step("range", filter::range),
    modulator("read", sources::read),
    step("repeat", branch::repeat),
    step("replace", scalar::replace),
    step("reverse", scalar::reverse),
    step("sack", map::sack),
    step("sample", filter::sample),
    step("select", map::select),
    step("shortestPath", analytics::shortest_path),
    step("sideEffect", map::side_effect),
    step("simplePath", filter::simple_path),
    step("skip", filter::skip),
    step("split", scalar::split),
    step("subgraph", reduce::subgraph),
    step("substring", scalar::substring),
    step("sum", reduce::sum),
    step("tail", filter::tail),
    step("timeLimit", filter::time_limit),
    step("times", branch::times),
    modulator("to", modulate::to),
    step("toE", navigation::to_edges),
    step("toLower", scalar::to_lower),
    step("toUpper", scalar::to_upper),
    step("toV", navigation::to_vertex_of_edge),
    step("tree", reduce::tree),
    step("trim", scalar::trim),
    step("unfold", map::unfold),
    step("union", branch::union),
    step("until", branch::until),
    step("value", navigation::value),
    step("valueMap", navigation::value_map),
    step("values", navigation::values),
    step("where", where_step::where_),
    modulator("with", modulate::with),
    modulator("write", sources::write),
];

/// The entry of the step's name.
pub(super) fn find(step: Step<'_>) -> Lowered<&'static Entry> {
    match STEPS.binary_search_by(|entry| entry.name.cmp(step.name())) {
        Ok(index) => Ok(&STEPS[index]),
        Err(_) => Err(unknown(step)),
    }
}

fn unknown(step: Step<'_>) -> LowerError {
    let name = step.name();
    let advice = match name {
        "store" => "it was removed: write local(aggregate(key)) instead".to_string(),
        "tx" => "transactions are for the source: g.tx()".to_string(),
        _ => match nearest(name, STEPS.iter().map(|entry| entry.name)) {
            Some(nearest) => format!("did you mean {nearest}()?"),
            None => "see the list of steps in the Gremlin reference".to_string(),
        },
    };
    step.error(LowerErrorKind::UnknownStep, format!("there is no step {name}(): {advice}"))
}

#[cfg(test)]
mod tests {
    use super::STEPS;

    #[test]
    fn the_table_is_sorted_and_names_each_step_once() {
        for pair in STEPS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} stands before {}", pair[0].name, pair[1].name);
        }
    }
}
