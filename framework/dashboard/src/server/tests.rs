use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::{Duration, SystemTime},
};

use axum::{
    body::Body,
    http::{Method, Request},
};
use boatswain_supervision::{Clock, Events, TreeSnapshot};
use futures::future::BoxFuture;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;
use crate::{
    source::{Action, Refused},
    view::*,
};

mod refusals;
mod schemas;

const TOKEN: &str = "0123456789abcdef";
const EVIL: &str = "<img src=x onerror=alert(1)>";

/// A source that always shows the same, and remembers what it was asked to do.
#[derive(Default)]
struct Still(std::sync::Mutex<Vec<Action>>, AtomicUsize);

/// Whether there is a controller called so.
fn known(controller: Option<&str>) -> Result<(), Refused> {
    match controller {
        None | Some("scaler") => Ok(()),
        Some(other) => Err(Refused::Unknown(other.into())),
    }
}

impl Source for Still {
    fn process(&self) -> Process {
        self.1.fetch_add(1, Relaxed);
        Process::default()
    }
    fn tree(&self) -> TreeSnapshot {
        TreeSnapshot {
            root: None,
            left_behind: Vec::new(),
            tasks: 0,
        }
    }
    fn events(&self) -> Events {
        unreachable!("no actor runs here")
    }
    fn controllers(&self) -> Vec<ControllerView> {
        vec![ControllerView {
            name: "scaler".into(),
            ..ControllerView::default()
        }]
    }
    fn informers(&self) -> Vec<InformerView> {
        vec![InformerView::default()]
    }
    fn leases(&self) -> Vec<LeaseView> {
        vec![LeaseView::default()]
    }
    fn unready(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    fn keys(&self, query: &KeyQuery) -> Result<Keys, Refused> {
        known(query.controller.as_deref())?;
        let row = KeyRow {
            key: format!("{EVIL}/{}", query.q),
            ..KeyRow::default()
        };
        Ok(Keys {
            keys: vec![row; query.limit],
            more: false,
        })
    }
    fn top(&self, _: Top, of: Option<&str>, _: usize) -> Result<Vec<KeyRow>, Refused> {
        known(of).map(|()| Vec::new())
    }
    fn explain(&self, controller: &str, key: &str) -> Result<KeyView, Refused> {
        let row = KeyRow {
            key: key.into(),
            ..KeyRow::default()
        };
        let view = KeyView {
            row,
            ..KeyView::default()
        };
        known(Some(controller)).map(|()| view)
    }
    fn parked(&self, of: Option<&str>, _: &str, _: usize) -> Result<Parked, Refused> {
        known(of).map(|()| Parked {
            parked: vec![ParkedRow::default()],
            total: 1,
        })
    }
    fn act(&self, action: Action) -> BoxFuture<'static, Result<String, Refused>> {
        self.0.lock().expect("whole").push(action);
        Box::pin(async { Ok("done".into()) })
    }
}

struct Scene {
    app: Router,
    source: Arc<Still>,
    dashboard: Dashboard,
    _token: tempfile::NamedTempFile,
}

fn scene(with_token: bool) -> Scene {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), format!("{TOKEN}\n")).expect("written");
    let guard = Guard {
        hosts: Vec::new(),
        token_file: with_token.then(|| file.path().to_owned()),
    };
    guard.check().expect("a good token");
    let dashboard = Dashboard::new(Clock::paused(SystemTime::UNIX_EPOCH), guard);
    let source = Arc::new(Still::default());
    dashboard.attach(source.clone());
    dashboard.look();
    Scene {
        app: router(dashboard.clone()),
        source,
        dashboard,
        _token: file,
    }
}

impl Scene {
    async fn send(&self, request: Request<Body>) -> Response {
        let answer = self.app.clone().oneshot(request).await;
        answer.expect("it cannot fail")
    }

    /// A reader of the stream.
    async fn open(&self) -> Response {
        let request = Request::get("/api/v1/stream").header("host", "localhost");
        self.send(request.body(Body::empty()).expect("sound")).await
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        let request = Request::get(path).header("host", "localhost:8081");
        read(self.send(request.body(Body::empty()).expect("sound")).await).await
    }

