//! What a newcomer sees when the server is up: where it listens and what to try.

use std::net::SocketAddr;

use ficus_storage::Store;
use serde_json::json;

use super::settings::Settings;
use crate::demo::Demo;
use crate::output::{OutputFormat, result, talk};

/// Prints the banner: one JSON object on stdout for programs, a text on stderr for people.
pub fn print(settings: &Settings, address: SocketAddr, store: &Store, format: OutputFormat) -> std::io::Result<()> {
    let graphs = store.graph_names();
    if format == OutputFormat::Json {
        let tls = settings.server.tls.is_some();
        return result(
            &json!({"address": address.to_string(), "path": "/gremlin", "tls": tls, "sources": graphs}).to_string(),
        );
    }
    talk(&text(address, settings.server.tls.is_some(), &graphs, settings.store.demo));
    Ok(())
}

fn text(address: SocketAddr, tls: bool, graphs: &[String], demo: Option<Demo>) -> String {
    let (http, socket) = if tls { ("https", "wss") } else { ("http", "ws") };
    let (source, queries) = match demo {
        Some(demo) => (demo.source(), demo.queries()),
        None => ("g", ["g.V().count()", "g.addV('person').property('name','ann')", "g.V().valueMap()"]),
    };
    let source = if graphs.iter().any(|name| name == source) { source } else { "g" };
    let [first, second, third] = queries;
    let alias = if source == "g" { String::new() } else { format!(",\"aliases\":{{\"g\":\"{source}\"}}") };
    let flag = if source == "g" { String::new() } else { format!(" --source {source}") };
    format!(
        "FicusDB {} listens on {socket}://{address}/gremlin\n\
         Traversal sources: {}\n\
         Try:\n\
         \x20 curl {http}://{address}/gremlin -d '{{\"gremlin\":\"{}\"{alias}}}'\n\
         \x20 python: from gremlin_python.driver.client import Client\n\
         \x20         print(Client('{socket}://{address}/gremlin', '{source}').submit(\"{second}\").all().result())\n\
         \x20 ficus shell {socket}://{address}/gremlin{flag} -e \"{third}\"",
        crate::VERSION,
        if graphs.is_empty() { "none yet".into() } else { graphs.join(", ") },
        // Inside the shell's quotes of this line, a query's own quotes are written as JSON allows.
        first.replace('\'', "\\u0027"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_can_be_tried() {
        let address: SocketAddr = "127.0.0.1:8182".parse().expect("an address");
        let shown = text(address, false, &["g".into(), "gmodern".into()], Some(Demo::Tinkerpop));
        for part in ["ws://127.0.0.1:8182/gremlin", "g, gmodern", "\"aliases\":{\"g\":\"gmodern\"}", "--source gmodern"]
        {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert!(text(address, true, &[], None).contains("wss://"));
    }
}
