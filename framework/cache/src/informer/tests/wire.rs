//! What requests say on the wire.

use http::header::ACCEPT_ENCODING;
use http::{Request, Response};
use kube::client::Body;
use tower::service_fn;

use super::*;

#[test]
fn a_watch_asks_for_bytes_that_are_not_compressed() {
    run(|options| async {
        let watches = Arc::new(Mutex::new(Vec::new()));
        let heard = watches.clone();
        let service = service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default();
            let (code, body) = if query.contains("watch=true") {
                let encoding = request.headers().get(ACCEPT_ENCODING).cloned();
                heard.lock().unwrap().push(encoding);
                (403, "{}")
            } else {
                (200, r#"{"metadata":{"resourceVersion":"7"},"items":[]}"#)
            };
            let answer = Response::builder()
                .status(code)
                .body(Body::from(body.as_bytes().to_vec()));
            async move { Ok::<_, std::convert::Infallible>(answer.unwrap()) }
        });
        let client = kube::Client::new(service, "default");
        let core = InformerCore::new(kind(), Scope::All);
        let rig = Rig::around(core, client, options, InformerOptions::default()).await;
        rig.until("two watches", |_| watches.lock().unwrap().len() >= 2)
            .await;
        for encoding in watches.lock().unwrap().iter() {
            let encoding = encoding.as_ref().map(|value| value.as_bytes());
            assert_eq!(encoding, Some(&b"identity"[..]));
        }
        rig.stop().await;
    });
}
