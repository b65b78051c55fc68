//! The interface described for programs: an OpenAPI 3.1 document, made from the routes and the types they speak.

use super::routes::{Route, routes};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use coloc_api::answer::ApiError;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

/// Where types are described.
const TYPES: &str = "/components/schemas";

pub(super) async fn serve() -> impl IntoResponse {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| document().to_string());
    ([(CONTENT_TYPE, "application/json")], text.as_str())
}

/// Describes what this version of the daemon serves.
pub fn document() -> Value {
    let settings = || SchemaSettings::draft2020_12().with(|s| s.definitions_path = TYPES.into());
    let mut writer = Writer {
        told: settings().into_generator(),
        answered: settings().for_serialize().into_generator(),
    };
    let mut paths = Map::new();
    for route in routes() {
        let operation = writer.operation(&route);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "coloc",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The daemon's interface. Over its Unix socket the kernel says who calls, over TLS a token does. Every JSON answer has the \
                version of its schema in `schema`; a client that sends the header `coloc-schema` with a newer one is refused.",
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
        },
        "paths": paths,
        "components": {
            "schemas": writer.types(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        // Over the socket nothing is needed.
        "security": [{ "token": [] }, {}],
    })
}

/// What clients write may leave out what has a default; what we answer never does. So each has its own generator.
struct Writer {
    told: SchemaGenerator,
    answered: SchemaGenerator,
}

impl Writer {
    fn operation(&mut self, route: &Route) -> Value {
        let (kind, shape) = route.answer;
        let answer = shape.map_or(Schema::from(true), |shape| shape(&mut self.answered));
        let error = self.answered.subschema_for::<ApiError>();
        let mut operation = json!({
            "operationId": route.id,
            "summary": route.does,
            "responses": {
                "200": { "description": "Done", "content": { kind: { "schema": answer } } },
                "default": {
                    "description": "Refused, and why",
                    "content": { "application/json": { "schema": error } },
                },
            },
        });
        if let Some(shape) = route.later {
            let schema = shape(&mut self.answered);
            let content = json!({ "application/json": { "schema": schema } });
            let later =
                json!({ "description": "It is being worked out: ask again", "content": content });
            operation["responses"]["202"] = later;
        }
        let parameters = self.parameters(route);
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if let Some(shape) = route.body {
            let schema = shape(&mut self.told);
            let content = json!({ "application/json": { "schema": schema } });
            operation["requestBody"] = json!({ "required": true, "content": content });
        }
        operation
    }

    fn parameters(&mut self, route: &Route) -> Vec<Value> {
        let named =
            route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let number = json!({ "type": "integer", "format": "uint32", "minimum": 0 });
        let mut all: Vec<Value> = named
            .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": number }))
            .collect();
        let Some(shape) = route.query else { return all };
        let reference = shape(&mut self.told);
        // A query is a type whose fields are parameters.
        let name = reference.as_value()["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        let described = name.and_then(|name| self.told.definitions_mut().remove(name));
        for (name, field) in described.iter().flat_map(|d| d["properties"].as_object()).flatten() {
            all.push(json!({ "name": name, "in": "query", "required": false, "schema": field }));
        }
        all
    }

    fn types(mut self) -> Map<String, Value> {
        let mut types = self.told.take_definitions(true);
        types.extend(self.answered.take_definitions(true));
        super::maxima::insert(&mut types);
        types
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|field| references(field, found));
            }
            Value::Array(all) => all.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn whatever_is_referred_to_is_there() {
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 20, "{found:?}");
        for reference in found {
            let pointer = reference.strip_prefix('#').expect("a reference into the document");
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn a_type_means_the_same_in_both_directions() {
        let mut writer = Writer {
            told: SchemaSettings::draft2020_12().into_generator(),
            answered: SchemaSettings::draft2020_12().for_serialize().into_generator(),
        };
        for route in routes() {
            writer.operation(&route);
        }
        let (told, answered) = (writer.told.definitions(), writer.answered.definitions());
        for (name, schema) in told.iter().filter(|(name, _)| answered.contains_key(*name)) {
            assert_eq!(Some(schema), answered.get(name), "{name} needs a name for each direction");
        }
    }

    #[test]
    fn names_of_operations_differ() {
        let mut names: Vec<&str> = routes().iter().map(|route| route.id).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
