//! The bounds on what clients send, as the OpenAPI document tells them.

use crate::bounds::{self, Bounds};
use coloc_api::script;
use serde_json::{Map, Value};

/// A type, a field, what of it is bounded, and by what. Bounds that are settings are told as they are by default.
fn maxima() -> Vec<(&'static str, &'static str, &'static str, u64)> {
    let default = Bounds::default();
    let n = |number: usize| number as u64;
    let mut all = vec![
        ("ChangeRequest", "ids", "maxItems", n(default.ids)),
        ("ArrayRequest", "indices", "maxItems", n(bounds::ARRAY)),
        ("ArrayRequest", "indices", "minItems", 1),
        ("Submission", "key", "maxLength", n(bounds::KEY)),
        ("TokenRequest", "label", "maxLength", n(bounds::LABEL)),
        ("EstimateFlag", "kind", "maxLength", n(bounds::NAME)),
        ("EstimateFlag", "detail", "maxLength", n(bounds::PATH)),
        ("Warning", "signal", "minimum", 1),
        ("Warning", "signal", "maximum", 64),
        ("Warning", "before", "maximum", bounds::SPAN.0),
        ("Dependency", "delay", "maximum", bounds::SPAN.0),
        ("Estimate", "peak", "maximum", bounds::MEMORY.0),
        ("Estimate", "bound", "maximum", bounds::MEMORY.0),
        ("Estimate", "sm", "minimum", 0),
        ("Estimate", "sm", "maximum", 1),
        ("TaskSpec", "script", "maxLength", n(script::LARGEST)),
        ("TaskSpec", "directory", "maxLength", n(bounds::PATH)),
        ("TaskSpec", "output", "maxLength", n(bounds::PATH)),
        ("TaskSpec", "errors", "maxLength", n(bounds::PATH)),
        ("TaskSpec", "estimator", "maxLength", n(bounds::NAME)),
        ("TaskSpec", "estimate_flags", "maxItems", n(bounds::FLAGS)),
        ("TaskSpec", "host_memory", "maximum", bounds::MEMORY.0),
        ("TaskSpec", "idle_timeout", "maximum", bounds::SPAN.0),
    ];
    for kind in ["TaskSpec", "TaskUpdate"] {
        all.extend([
            (kind, "name", "maxLength", n(bounds::NAME)),
            (kind, "after", "maxItems", n(bounds::DEPENDENCIES)),
            (kind, "gpu_kinds", "maxItems", n(bounds::KINDS)),
            (kind, "pools", "maxItems", n(coloc_api::spec::MOST_POOL_NAMES)),
            (kind, "gpu_memory", "maximum", bounds::MEMORY.0),
            (kind, "time_limit", "maximum", bounds::SPAN.0),
            (kind, "retries", "maximum", u64::from(bounds::RETRIES)),
            (kind, "begin_ms", "maximum", bounds::LAST_BEGIN),
        ]);
    }
    all
}

/// Writes the bounds into the types that they are about.
pub(super) fn insert(types: &mut Map<String, Value>) {
    for (kind, field, word, bound) in maxima() {
        let field = types.get_mut(kind).and_then(|kind| kind["properties"].get_mut(field));
        if let Some(Value::Object(field)) = field {
            field.insert(word.to_owned(), bound.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_about_something() {
        let document = crate::api::document();
        for (kind, field, word, bound) in maxima() {
            let pointer = format!("/components/schemas/{kind}/properties/{field}/{word}");
            assert_eq!(document.pointer(&pointer), Some(&bound.into()), "{pointer}");
        }
    }

    #[test]
    fn every_list_and_text_that_is_sent_has_a_bound() {
        let document = crate::api::document();
        let types = document["components"]["schemas"].as_object().unwrap();
        // Bounded by the size of the whole submission.
        let as_a_whole = [
            ("TaskSpec", "command"),
            ("TaskSpec", "environment"),
            ("Teaching", "command"),
            // Looked up among the machine's users.
            ("TokenRequest", "user"),
            // One of a few words.
            ("TaskSpec", "framework"),
            ("Replayed", "loads"),
        ];
        let sent = ["ChangeRequest", "ArrayRequest", "Submission", "TokenRequest", "TaskSpec"];
        let parts = ["TaskUpdate", "Teaching", "EstimateFlag", "Replayed", "Dependency", "Warning"];
        for kind in sent.into_iter().chain(parts) {
            for (field, schema) in types[kind]["properties"].as_object().unwrap() {
                let text = schema["type"].to_string();
                let unbounded = (text.contains("array") && schema.get("maxItems").is_none())
                    || (text.contains("string")
                        && schema.get("maxLength").is_none()
                        && schema.get("enum").is_none());
                assert!(
                    !unbounded || as_a_whole.contains(&(kind, field)),
                    "{kind}.{field} has no bound: {schema}"
                );
            }
        }
    }
}
