//! The HTTP side: routes, and what they answer.

mod actions;
mod door;
mod guard;
mod pages;
mod problems;
mod stream;

use std::{net::TcpListener, sync::Arc};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Path, Query, State},
    http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
    middleware,
    response::{IntoResponse as _, Response},
    routing::{MethodRouter, get, post},
};
use serde::{Deserialize, Deserializer, Serialize};

pub use self::{
    door::{CONNECTIONS, IDLE, PATIENCE},
    guard::{Guard, GuardError},
    stream::READERS,
};
use self::{
    door::{Door, Peer},
    guard::stand,
    problems::{in_one_form, problem, refused, starting},
};
use crate::{
    core::Dashboard,
    source::{KeyQuery, Refused, Source, Top},
    view::{Keys, Overview},
};

/// The routes in the words of OpenAPI.
pub(crate) const OPENAPI: &str = include_str!("../../openapi.yaml");

/// Keys that are shown if nobody says how many.
const KEYS: usize = 100;
/// Keys that are shown at most.
const KEYS_MOST: usize = 1000;
/// Bytes of what somebody asks for.
const BODY: usize = 16 * 1024;

/// Serves until the future is dropped.
pub(crate) async fn serve(dashboard: Dashboard, listener: Arc<TcpListener>) {
    let listener = listener
        .try_clone()
        .and_then(tokio::net::TcpListener::from_std);
    let listener = match listener {
        Ok(listener) => Door::new(listener, dashboard.clock().clone()),
        Err(error) => {
            tracing::error!(%error, "the dashboard cannot be served");
            return;
        }
    };
    if let Ok(address) = axum::serve::Listener::local_addr(&listener) {
        tracing::info!(%address, "the dashboard is served");
    }
    let app = router(dashboard).into_make_service_with_connect_info::<Peer>();
    if let Err(error) = axum::serve(listener, app).await {
        tracing::error!(%error, "the dashboard is no longer served");
    }
}

/// What can be asked for.
fn api() -> [(&'static str, MethodRouter<Dashboard>); 11] {
    [
        ("/api/v1/overview", get(overview)),
        ("/api/v1/health", get(health)),
        ("/api/v1/tree", get(tree)),
        ("/api/v1/controllers", get(controllers)),
        ("/api/v1/informers", get(informers)),
        ("/api/v1/keys", get(keys)),
        (
            "/api/v1/keys/{controller}/{name}",
            get(explain_cluster_wide),
        ),
        ("/api/v1/keys/{controller}/{namespace}/{name}", get(explain)),
        ("/api/v1/parked", get(parked)),
        ("/api/v1/stream", get(stream::stream)),
        ("/api/v1/actions/{action}", post(actions::act)),
    ]
}

fn router(dashboard: Dashboard) -> Router {
    let routes = api().into_iter();
    let api = routes.fold(Router::new(), |router, (path, methods)| {
        router.route(path, methods)
    });
    Router::new()
        .merge(pages::routes())
        .merge(api)
        .fallback(|| async {
            problem(
                StatusCode::NOT_FOUND,
                "there is nothing here; see /openapi.yaml",
            )
        })
        .layer(DefaultBodyLimit::max(BODY))
        .layer(middleware::from_fn(in_one_form))
        .layer(middleware::from_fn_with_state(dashboard.clone(), stand))
        .with_state(dashboard)
}

fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => {
            let kind = HeaderValue::from_static("application/json");
            ([(CONTENT_TYPE, kind)], body).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Answers with a part of the newest picture.
fn shown<T: Serialize>(dashboard: &Dashboard, part: impl FnOnce(&Overview) -> &T) -> Response {
    match dashboard.picture() {
        Some(picture) => json(part(&picture.overview)),
        None => starting(),
    }
}

async fn overview(State(dashboard): State<Dashboard>) -> Response {
    shown(&dashboard, |overview| overview)
}

async fn health(State(dashboard): State<Dashboard>) -> Response {
    shown(&dashboard, |overview| &overview.health)
}

async fn tree(State(dashboard): State<Dashboard>) -> Response {
    shown(&dashboard, |overview| &overview.tree)
}

async fn informers(State(dashboard): State<Dashboard>) -> Response {
    shown(&dashboard, |overview| &overview.informers)
}

async fn controllers(State(dashboard): State<Dashboard>) -> Response {
    match dashboard.controllers() {
        Some(controllers) => json(&controllers),
        None => starting(),
    }
}

#[derive(Deserialize)]
#[serde(default)]
struct Asked {
    controller: Option<String>,
    q: String,
    state: String,
    top: Option<Top>,
    #[serde(deserialize_with = "bounded")]
    limit: usize,
}

/// How many keys may be asked for. More are not cut down to that: who counts them would take them for all.
fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let text = String::deserialize(deserializer)?;
    let limit = text.parse().ok();
    let limit = limit.filter(|limit| (1..=KEYS_MOST).contains(limit));
    limit.ok_or_else(|| {
        let why = format!("{text:?} is not a number from 1 to {KEYS_MOST}");
        serde::de::Error::custom(why)
    })
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            controller: None,
            q: String::new(),
            state: String::new(),
            top: None,
            limit: KEYS,
        }
    }
}