    /// An action, with more headers.
    async fn act(&self, name: &str, body: Value, headers: &[(&str, &str)]) -> (StatusCode, Value) {
        let mut request = Request::post(format!("/api/v1/actions/{name}"));
        let own = [
            ("host", "localhost:8081"),
            ("content-type", "application/json"),
        ];
        for (name, value) in own.iter().chain(headers) {
            let headers = request.headers_mut().expect("sound");
            let name: axum::http::HeaderName = name.parse().expect("a name");
            headers.insert(name, value.parse().expect("a value"));
        }
        let request = request.body(Body::from(body.to_string())).expect("sound");
        read(self.send(request).await).await
    }
}

async fn read(response: Response) -> (StatusCode, Value) {
    let code = response.status();
    let body = response.into_body().collect().await.expect("a body");
    let body = serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null);
    (code, body)
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[tokio::test(start_paused = true)]
async fn routes_and_the_openapi_file_agree_and_answers_have_what_it_requires() {
    let spec: Value = serde_saphyr::from_str(OPENAPI).expect("YAML");
    let scene = scene(true);
    let paths = spec["paths"].as_object().expect("paths");
    let described: BTreeSet<_> = paths.keys().cloned().collect();
    let routed: BTreeSet<_> = api().into_iter().map(|(path, _)| path.to_owned()).collect();
    assert_eq!(routed, described);
    for (path, methods) in paths {
        let path = path
            .replace("{controller}", "scaler")
            .replace("{namespace}", "shop")
            .replace("{name}", "web")
            .replace("{action}", "verify");
        for method in ["get", "post", "put", "delete"] {
            if path.ends_with("/stream") && method == "get" {
                continue;
            }
            let request = Request::builder()
                .method(method.to_uppercase().parse::<Method>().expect("a method"))
                .uri(&path)
                .header("host", "localhost")
                .header("authorization", bearer(TOKEN))
                .body(Body::empty())
                .expect("sound");
            let (code, body) = read(scene.send(request).await).await;
            match methods.get(method) {
                Some(described) => {
                    assert!(code.is_success(), "{method} {path}: {code}");
                    let schema =
                        &described["responses"]["200"]["content"]["application/json"]["schema"];
                    if method == "get" {
                        complete(&spec, schema, &body, &path);
                    }
                }
                None => assert_eq!(code, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}"),
            }
        }
    }
}

/// Everything that a schema requires is in `value`, and nothing is that a complete one does not know.
fn complete(api: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.trim_start_matches('#');
        return complete(api, api.pointer(name).expect("it exists"), value, at);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        complete(api, part, value, at);
    }
    for field in schema["required"].as_array().into_iter().flatten() {
        let field = field.as_str().expect("a name");
        let inner = value.get(field);
        assert!(inner.is_some(), "{at} lacks {field}: {value}");
    }
    for (name, of) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(inner) = value.get(name).filter(|inner| !inner.is_null()) {
            complete(api, of, inner, &format!("{at}.{name}"));
        }
    }
    for item in value.as_array().into_iter().flatten() {
        complete(api, &schema["items"], item, at);
    }
}

