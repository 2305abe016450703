//! The OpenAPI description against the answers, field by field.

use std::collections::BTreeSet;

use evenhand_coordinator::dashboard::paths;
use evenhand_tests::http::{Listener, get, request};
use evenhand_tests::synthetic;
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::served::{TOKEN, command, options, served};

/// Checks a value against a schema: types and fields, at every depth.
fn conforms(value: &Value, schema: &Value, root: &Value, at: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return conforms(value, &root["components"]["schemas"][name], root, at);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits = choices.iter().find(|choice| (choice["type"] == "null") == value.is_null());
        return conforms(value, fits.unwrap(), root, at);
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
        other => panic!("{at}: the schema has type {other}"),
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() && kinds.contains(&"integer") => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(kinds.contains(&kind), "{at}: {value} is no {kinds:?}");
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{at}: {value} is none of {words:?}");
    }
    match value {
        Value::Array(items) => {
            assert!(!items.is_empty(), "{at}: an empty list shows nothing");
            items.iter().for_each(|item| conforms(item, &schema["items"], root, at));
        }
        Value::Object(fields) => {
            // Every field of a view type is always serialised: described, required and sent must be the same.
            if let Some(properties) = schema["properties"].as_object() {
                let sent: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
                let described: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
                let required = schema["required"].as_array().into_iter().flatten();
                let required: BTreeSet<&str> = required.map(|name| name.as_str().unwrap()).collect();
                assert_eq!(sent, described, "{at}: sent, and described");
                assert_eq!(sent, required, "{at}: sent, and required");
            }
            for (name, field) in fields {
                match schema["properties"].get(name) {
                    Some(property) => conforms(field, property, root, &format!("{at}.{name}")),
                    None if schema["additionalProperties"].is_object() => {
                        conforms(field, &schema["additionalProperties"], root, &format!("{at}.{name}"));
                    }
                    None => assert!(schema.get("properties").is_none(), "{at}: {name} is not described"),
                }
            }
        }
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_describes_every_route_and_every_answer() {
    let (dashboard, _) = served(synthetic::view(12, 60, 30), options()).await;
    let address = dashboard.address();
    spawn_blocking(move || {
        let document = get(address, "/api/v1/openapi.json").json();
        let described: BTreeSet<&str> =
            document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(described, paths().into_iter().collect());
        for (path, methods) in document["paths"].as_object().unwrap() {
            let url = path.replace("{id}", "meter-0003").replace("{command}", "remove");
            for (method, operation) in methods.as_object().unwrap() {
                let (answer, status) = match (method.as_str(), path.ends_with("/events")) {
                    ("get", true) => {
                        let event = Listener::open(address, &url).next().unwrap();
                        let content = &operation["responses"]["200"]["content"]["text/event-stream"];
                        conforms(&event, &content["schema"], &document, path);
                        continue;
                    }
                    ("get", false) => (get(address, &url), "200"),
                    ("post", _) => {
                        (command(address, "remove", Some(TOKEN), "{\"node\": \"meter-0003\"}"), "202")
                    }
                    other => panic!("{other:?}"),
                };
                assert_eq!(answer.status.to_string(), status, "{path}");
                let content = operation["responses"][status]["content"].as_object().unwrap();
                let (kind, content) = content.iter().next().unwrap();
                let content_type = answer.header("content-type").unwrap();
                assert!(content_type.starts_with(kind.as_str()), "{path}: {content_type}");
                if kind == "application/json" {
                    conforms(&answer.json(), &content["schema"], &document, path);
                }
            }
        }
        // The errors too.
        let error = &document["components"]["schemas"]["Error"];
        for answer in [
            command(address, "remove", Some(TOKEN), "{}"),
            command(address, "remove", Some(TOKEN), "{\"node\": \"nobody\"}"),
            command(address, "dance", Some(TOKEN), ""),
            command(address, "re-explore", Some(TOKEN), ""),
            command(address, "pause", None, ""),
            get(address, "/api/v1/nodes/nobody"),
            get(address, "/api/v1/rounds?from=yesterday"),
            get(address, "/nothing"),
            request(address, "DELETE", "/api/v1/nodes", &[], ""),
        ] {
            assert!((400..500).contains(&answer.status), "{answer:?}");
            conforms(&answer.json(), error, &document, "error");
        }
    })
    .await
    .unwrap();
}