/// What keys can be asked for by what they do.
const STATES: [&str; 8] = [
    "",
    "idle",
    "queued",
    "running",
    "waiting",
    "held",
    "parked",
    "undecodable",
];

impl Asked {
    /// The controller that is meant; all where nothing is said.
    fn controller(&self) -> Option<&str> {
        self.controller.as_deref().filter(|name| !name.is_empty())
    }
}

async fn keys(State(dashboard): State<Dashboard>, Query(asked): Query<Asked>) -> Response {
    found(&dashboard, &asked, |source| {
        let limit = asked.limit;
        if let Some(top) = asked.top {
            let keys = source.top(top, asked.controller(), limit)?;
            return Ok(Keys { keys, more: false });
        }
        source.keys(&KeyQuery {
            controller: asked.controller().map(str::to_owned),
            limit,
            q: asked.q.clone(),
            state: asked.state.clone(),
        })
    })
}

async fn parked(State(dashboard): State<Dashboard>, Query(asked): Query<Asked>) -> Response {
    found(&dashboard, &asked, |source| {
        source.parked(asked.controller(), &asked.q, asked.limit)
    })
}

/// What there is of what is asked for. An empty answer would be taken for good news, so who asks for keys in a state that there is not is told so.
fn found<T: Serialize>(
    dashboard: &Dashboard,
    asked: &Asked,
    of: impl FnOnce(&dyn Source) -> Result<T, Refused>,
) -> Response {
    if STATES.contains(&asked.state.as_str()) {
        return answer(dashboard, of);
    }
    let known = STATES[1..].join(", ");
    let why = format!("there is no state {:?}; there are {known}", asked.state);
    problem(StatusCode::BAD_REQUEST, why)
}

async fn explain(
    State(dashboard): State<Dashboard>,
    Path((controller, namespace, name)): Path<(String, String, String)>,
) -> Response {
    explained(&dashboard, &controller, &format!("{namespace}/{name}"))
}

async fn explain_cluster_wide(
    State(dashboard): State<Dashboard>,
    Path((controller, name)): Path<(String, String)>,
) -> Response {
    explained(&dashboard, &controller, &name)
}

fn explained(dashboard: &Dashboard, controller: &str, key: &str) -> Response {
    answer(dashboard, |source| source.explain(controller, key))
}

fn answer<T: Serialize>(
    dashboard: &Dashboard,
    of: impl FnOnce(&dyn Source) -> Result<T, Refused>,
) -> Response {
    match dashboard.source().map(|source| of(&**source)) {
        Some(Ok(told)) => json(&told),
        Some(Err(why)) => refused(why),
        None => starting(),
    }
}

#[cfg(test)]
mod tests;
