//! The actor that serves `/metrics`, `/healthz` and `/readyz`.

use std::{
    collections::HashMap,
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, WrapFuture as _};
use axum::{
    Router,
    extract::{Query, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use boatswain_supervision::{Context, Failure, supervised};
use prometheus::{Registry, TextEncoder};

use super::Checks;

/// What the pages are made from.
#[derive(Clone, Default)]
pub(crate) struct Telemetry {
    pub(crate) registry: Registry,
    pub(crate) ready: Checks,
    pub(crate) live: Checks,
}

/// Opens the address to listen on, before anything else starts: a port that is taken is an error of the start.
///
/// # Errors
///
/// When the address cannot be bound.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

pub(crate) struct TelemetryActor {
    telemetry: Telemetry,
    listener: Arc<TcpListener>,
}

impl TelemetryActor {
    pub(crate) fn new(telemetry: Telemetry, listener: Arc<TcpListener>) -> Self {
        Self {
            telemetry,
            listener,
        }
    }
}

supervised!(TelemetryActor);

impl Actor for TelemetryActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let app = router(self.telemetry.clone());
        let listener = self
            .listener
            .try_clone()
            .and_then(tokio::net::TcpListener::from_std);
        let served = async move { axum::serve(listener?, app).await };
        // up without serving it would look as if nobody asked: a new incarnation tries again, and the process ends when that does not help
        let ended = served.into_actor(self).map(|served, _, ctx| {
            let why = match served {
                Ok(()) => "metrics and probes are no longer served".to_owned(),
                Err(error) => format!("metrics and probes cannot be served: {error}"),
            };
            ctx.fail(Failure::transient(why));
        });
        ctx.spawn(ended);
    }
}

fn router(telemetry: Telemetry) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(telemetry)
}

async fn metrics(State(telemetry): State<Telemetry>) -> Response {
    match TextEncoder::new().encode_to_string(&telemetry.registry.gather()) {
        Ok(page) => ([(CONTENT_TYPE, "text/plain; version=0.0.4")], page).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

type Flags = Query<HashMap<String, String>>;

async fn healthz(State(telemetry): State<Telemetry>, Query(flags): Flags) -> Response {
    probe(telemetry.live.run("healthz"), flags.contains_key("verbose"))
}

async fn readyz(State(telemetry): State<Telemetry>, Query(flags): Flags) -> Response {
    probe(telemetry.ready.run("readyz"), flags.contains_key("verbose"))
}

/// In the manner of the API server: why it fails is always said, why it passes when asked.
fn probe((passes, page): (bool, String), verbose: bool) -> Response {
    match (passes, verbose) {
        (true, false) => "ok".into_response(),
        (true, true) => page.into_response(),
        (false, _) => (StatusCode::INTERNAL_SERVER_ERROR, page).into_response(),
    }
}
