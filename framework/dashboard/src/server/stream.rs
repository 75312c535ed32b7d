//! The stream of pictures: one a second, the same bytes for every reader.

use std::convert::Infallible;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::Response,
};
use bytes::Bytes;
use futures::stream;

use super::problem;
use crate::core::Dashboard;

/// Readers of the stream at once.
pub const READERS: usize = 64;

/// `GET /api/v1/stream`: server-sent events, each an overview. A reader that is slow misses pictures; none is kept for it.
pub(super) async fn stream(State(dashboard): State<Dashboard>) -> Response {
    let Ok(place) = dashboard.readers().clone().try_acquire_owned() else {
        let why = format!("{READERS} readers are connected already; ask /api/v1/overview instead");
        return problem(StatusCode::SERVICE_UNAVAILABLE, why);
    };
    let mut pictures = dashboard.pictures();
    // the first at once
    pictures.mark_changed();
    let frames = stream::unfold((pictures, place), |(mut pictures, place)| async move {
        loop {
            // the sender lives as long as the dashboard
            pictures.changed().await.ok()?;
            let picture = pictures.borrow_and_update().clone();
            if let Some(picture) = picture {
                return Some((Ok::<Bytes, Infallible>(picture.frame()), (pictures, place)));
            }
        }
    });
    let mut response = Response::new(Body::from_stream(frames));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
