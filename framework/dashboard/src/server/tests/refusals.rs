//! What is refused, and how.

use super::*;

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_must_be_understood() {
    let scene = scene(true);
    let right = bearer(TOKEN);
    let auth = ("authorization", right.as_str());
    let code = async |name: &str, body: Value, more: &[(&str, &str)]| {
        let headers: Vec<_> = std::iter::once(auth).chain(more.iter().copied()).collect();
        scene.act(name, body, &headers).await.0
    };
    assert_eq!(code("sink", json!({}), &[]).await, StatusCode::NOT_FOUND);
    assert_eq!(code("pause", json!({}), &[]).await, StatusCode::BAD_REQUEST);
    assert_eq!(code("pause", json!([]), &[]).await, StatusCode::BAD_REQUEST);
    let form = ("content-type", "text/plain");
    let body = json!({ "controller": "scaler" });
    assert_eq!(
        code("pause", body, &[form]).await,
        StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
    let long = json!({ "controller": "x".repeat(BODY) });
    assert_eq!(
        code("pause", long, &[]).await,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    assert_eq!(code("verify", json!({}), &[]).await, StatusCode::NO_CONTENT);
    assert!(scene.source.0.lock().expect("whole").is_empty());
}

#[tokio::test(start_paused = true)]
async fn whatever_is_refused_is_refused_in_json_with_one_sentence_for_people() {
    let scene = scene(true);
    let right = bearer(TOKEN);
    let send = async |method: &str, path: &str, body: String| {
        let request = Request::builder().method(method).uri(path);
        let request = request
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("authorization", &right);
        let answer = scene.send(request.body(body.into()).expect("sound")).await;
        let kind = answer.headers().get(CONTENT_TYPE).cloned();
        assert_eq!(kind.expect("a type"), "application/json", "{method} {path}");
        let header = answer.headers().get("allow").cloned();
        let allowed = header.is_some();
        let (code, told) = read(answer).await;
        let error = told["error"].as_str().expect("words").to_owned();
        assert_eq!(error.lines().count(), 1, "{error}");
        assert_eq!(allowed, code == StatusCode::METHOD_NOT_ALLOWED, "{error}");
        if let Some(header) = header {
            let header = header.to_str().expect("text");
            let said = error.split("allowed: ").nth(1).unwrap_or_default();
            let said = said.split(';').next().unwrap_or_default();
            assert!(
                header.split(',').any(|one| one == said),
                "{header}: {error}"
            );
        }
        assert!(!error.contains("deserialize"), "no word of ours: {error}");
        (code.as_u16(), error)
    };
    let pause = "/api/v1/actions/pause";
    let long = format!("{{\"controller\": \"{}\"}}", "x".repeat(BODY));
    // else it would mean all of them
    let misspelt = "{\"controller\": \"scaler\", \"query\": \"web\"}";
    for (method, path, body, code, words) in [
        ("GET", "/nowhere", "", 404, "openapi"),
        ("DELETE", "/api/v1/keys", "", 405, "DELETE"),
        ("GET", pause, "", 405, "GET"),
        ("POST", "/", "", 405, "POST"),
        ("GET", "/api/v1/keys?top=nonsense", "", 400, "failing"),
        ("GET", "/api/v1/keys?limit=0", "", 400, "limit: \"0\" is"),
        ("GET", "/api/v1/keys?state=bogus", "", 400, "idle"),
        ("GET", "/api/v1/keys/scaler/%FF/web", "", 400, "UTF-8"),
        ("GET", "/api/v1/keys/other/shop/web", "", 404, "other"),
        ("POST", pause, &long, 413, "16 kB"),
        ("POST", pause, "[]", 400, "it is an array"),
        ("POST", pause, "null", 400, "it is null"),
        ("POST", pause, "", 400, "it is empty"),
        ("POST", pause, "{", 400, "EOF"),
        ("POST", pause, "{}", 400, "`controller`"),
        ("POST", "/api/v1/actions/sink", "{}", 404, "resume"),
        ("POST", "/api/v1/actions/unpark", misspelt, 400, "`query`"),
    ] {
        let (told, error) = send(method, path, body.to_owned()).await;
        assert_eq!(told, code, "{method} {path} {body}: {error}");
        assert!(error.contains(words), "{method} {path} {body}: {error}");
        assert!(!error.contains("`action`"), "no word of ours: {error}");
        if path == pause && code == 400 {
            let example = "{\"controller\": \"podautoscaler\", \"reason\": \"migration\"}";
            assert!(error.contains(example), "{error}");
        }
    }
    assert!(scene.source.0.lock().expect("whole").is_empty());
}

#[test]
fn the_example_of_each_action_is_one() {
    for name in Action::NAMES {
        let mut example: Value = serde_json::from_str(Action::example(name)).expect("JSON");
        example["action"] = name.into();
        let action: Action = serde_json::from_value(example).expect(name);
        assert_eq!(action.name(), name);
    }
}

#[tokio::test(start_paused = true)]
async fn the_reason_of_a_pause_is_a_line_that_turns_and_clears_nothing() {
    let scene = scene(true);
    let right = bearer(TOKEN);
    let body = json!({ "controller": "scaler", "reason": "\u{202e}a storm\n\u{1b}[2J" });
    let (code, _) = scene.act("pause", body, &[("authorization", &right)]).await;
    assert_eq!(code, StatusCode::OK);
    let asked = scene.source.0.lock().expect("whole").clone();
    let reason = "\u{FFFD}a storm\u{FFFD}\u{FFFD}[2J".into();
    let controller = "scaler".into();
    assert_eq!(asked, [Action::Pause { controller, reason }]);
}
