use std::time::{Instant, SystemTime};

use futures::FutureExt as _;
use tower::service_fn;

use super::*;

/// Two requests at once, then one a second.
fn limits() -> ClientLimits {
    let some = |n| NonZeroU32::new(n).expect("not zero");
    ClientLimits {
        qps: some(1),
        burst: some(2),
        timeout: Duration::from_secs(30),
    }
}

fn clock() -> Clock {
    Clock::paused(SystemTime::UNIX_EPOCH)
}

/// Sends a request to `uri` through a server that takes `work` over it, and says how long it all took.
async fn send(limit: &LimitLayer, uri: &str, work: Duration) -> Result<Duration, BoxError> {
    let clock = limit.clock.clone();
    let server = clock.clone();
    let service = service_fn(move |_: Request<Body>| {
        let server = server.clone();
        async move {
            server.sleep(work).await;
            Ok::<Instant, BoxError>(server.now())
        }
    });
    let request = Request::get(uri).body(Body::empty()).expect("a request");
    let begun = clock.now();
    let ended = limit.layer(service).oneshot(request).await?;
    Ok(ended - begun)
}

const NONE: Duration = Duration::ZERO;

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_burst_go_out_at_the_rate_and_in_the_order_they_came() {
    let limit = LimitLayer::new(limits(), clock());
    let begun = limit.clock.now();
    let order = std::sync::Mutex::new(vec![]);
    let requests = (0..5).map(|i| {
        let (limit, order) = (&limit, &order);
        async move {
            let took = send(limit, "/api/v1/pods", NONE).await.expect("answered");
            order.lock().expect("lock").push((i, took.as_secs()));
        }
    });
    futures::future::join_all(requests).await;
    let order = order.into_inner().expect("lock");
    assert_eq!(order, [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3)]);
    assert_eq!(limit.clock.now() - begun, Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn whether_the_server_is_there_is_asked_at_once_also_when_others_wait_for_their_turn() {
    let limit = LimitLayer::new(limits(), clock());
    let requests = (0..10).map(|_| send(&limit, "/api/v1/pods", NONE));
    let probe = async {
        tokio::task::yield_now().await;
        send(&limit, "/version", NONE).await.expect("answered")
    };
    let (_, waited) = tokio::join!(futures::future::join_all(requests), probe);
    assert_eq!(waited, NONE);
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_never_delayed_and_never_given_up() {
    let limit = LimitLayer::new(limits(), clock());
    for _ in 0..10 {
        let watch = "/api/v1/pods?limit=1&watch=1";
        send(&limit, watch, NONE).await.expect("answered");
    }
    for (nth, wait) in [(1, 0), (2, 0), (3, 1)] {
        let took = send(&limit, "/api/v1/pods?labelSelector=watch", NONE).await;
        let wait = Duration::from_secs(wait);
        assert_eq!(
            took.expect("answered"),
            wait,
            "request {nth}: watches take no token"
        );
    }
    let hour = Duration::from_secs(3600);
    let took = send(&limit, "/api/v1/pods?watch=true", hour).await;
    assert_eq!(took.expect("answered"), hour, "nor do they wait for one");
}

#[tokio::test(start_paused = true)]
async fn who_is_cancelled_while_waiting_has_taken_nothing_and_holds_up_nobody() {
    let limit = LimitLayer::new(limits(), clock());
    for _ in 0..2 {
        send(&limit, "/api/v1/pods", NONE).await.expect("answered");
    }
    let mut waiting: Vec<_> = (0..10)
        .map(|_| Box::pin(send(&limit, "/api/v1/pods", NONE)))
        .collect();
    for waiting in &mut waiting {
        assert!(waiting.now_or_never().is_none());
    }
    drop(waiting);
    let took = send(&limit, "/api/v1/pods", NONE).await.expect("answered");
    assert_eq!(
        took,
        Duration::from_secs(1),
        "the first token is still there"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_begin_in_time_is_given_up() {
    let limit = LimitLayer::new(limits(), clock());
    let error = send(&limit, "/api/v1/pods", Duration::from_secs(31)).await;
    assert_eq!(
        error.expect_err("too late").to_string(),
        "no answer within 30s"
    );
}

fn refused(code: u16, reason: &str, message: &str) -> ClientError {
    let status = kube::core::Status {
        code,
        reason: reason.into(),
        message: message.into(),
        ..kube::core::Status::default()
    };
    ClientError {
        verb: "patch",
        resource: "deployments/status".into(),
        key: Key::new(Some("shop"), "web"),
        source: Box::new(kube::Error::Api(Box::new(status))),
    }
}

#[test]
fn an_error_says_what_was_tried_on_what_and_why_it_failed_in_one_line() {
    let error = refused(404, "NotFound", "deployments.apps \"web\" not found");
    assert_eq!(
        error.to_string(),
        "cannot patch deployments/status shop/web: deployments.apps \"web\" not found (404 NotFound)"
    );
    assert_eq!(
        crate::runner::chain(&error),
        error.to_string(),
        "its source adds nothing"
    );
    let unreachable = ClientError {
        source: Box::new(kube::Error::Service(Box::new(TimedOut(
            Duration::from_secs(30),
        )))),
        ..refused(0, "", "")
    };
    assert_eq!(
        unreachable.to_string(),
        "cannot patch deployments/status shop/web: no answer within 30s"
    );
    assert_eq!(crate::runner::chain(&unreachable), unreachable.to_string());
}

#[test]
fn only_what_the_object_says_is_its_own_fault() {
    for (code, reason) in [(400, "BadRequest"), (404, "NotFound"), (422, "Invalid")] {
        assert_eq!(refused(code, reason, "").fault(), Fault::Object, "{code}");
    }
    for code in [401, 408, 429, 500, 503, 504] {
        let fault = refused(code, "", "").fault();
        assert!(matches!(fault, Fault::Infrastructure { .. }), "{code}");
    }
}

#[test]
fn a_live_read_that_fails_is_told_and_judged_as_the_clients_own_requests_are() {
    let told = |cause| {
        ClientError::from(LiveError {
            resource: "configmaps".into(),
            key: Key::new(Some("shop"), "tides"),
            cause,
        })
    };
    let infrastructure = Fault::Infrastructure { retry_after: None };
    let missing = told(LiveCause::NoSuchResource(
        "the server could not find it".into(),
    ));
    assert!(missing.is_not_found());
    assert_eq!(
        missing.to_string(),
        "cannot get configmaps shop/tides: the server could not find it (404 NotFound)"
    );
    let busy = told(LiveCause::Throttled {
        retry_after: Some(Duration::from_secs(7)),
        message: "busy".into(),
    });
    let wait = Some(Duration::from_secs(7));
    assert_eq!(busy.fault(), Fault::Infrastructure { retry_after: wait });
    for cause in [
        LiveCause::Unauthorized("who?".into()),
        LiveCause::Forbidden("no".into()),
        LiveCause::TimedOut(Duration::from_secs(10)),
        LiveCause::Unreachable("connection refused".into()),
        LiveCause::Refused {
            code: 503,
            message: "not now".into(),
        },
    ] {
        assert_eq!(told(cause.clone()).fault(), infrastructure, "{cause}");
    }
    let slow = told(LiveCause::TimedOut(Duration::from_secs(10)));
    assert_eq!(
        slow.to_string(),
        "cannot get configmaps shop/tides: no answer within 10s"
    );
    assert_eq!(
        told(LiveCause::InvalidKey("a part of it is empty")).fault(),
        Fault::Object
    );
}
