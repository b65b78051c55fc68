//! The OpenAPI document tells the truth: about which routes there are, and about what they answer.

use super::home::{Home, coloc, text};
use super::http::ask;
use serde_json::{Value, json};

/// The schema of what a route answers, with the types that it refers to.
fn answer_schema(document: &Value, path: &str, method: &str, status: &str) -> Value {
    let pointer = format!(
        "/paths/{}/{method}/responses/{status}/content/application~1json/schema",
        path.replace('/', "~1")
    );
    let schema = document.pointer(&pointer).unwrap_or_else(|| panic!("{pointer} is missing"));
    json!({ "allOf": [schema], "components": document["components"] })
}

fn check(document: &Value, path: &str, method: &str, status: &str, answer: &Value) {
    let validator = jsonschema::validator_for(&answer_schema(document, path, method, status));
    let validator = validator.expect("a schema");
    let wrong: Vec<String> = validator.iter_errors(answer).map(|e| e.to_string()).collect();
    assert!(wrong.is_empty(), "{method} {path}: {wrong:?} in {answer:#}");
    assert_eq!(answer["schema"], 1, "{method} {path}: {answer:#}");
}

#[test]
fn answers_are_as_the_document_says() {
    let home = Home::new(&["--emulate", "2xA100-40GB"]);
    let document = ask(&home, "GET /openapi.json", "", b"").json();
    let printed = text(&coloc().arg("api").output().expect("it runs").stdout);
    assert_eq!(document, serde_json::from_str::<Value>(&printed).expect("JSON"), "also offline");

    let submission = json!({ "spec": {
        "name": "a", "command": ["sh", "-c", "echo hello; exit 3"], "directory": "/", "gpus": 1,
        "environment": [["PATH", "/usr/bin:/bin"], [{"hex": "ff"}, "not UTF-8"]], "gpu_memory": 1 << 30,
        "time_limit": 60_000, "on_oom": "fail", "warning": { "signal": 10, "before": 1000 },
    }});
    let type_of = |pointer: &str| {
        let schema = document.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is missing"));
        let schema = json!({ "allOf": [schema], "components": document["components"] });
        jsonschema::validator_for(&schema).expect("a schema")
    };
    let body = "/paths/~1v1~1tasks/post/requestBody/content/application~1json/schema";
    assert!(type_of(body).is_valid(&submission));
    assert!(!type_of(body).is_valid(&json!({ "spec": { "name": "a" } })), "a command is needed");
    let mut odd = submission.clone();
    odd["spec"]["colour"] = "red".into();
    assert!(!type_of(body).is_valid(&odd), "what is unknown is refused");

    let sent = ask(&home, "POST /v1/tasks", "", submission.to_string().as_bytes());
    assert_eq!(sent.status, 200, "{}", sent.head);
    check(&document, "/v1/tasks", "post", "200", &sent.json());
    home.submit(&["--hold", "-a", "1-3", "--", "true"]);
    let held = home.submit(&["-d", "afterok:1", "--hold", "--", "true"]);
    for (path, served) in [
        ("/v1/tasks/{id}/wait", "/v1/tasks/1/wait".to_owned()),
        ("/v1/tasks", "/v1/tasks".to_owned()),
        ("/v1/tasks", "/v1/tasks?all=true".to_owned()),
        ("/v1/tasks/{id}", "/v1/tasks/1".to_owned()),
        ("/v1/tasks/{id}", "/v1/tasks/2".to_owned()),
        ("/v1/tasks/{id}/why", format!("/v1/tasks/{held}/why")),
        ("/v1/gpus", "/v1/gpus".to_owned()),
        ("/v1/status", "/v1/status".to_owned()),
    ] {
        let reply = ask(&home, &format!("GET {served}"), "", b"");
        assert_eq!(reply.status, 200, "{served}: {}", text(&reply.body));
        check(&document, path, "get", "200", &reply.json());
        assert!(reply.head.contains("coloc-schema: 1"), "{}", reply.head);
    }
    let change = json!({ "ids": [2, 999], "change": "cancel" }).to_string();
    let changed = ask(&home, "POST /v1/tasks/change", "", change.as_bytes());
    check(&document, "/v1/tasks/change", "post", "200", &changed.json());
    let lesson = br#"{"command":["true"],"directory":"/","lesson":{"sm":0.5}}"#;
    let taught = ask(&home, "POST /v1/teach", "", lesson);
    check(&document, "/v1/teach", "post", "200", &taught.json());
    let made = ask(&home, "POST /v1/tokens", "", b"{}");
    check(&document, "/v1/tokens", "post", "200", &made.json());
    let revoked = ask(&home, "POST /v1/tokens/1/revoke", "", b"");
    check(&document, "/v1/tokens/{id}/revoke", "post", "200", &revoked.json());
    let tokens = ask(&home, "GET /v1/tokens", "", b"");
    check(&document, "/v1/tokens", "get", "200", &tokens.json());
    let drained = ask(&home, "POST /v1/drain", "", b"false");
    check(&document, "/v1/drain", "post", "200", &drained.json());
    let log = ask(&home, "GET /v1/tasks/1/log", "", b"");
    assert_eq!((log.status, text(&log.body).as_str()), (200, "hello\n"));
}

