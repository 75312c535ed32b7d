use std::time::SystemTime;

use http_body_util::StreamBody;
use kube::client::ClientBuilder;
use tower::service_fn;

use super::*;
use crate::reconcile::Fault;

/// What a client says of a server that answers so.
async fn refused(
    code: u16,
    retry_after: Option<&str>,
    body: impl Fn() -> Box<DynBody> + Clone + Send + 'static,
) -> kube::Error {
    let retry_after = retry_after.map(str::to_owned);
    let server = service_fn(move |_: Request<Body>| {
        let mut answer = Response::builder().status(code);
        if let Some(wait) = &retry_after {
            answer = answer.header(RETRY_AFTER, wait);
        }
        let answer = answer.body(body()).expect("a response");
        async { Ok::<_, BoxError>(answer) }
    });
    let client = ClientBuilder::new(server, "default")
        .with_layer(&RefusalLayer::new(Clock::paused(SystemTime::UNIX_EPOCH)))
        .build();
    client.apiserver_version().await.expect_err("refused")
}

fn whole(body: &'static str) -> impl Fn() -> Box<DynBody> + Clone {
    move || Box::new(Full::from(body).map_err(|never: Infallible| match never {}))
}

/// Whose fault it is when a server answers so.
async fn fault(code: u16, retry_after: Option<&str>, body: &'static str) -> Fault {
    crate::client::fault_of(&refused(code, retry_after, whole(body)).await)
}

fn after(seconds: u64) -> Fault {
    let retry_after = Some(std::time::Duration::from_secs(seconds));
    Fault::Infrastructure { retry_after }
}

#[tokio::test(start_paused = true)]
async fn a_wait_asked_for_in_the_header_is_heard_whatever_the_body() {
    let text = "Too many requests, please try again later.";
    assert_eq!(fault(429, Some("7"), text).await, after(7));
    assert_eq!(fault(503, Some("3"), "").await, after(3));
    let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"busy","reason":"TooManyRequests","code":429}"#;
    assert_eq!(fault(429, Some("7"), status).await, after(7));
    let details = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"busy","reason":"TooManyRequests","details":{"retryAfterSeconds":9},"code":429}"#;
    assert_eq!(fault(429, Some("7"), details).await, after(9));
}

#[tokio::test(start_paused = true)]
async fn what_asks_for_nothing_or_in_words_is_passed_on_as_it_is() {
    let away = Fault::Infrastructure { retry_after: None };
    assert_eq!(fault(429, None, "busy").await, away);
    assert_eq!(fault(429, Some("0"), "busy").await, away);
    let date = "Fri, 31 Dec 1999 23:59:59 GMT";
    assert_eq!(fault(503, Some(date), "busy").await, away);
    assert_eq!(fault(500, Some("7"), "broken").await, away);
    assert_eq!(fault(404, Some("7"), "no").await, Fault::Object);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_end_is_not_read_to_its_end() {
    let endless: &'static str = Box::leak("a".repeat(ENOUGH + 1).into_boxed_str());
    assert_eq!(fault(429, Some("7"), endless).await, after(7));
}

#[tokio::test(start_paused = true)]
async fn the_code_of_the_head_counts_whatever_json_a_proxy_or_a_gateway_puts_beside_it() {
    let away = Fault::Infrastructure { retry_after: None };
    for body in [
        r#"{"error":"busy"}"#,
        "{}",
        r#"{"code":14,"message":"upstream down","details":[]}"#,
        r#"{"code":14,"message":"upstream down"}"#,
        r#"{"message":"upstream down"}"#,
    ] {
        assert_eq!(fault(503, None, body).await, away, "{body}");
        assert_eq!(fault(503, Some("5"), body).await, after(5), "{body}");
        assert_eq!(fault(429, Some("5"), body).await, after(5), "{body}");
        assert_eq!(fault(409, None, body).await, Fault::Conflict, "{body}");
        assert_eq!(fault(422, None, body).await, Fault::Object, "{body}");
        let missing = refused(404, None, whole(body)).await;
        let status = crate::client::status(&missing).expect("an answer");
        assert_eq!(status.code, 404);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_whose_body_never_ends_is_heard_within_seconds() {
    let begun = Clock::paused(SystemTime::UNIX_EPOCH).now();
    let body = || -> Box<DynBody> {
        use futures::StreamExt as _;
        let part = Ok::<_, BoxError>(http_body::Frame::data("busy".into()));
        let stalls = futures::stream::iter([part]).chain(futures::stream::pending());
        Box::new(StreamBody::new(stalls))
    };
    let error = refused(429, Some("7"), body).await;
    assert_eq!(crate::client::fault_of(&error), after(7));
    let took = Clock::paused(SystemTime::UNIX_EPOCH).now() - begun;
    assert!(took <= PATIENCE + Duration::from_secs(1), "{took:?}");
}
