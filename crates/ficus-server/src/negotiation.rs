//! `Accept`: the format of an HTTP answer.

use ficus_wire::Format;

/// How an HTTP answer is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// In a format of the wire, under a mime type.
    Wire(Format, &'static str),
    /// One line per result.
    Text,
}

impl Target {
    /// The answer's `Content-Type`.
    pub fn content_type(&self) -> &'static str {
        match self {
            Target::Wire(_, mime) => mime,
            Target::Text => "text/plain; charset=utf-8",
        }
    }
}

/// Chooses the format the client likes best, `application/json` when it does not say; `None` when it likes none of ours.
pub(crate) fn choose(accept: Option<&str>) -> Option<Target> {
    let Some(accept) = accept else { return Some(Target::Wire(Format::GraphSon3, "application/json")) };
    let mut best: Option<(f32, Target)> = None;
    for range in accept.split(',') {
        let quality = quality(range);
        let better = best.as_ref().is_none_or(|(most, _)| quality > *most);
        if quality > 0.0
            && better
            && let Some(target) = target(range.trim())
        {
            best = Some((quality, target));
        }
    }
    best.map(|(_, target)| target)
}

fn quality(range: &str) -> f32 {
    let weights = range.split(';').skip(1).filter_map(|parameter| parameter.trim().strip_prefix("q="));
    weights.last().map_or(1.0, |weight| weight.trim().parse().unwrap_or(0.0))
}

fn target(range: &str) -> Option<Target> {
    let essence = range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "*/*" | "application/*" | "" => Some(Target::Wire(Format::GraphSon3, "application/json")),
        "text/*" | "text/plain" => Some(Target::Text),
        "application/json" => {
            let format = Format::from_mime(range)?;
            let mime = if format == Format::GraphSon3 { "application/json" } else { "application/json;types=false" };
            Some(Target::Wire(format, mime))
        }
        _ => Format::from_mime(range).map(|format| Target::Wire(format, format.mime())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_ours_is_chosen() {
        let check = |accept: &str, expected: Option<&str>| {
            let found = choose(Some(accept));
            assert_eq!(found.as_ref().map(Target::content_type), expected, "{accept}");
        };
        check("*/*", Some("application/json"));
        check("application/json", Some("application/json"));
        check("application/json; charset=utf-8", Some("application/json"));
        check("application/json;types=false", Some("application/json;types=false"));
        check("text/html, application/xhtml+xml, */*;q=0.8", Some("application/json"));
        check("text/plain", Some("text/plain; charset=utf-8"));
        check("text/plain;q=0.5, application/vnd.graphbinary-v1.0", Some("application/vnd.graphbinary-v1.0"));
        check(
            "application/vnd.gremlin-v2.0+json;q=0.3, application/vnd.gremlin-v1.0+json;q=0.4",
            Some("application/vnd.gremlin-v1.0+json"),
        );
        check(
            "application/vnd.gremlin-v3.0+json;types=false;q=0.9",
            Some("application/vnd.gremlin-v3.0+json;types=false"),
        );
        check("application/json;q=0", None);
        check("text/html", None);
        check("application/vnd.graphbinary-v1.0;q=banana", None);
        assert_eq!(choose(None), Some(Target::Wire(Format::GraphSon3, "application/json")));
    }
}