#[test]
fn what_is_listed_is_served_and_nothing_else() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let document = ask(&home, "GET /openapi.json", "", b"").json();
    let paths = document["paths"].as_object().expect("paths");
    assert!(paths.len() >= 10);
    for (path, methods) in paths {
        // An event stream never ends.
        if path == "/v1/events" {
            continue;
        }
        let served = path.replace("{id}", "1");
        for method in ["get", "post", "put", "delete"] {
            let reply = ask(&home, &format!("{} {served}", method.to_uppercase()), "", b"");
            // There is no task or token 1: a handler that says so is there.
            let no_path = reply.status == 404 && text(&reply.body).contains("there is no /");
            let there = !no_path && reply.status != 405;
            let listed = methods.get(method).is_some();
            assert_eq!(there, listed, "{method} {path}: {} {}", reply.status, text(&reply.body));
            if reply.status >= 400 && listed {
                check(&document, path, method, "default", &reply.json());
            }
        }
    }
}

#[test]
fn refusals_say_what_was_wrong_in_one_form() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let deep = format!("{{\"spec\":{{\"command\":{}", "[".repeat(100_000));
    let huge = vec![b' '; 17 << 20];
    let wide = "x".repeat(100_000);
    for (line, headers, body, status, said) in [
        ("GET /v2/tasks", "", "", 404, "there is no /v2/tasks"),
        ("GET /v1/tasks/x", "", "", 400, "Cannot parse"),
        ("GET /v1/tasks/%ff%fe", "", "", 400, "Invalid UTF-8"),
        ("GET /v1/tasks/1/log?offset=x", "", "", 400, "offset"),
        ("GET /v1/tasks?colour=red", "", "", 400, "colour"),
        ("DELETE /v1/tasks", "", "", 405, "another way"),
        ("POST /v1/tasks", "", "{", 400, "EOF"),
        ("POST /v1/tasks", "", "{\"spec\":7}", 422, "line 1 column"),
        ("POST /v1/tasks", "", &deep, 422, "spec.command[0]: invalid type"),
        ("POST /v1/tasks", "", "\u{0}\u{1}", 400, "line 1"),
        ("GET /v1/gpus", "coloc-schema: 2\r\n", "", 400, "speaks schema 2, this daemon up to 1"),
        ("GET /v1/gpus", "coloc-schema: soon\r\n", "", 400, "schema soon"),
    ] {
        let reply = ask(&home, line, headers, body.as_bytes());
        assert_eq!(reply.status, status, "{line}: {}", text(&reply.body));
        let error = reply.json();
        let words = error["error"].as_str().expect("a reason");
        assert!(words.contains(said), "{line}: {words}");
        assert_eq!(error["schema"], 1);
    }
    assert_eq!(ask(&home, "POST /v1/tasks", "", &huge).status, 413);
    let header = format!("x: {wide}{wide}{wide}{wide}{wide}\r\n");
    let long = format!("GET /{}", "x".repeat(70_000));
    for (reply, status) in [
        (ask(&home, "GET /v1/gpus", &header, b""), 431),
        (ask(&home, &long, "", b""), 414),
        (ask(&home, "nonsense", "", b""), 400),
        (ask(&home, "GET /v1/gpus HTTP/9.9\r\nx:", "", b""), 400),
        (ask(&home, "GET /v1/gpus", "no colon\r\n", b""), 400),
    ] {
        assert_eq!(reply.status, status, "{}", reply.head);
        let error = reply.json();
        assert_eq!((&error["code"], &error["schema"]), (&"malformed".into(), &1.into()));
        assert!(reply.head.contains("coloc-schema: 1"), "{}", reply.head);
    }
    assert_eq!(ask(&home, "GET /v1/gpus", "coloc-schema: 1\r\n", b"").status, 200);
}