#[tokio::test(start_paused = true)]
async fn actions_need_a_configured_token_and_exactly_that() {
    let body = || json!({ "controller": "scaler", "key": "shop/web" });
    let right = bearer(TOKEN);
    let off = scene(false);
    let (code, told) = off
        .act("requeue", body(), &[("authorization", &right)])
        .await;
    assert_eq!(code, StatusCode::FORBIDDEN);
    let error = told["error"].as_str().expect("words");
    assert!(error.contains("--dashboard-token-file"), "{error}");
    let on = scene(true);
    let wrong = bearer("0123456789abcdeg");
    let short = bearer("0");
    let empty = bearer("");
    for given in [&wrong, &short, &empty, TOKEN] {
        let (code, _) = on.act("requeue", body(), &[("authorization", given)]).await;
        assert_eq!(code, StatusCode::FORBIDDEN, "{given}");
    }
    assert_eq!(
        on.act("requeue", body(), &[]).await.0,
        StatusCode::FORBIDDEN
    );
    let (code, _) = on.act(&format!("requeue?token={TOKEN}"), body(), &[]).await;
    assert_eq!(code, StatusCode::FORBIDDEN, "never in an address");
    assert!(on.source.0.lock().expect("whole").is_empty());
    let (code, told) = on
        .act("requeue", body(), &[("authorization", &right)])
        .await;
    assert_eq!(
        (code, told["done"].as_str()),
        (StatusCode::OK, Some("done"))
    );
    let asked = on.source.0.lock().expect("whole").clone();
    let (controller, key) = ("scaler".into(), "shop/web".into());
    assert_eq!(asked, [Action::Requeue { controller, key }]);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_host_or_origin_is_refused_whatever_it_knows() {
    let scene = scene(true);
    let right = bearer(TOKEN);
    for foreign in [
        ("host", "evil.example.com:8081"),
        ("origin", "http://evil.example.com"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let headers = [("authorization", right.as_str()), foreign];
        let body = json!({ "controller": "scaler" });
        let (code, _) = scene.act("pause", body, &headers).await;
        assert_eq!(code, StatusCode::FORBIDDEN, "{foreign:?}");
    }
    for path in ["/", "/api/v1/overview", "/api/v1/stream", "/nowhere"] {
        let request = Request::get(path).header("host", "rebound.example.com");
        let answer = scene
            .send(request.body(Body::empty()).expect("sound"))
            .await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{path}");
    }
    assert!(scene.source.0.lock().expect("whole").is_empty());
    let headers = [
        ("authorization", right.as_str()),
        ("origin", "http://localhost:8081"),
    ];
    let (code, _) = scene
        .act("pause", json!({ "controller": "scaler" }), &headers)
        .await;
    assert_eq!(code, StatusCode::OK, "its own page may");
}

#[tokio::test(start_paused = true)]
async fn every_answer_tells_browsers_to_trust_nothing_else() {
    let scene = scene(false);
    for path in ["/", "/app.js", "/api/v1/keys", "/nowhere"] {
        let request = Request::get(path).header("host", "[::1]:8081");
        let answer = scene
            .send(request.body(Body::empty()).expect("sound"))
            .await;
        let header = |name: &str| answer.headers()[name].to_str().expect("text").to_owned();
        let policy = header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("cache-control"), "no-store");
    }
}

#[tokio::test(start_paused = true)]
async fn names_stay_data_and_lists_are_bounded() {
    let scene = scene(false);
    let (_, told) = scene.get("/api/v1/keys?q=web&limit=1000").await;
    let keys = told["keys"].as_array().expect("keys");
    assert_eq!(keys.len(), KEYS_MOST);
    for path in ["keys", "parked"] {
        for beyond in ["0", "1001", "99999999", "-1", "many", ""] {
            let path = format!("/api/v1/{path}?q=web&limit={beyond}");
            let (code, told) = scene.get(&path).await;
            let error = told["error"].as_str().expect("words");
            assert_eq!(code, StatusCode::BAD_REQUEST, "{path}: {error}");
            assert!(error.contains("from 1 to 1000"), "{path}: {error}");
        }
    }
    assert_eq!(keys[0]["key"], format!("{EVIL}/web"));
    assert_eq!(
        scene.get("/api/v1/keys/other/shop/web").await.0,
        StatusCode::NOT_FOUND
    );
    let (_, told) = scene.get("/api/v1/keys/scaler/node-1").await;
    assert_eq!(told["key"], "node-1");
}

#[tokio::test(start_paused = true)]
async fn all_readers_of_the_stream_share_one_picture_and_slow_ones_miss_some() {
    let scene = scene(false);
    let (mut one, mut other) = (
        scene.open().await.into_body(),
        scene.open().await.into_body(),
    );
    let (first, same) = (frame(&mut one).await, frame(&mut other).await);
    assert!(first.starts_with(b"event: overview\nid: "), "{first:?}");
    assert_eq!(first.as_ptr(), same.as_ptr(), "the bytes are shared");
    for _ in 0..100 {
        scene.dashboard.look();
        let _ = frame(&mut other).await;
    }
    let newest = scene.dashboard.picture().expect("one").frame();
    assert_eq!(
        frame(&mut one).await.as_ptr(),
        newest.as_ptr(),
        "none is kept for it"
    );
}

async fn frame(body: &mut Body) -> bytes::Bytes {
    let frame = body
        .frame()
        .await
        .expect("it goes on")
        .expect("it is sound");
    frame.into_data().expect("data")
}

#[tokio::test(start_paused = true)]
async fn a_picture_is_taken_each_second_while_somebody_looks_and_in_ten_while_nobody_does() {
    let scene = scene(false);
    let dashboard = scene.dashboard.clone();
    let clock = dashboard.clock().clone();
    let looking = tokio::spawn(async move { dashboard.keep_looking().await });
    let taken = async |seconds| {
        let before = scene.source.1.load(Relaxed);
        clock.sleep(Duration::from_secs(seconds)).await;
        scene.source.1.load(Relaxed) - before
    };
    clock.sleep(Duration::from_millis(4500)).await;
    assert_eq!(taken(100).await, 10);
    // whoever comes sees what is, not what was
    let mut reader = scene.open().await.into_body();
    let now = format!("event: overview\nid: {}\n", scene.dashboard.now_ms());
    assert!(frame(&mut reader).await.starts_with(now.as_bytes()));
    clock.sleep(Duration::from_millis(500)).await;
    assert_eq!(taken(100).await, 100);
    drop(reader);
    clock.sleep(Duration::from_secs(20)).await;
    // a picture that is hardly old will do, but the next is not far
    scene.dashboard.look();
    clock.sleep(Duration::from_millis(1500)).await;
    let reader = scene.open().await;
    assert!((9..=11).contains(&taken(10).await));
    drop(reader);
    clock.sleep(Duration::from_millis(500)).await;
    assert_eq!(scene.get("/api/v1/health").await.0, StatusCode::OK);
    assert_eq!(taken(10).await, 10, "who asks once may ask again");
    taken(10).await;
    assert_eq!(taken(100).await, 10);
    looking.abort();
}

#[tokio::test(start_paused = true)]
async fn readers_are_bounded_and_their_places_come_back() {
    let scene = scene(false);
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let reader = scene.open().await;
        assert_eq!(reader.status(), StatusCode::OK);
        readers.push(reader);
    }
    assert_eq!(scene.open().await.status(), StatusCode::SERVICE_UNAVAILABLE);
    readers.pop();
    assert_eq!(scene.open().await.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_keys_of_what_there_is_not_is_told_so_and_not_that_there_are_none() {
    let scene = scene(false);
    for path in ["keys", "parked"] {
        let of = async |query: &str| scene.get(&format!("/api/v1/{path}?{query}")).await.0;
        assert_eq!(of("state=bogus").await, StatusCode::BAD_REQUEST, "{path}");
        assert_eq!(of("controller=nope").await, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(
            of("state=parked&controller=scaler").await,
            StatusCode::OK,
            "{path}"
        );
        assert_eq!(of("state=&controller=").await, StatusCode::OK, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn before_the_tree_has_started_one_is_told_to_come_back() {
    let dashboard = Dashboard::new(Clock::paused(SystemTime::UNIX_EPOCH), Guard::default());
    let scene = Scene {
        app: router(dashboard.clone()),
        source: Arc::default(),
        dashboard,
        _token: tempfile::NamedTempFile::new().expect("a file"),
    };
    for path in ["/api/v1/overview", "/api/v1/parked", "/api/v1/controllers"] {
        assert_eq!(
            scene.get(path).await.0,
            StatusCode::SERVICE_UNAVAILABLE,
            "{path}"
        );
    }
}

#[test]
fn a_token_that_is_short_missing_or_cannot_be_sent_is_an_error() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "short").expect("written");
    let of = |path: &std::path::Path| Guard {
        hosts: Vec::new(),
        token_file: Some(path.to_owned()),
    };
    let short = of(file.path()).check().expect_err("it is short");
    assert!(short.to_string().contains("16 characters"), "{short}");
    let missing = of(std::path::Path::new("/nowhere/token")).check();
    assert!(matches!(missing, Err(GuardError::Read { .. })));
    let folder = of(&std::env::temp_dir()).check();
    assert!(matches!(folder, Err(GuardError::NoFile { .. })));
    std::fs::write(file.path(), "two words of sixteen").expect("written");
    let words = of(file.path()).check();
    assert!(matches!(words, Err(GuardError::Unsendable { .. })));
}
