//! The actor that serves `/metrics`, `/healthz` and `/readyz`.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
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
    let listener = TcpListener::bind(address).or_else(|error| match instead(address, &error) {
        Some(address) => TcpListener::bind(address),
        None => Err(error),
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Every address of IPv4 for every address of both kinds, on a machine that has no IPv6 at all: `[::]` serves everywhere then.
fn instead(address: SocketAddr, error: &io::Error) -> Option<SocketAddr> {
    let every = address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let is_unknown = error.raw_os_error() == Some(NO_SUCH_FAMILY)
        || error.kind() == io::ErrorKind::AddrNotAvailable;
    (every && is_unknown).then(|| (Ipv4Addr::UNSPECIFIED, address.port()).into())
}

/// EAFNOSUPPORT, which has no name in the standard library.
const NO_SUCH_FAMILY: i32 = if cfg!(target_os = "linux") { 97 } else { 47 };

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_are_those_of_ipv4_where_there_is_no_ipv6_and_nothing_else_is_replaced() {
        let missing = io::Error::from_raw_os_error(NO_SUCH_FAMILY);
        let disabled = io::Error::from(io::ErrorKind::AddrNotAvailable);
        let taken = io::Error::from(io::ErrorKind::AddrInUse);
        let address = |text: &str| text.parse::<SocketAddr>().expect(text);
        let every = address("[::]:8080");
        for error in [&missing, &disabled] {
            assert_eq!(instead(every, error), Some(address("0.0.0.0:8080")));
            assert_eq!(instead(address("[::1]:8080"), error), None);
            assert_eq!(instead(address("10.0.0.1:8080"), error), None);
        }
        assert_eq!(instead(every, &taken), None);
    }
}
