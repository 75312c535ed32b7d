use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};

use http::Response;
use http_body_util::Empty;
use kube::client::DynBody;
use tower::{ServiceExt as _, service_fn};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn empty() -> Box<DynBody> {
    use http_body_util::BodyExt as _;
    Box::new(Empty::new().map_err(|never: Infallible| match never {}))
}

/// How many reads, and how many writes.
type Counts = [AtomicUsize; 2];

/// Both ways count; writes take `slow`.
fn fencing(
    fence: &Fence,
    clock: &Clock,
    slow: Duration,
    counts: &Arc<Counts>,
) -> impl Service<Request<Body>, Response = Response<Box<DynBody>>, Error = BoxError> {
    let (read, written, timer) = (counts.clone(), counts.clone(), clock.clone());
    let reads = service_fn(move |_| {
        read[0].fetch_add(1, SeqCst);
        async { Ok(Response::new(empty())) }
    });
    let writes = service_fn(move |_| {
        written[1].fetch_add(1, SeqCst);
        let timer = timer.clone();
        Box::pin(async move {
            timer.sleep(slow).await;
            Ok(Response::new(empty()))
        })
    });
    Fencing::new(fence.clone(), clock.clone(), reads, writes)
}

async fn send(
    service: &mut impl Service<Request<Body>, Response = Response<Box<DynBody>>, Error = BoxError>,
    method: Method,
) -> Result<(), BoxError> {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method;
    service.ready().await?.call(request).await.map(drop)
}

fn is_fenced(result: Result<(), BoxError>) -> bool {
    result.is_err_and(|error| error.is::<Fenced>())
}

#[tokio::test(start_paused = true)]
async fn g10_nothing_but_reads_passes_a_closed_fence() {
    let clock = Clock::paused(std::time::UNIX_EPOCH);
    let fence = Fence::default();
    let counts = Arc::default();
    let mut service = fencing(&fence, &clock, Duration::ZERO, &counts);
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        assert!(is_fenced(send(&mut service, method).await));
    }
    for method in [Method::GET, Method::HEAD] {
        send(&mut service, method).await.expect("reads pass");
    }
    assert_eq!(counts[0].load(SeqCst), 2);
    assert_eq!(counts[1].load(SeqCst), 0);

    fence.open(clock.boot() + 10 * SECOND);
    send(&mut service, Method::PUT).await.expect("open");
    clock.sleep(10 * SECOND).await;
    assert!(is_fenced(send(&mut service, Method::PUT).await));
    assert_eq!(counts[1].load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn g10_a_write_has_no_more_time_than_the_fence_stays_open() {
    let clock = Clock::paused(std::time::UNIX_EPOCH);
    let fence = Fence::default();
    let counts = Arc::default();
    let mut service = fencing(&fence, &clock, 30 * SECOND, &counts);
    fence.open(clock.boot() + 10 * SECOND);
    let begun = clock.now();
    assert!(is_fenced(send(&mut service, Method::POST).await));
    assert_eq!(clock.now() - begun, 10 * SECOND);
}
