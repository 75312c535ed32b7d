//! Counts what the clients of a manager ask, what they are answered, and how long that takes, for `/metrics`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use boatswain_supervision::Clock;
use http::{Method, Request, Response};
use kube::client::Body;
use tower::{BoxError, Layer, Service};
use tracing::{Instrument as _, Span};

use super::{BoxFuture, sent};
use crate::{
    dispatch::{Spread, Sums},
    sync::lock,
};

const MS: u64 = 1_000_000;
/// client-go's bounds for times of requests, in nanoseconds.
#[rustfmt::skip]
pub(crate) const REQUEST: &[u64] = &[
    5 * MS, 25 * MS, 100 * MS, 250 * MS, 500 * MS, 1000 * MS, 2000 * MS, 4000 * MS, 8000 * MS, 15_000 * MS, 30_000 * MS, 60_000 * MS,
];

/// The requests to one server so far; a clone is the same.
#[derive(Clone)]
pub(crate) struct Requests {
    host: Arc<str>,
    counts: Arc<Mutex<BTreeMap<Name, Counts>>>,
}

/// The name of a method.
type Name = &'static str;

struct Counts {
    /// By code; [`NO_ANSWER`] where there was none.
    answers: BTreeMap<u16, u64>,
    took: Spread,
    waited: Spread,
}

/// What is counted where no answer came.
pub(crate) const NO_ANSWER: u16 = 0;

/// Requests of one method, for a scrape.
pub(crate) struct Measured {
    pub(crate) method: &'static str,
    pub(crate) answers: Vec<(u16, u64)>,
    /// Until their answers began.
    pub(crate) took: Sums,
    /// Until the client's limits let them go.
    pub(crate) waited: Sums,
}

impl Requests {
    pub(crate) fn to(address: &str) -> Self {
        let host = address
            .split_once("://")
            .map_or(address, |(_, host)| host)
            .trim_end_matches('/');
        Self {
            host: host.into(),
            counts: Arc::default(),
        }
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn measured(&self) -> Vec<Measured> {
        let counts = lock(&self.counts);
        let sums = |spread| {
            let mut sums = Sums::default();
            sums.add(spread);
            sums
        };
        let measured = counts.iter().map(|(method, counts)| Measured {
            method,
            answers: counts.answers.iter().map(|(code, n)| (*code, *n)).collect(),
            took: sums(&counts.took),
            waited: sums(&counts.waited),
        });
        measured.collect()
    }

    /// A request waited so long for its turn.
    pub(crate) fn waited(&self, method: &Method, time: Duration) {
        self.count(method, |counts| counts.waited.tell(time));
    }

    fn answered(&self, method: &Method, code: u16, time: Duration) {
        self.count(method, |counts| {
            *counts.answers.entry(code).or_default() += 1;
            counts.took.tell(time);
        });
    }

    fn count(&self, method: &Method, count: impl FnOnce(&mut Counts)) {
        let method = name(method);
        let mut counts = lock(&self.counts);
        count(counts.entry(method).or_insert_with(|| Counts {
            answers: BTreeMap::new(),
            took: Spread::new(REQUEST),
            waited: Spread::new(REQUEST),
        }));
    }
}

/// A name that costs nothing to keep; no others are sent.
fn name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "OTHER",
    }
}

/// Measures each request as it is sent: innermost, so that what waits for its turn is not counted.
#[derive(Clone)]
pub(crate) struct MeasureLayer {
    requests: Requests,
    clock: Clock,
}

impl MeasureLayer {
    pub(crate) fn new(requests: Requests, clock: Clock) -> Self {
        Self { requests, clock }
    }
}

impl<S> Layer<S> for MeasureLayer {
    type Service = Measure<S>;

    fn layer(&self, inner: S) -> Measure<S> {
        Measure {
            layer: self.clone(),
            inner: Arc::new(tokio::sync::Mutex::new(inner)),
        }
    }
}

pub(crate) struct Measure<S> {
    layer: MeasureLayer,
    inner: Arc<tokio::sync::Mutex<S>>,
}

impl<S, B> Service<Request<Body>> for Measure<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Send + 'static,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let span = traced(&mut request);
        let MeasureLayer { requests, clock } = self.layer.clone();
        let inner = self.inner.clone();
        Box::pin(async move {
            let method = request.method().clone();
            let begun = clock.now();
            let answer = sent(inner, request).instrument(span.clone()).await;
            let code = answer
                .as_ref()
                .map_or(NO_ANSWER, |answer| answer.status().as_u16());
            span.record("http.response.status_code", code);
            requests.answered(&method, code, clock.now().saturating_duration_since(begun));
            answer
        })
    }
}

/// The part of a trace that the request is, if any.
#[cfg(feature = "otel")]
fn traced(request: &mut Request<Body>) -> Span {
    crate::trace::of_request(request)
}

#[cfg(not(feature = "otel"))]
fn traced(_: &mut Request<Body>) -> Span {
    Span::none()
}
