use kube::client::ClientBuilder;
use tower::service_fn;

use super::*;
use crate::reconcile::Fault;

/// Whose fault it is when a server answers so.
async fn fault(code: u16, retry_after: Option<&str>, body: &'static str) -> Fault {
    let retry_after = retry_after.map(str::to_owned);
    let server = service_fn(move |_: Request<Body>| {
        let mut answer = Response::builder().status(code);
        if let Some(wait) = &retry_after {
            answer = answer.header(RETRY_AFTER, wait);
        }
        let full = Full::from(body);
        let body: Box<DynBody> = Box::new(full.map_err(|never: Infallible| match never {}));
        let answer = answer.body(body).expect("a response");
        async { Ok::<_, BoxError>(answer) }
    });
    let client = ClientBuilder::new(server, "default")
        .with_layer(&RefusalLayer)
        .build();
    let error = client.apiserver_version().await.expect_err("refused");
    crate::client::fault_of(&error)
}

fn after(seconds: u64) -> Fault {
    let retry_after = Some(std::time::Duration::from_secs(seconds));
    Fault::Infrastructure { retry_after }
}

#[tokio::test]
async fn a_wait_asked_for_in_the_header_is_heard_whatever_the_body() {
    let text = "Too many requests, please try again later.";
    assert_eq!(fault(429, Some("7"), text).await, after(7));
    assert_eq!(fault(503, Some("3"), "").await, after(3));
    let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"busy","reason":"TooManyRequests","code":429}"#;
    assert_eq!(fault(429, Some("7"), status).await, after(7));
    let details = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"busy","reason":"TooManyRequests","details":{"retryAfterSeconds":9},"code":429}"#;
    assert_eq!(fault(429, Some("7"), details).await, after(9));
}

#[tokio::test]
async fn what_asks_for_nothing_or_in_words_is_passed_on_as_it_is() {
    let away = Fault::Infrastructure { retry_after: None };
    assert_eq!(fault(429, None, "busy").await, away);
    assert_eq!(fault(429, Some("0"), "busy").await, away);
    let date = "Fri, 31 Dec 1999 23:59:59 GMT";
    assert_eq!(fault(503, Some(date), "busy").await, away);
    assert_eq!(fault(500, Some("7"), "broken").await, away);
    assert_eq!(fault(404, Some("7"), "no").await, Fault::Object);
}

#[tokio::test]
async fn a_refusal_without_end_is_not_read_to_its_end() {
    let endless: &'static str = Box::leak("a".repeat(ENOUGH + 1).into_boxed_str());
    assert_eq!(fault(429, Some("7"), endless).await, after(7));
}
