use std::{
    fs,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tower::service_fn;

use super::*;

/// A server that knows one token, and a file that a client reads its own from.
#[derive(Clone)]
struct World {
    known: Arc<Mutex<&'static str>>,
    asked: Arc<AtomicUsize>,
    file: PathBuf,
    clock: Clock,
}

impl World {
    fn new(folder: &tempfile::TempDir) -> Self {
        let file = folder.path().join("token");
        fs::write(&file, "old").unwrap();
        Self {
            known: Arc::new(Mutex::new("old")),
            asked: Arc::default(),
            file,
            clock: Clock::paused(std::time::SystemTime::UNIX_EPOCH),
        }
    }

    fn client(&self, inline: Option<&str>) -> Signing {
        let mut config = kube::Config::new("http://server.invalid".parse().unwrap());
        config.auth_info.token_file = Some(self.file.display().to_string());
        config.auth_info.token = inline.map(Into::into);
        let world = self.clone();
        let server = service_fn(move |request: Request<Body>| {
            let world = world.clone();
            async move {
                world.asked.fetch_add(1, Ordering::SeqCst);
                let known = format!("Bearer {}", world.known.lock().unwrap());
                let sent = request.headers().get(http::header::AUTHORIZATION).cloned();
                let body = request.into_body().collect_bytes().await.unwrap();
                let is_known = sent.is_some_and(|sent| sent == known.as_str());
                let code = if is_known { 200 } else { 401 };
                let body: Box<DynBody> = Box::new(http_body_util::BodyExt::map_err(
                    http_body_util::Full::new(body),
                    BoxError::from,
                ));
                Ok::<_, BoxError>(Response::builder().status(code).body(body).unwrap())
            }
        });
        Signing::new(config, BoxCloneSyncService::new(server), self.clock.clone()).unwrap()
    }

    async fn send(&self, client: &Signing) -> (u16, usize) {
        let before = self.asked.load(Ordering::SeqCst);
        let request = Request::post("/api")
            .body(Body::from(b"body".to_vec()))
            .unwrap();
        let answer = client.clone().oneshot(request).await.unwrap();
        let code = answer.status().as_u16();
        let body = http_body_util::BodyExt::collect(answer.into_body())
            .await
            .unwrap();
        assert_eq!(body.to_bytes(), "body", "whole, also the second time");
        (code, self.asked.load(Ordering::SeqCst) - before)
    }

    fn rotate(&self, file: &str) {
        *self.known.lock().unwrap() = "new";
        fs::write(&self.file, file).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_rotated_and_revoked_at_once_costs_one_request_and_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(&folder);
    let client = world.client(None);
    assert_eq!(world.send(&client).await, (200, 1));
    world.rotate("new");
    assert_eq!(world.send(&client).await, (200, 2));
    assert_eq!(world.send(&client).await, (200, 1));
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_still_refused_are_not_read_at_every_request() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(&folder);
    let client = world.client(None);
    world.rotate("wrong");
    assert_eq!(world.send(&client).await, (401, 2));
    assert_eq!(world.send(&client).await, (401, 1));
    world.rotate("new");
    assert_eq!(world.send(&client).await, (401, 1), "not yet");
    world.clock.sleep(REST).await;
    assert_eq!(world.send(&client).await, (200, 2));
}

#[tokio::test(start_paused = true)]
async fn credentials_that_the_configuration_holds_itself_are_sent_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(&folder);
    let client = world.client(Some("old"));
    world.rotate("new");
    assert_eq!(world.send(&client).await, (401, 1));
}

#[tokio::test(start_paused = true)]
async fn many_requests_that_are_refused_at_once_read_the_credentials_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(&folder);
    let client = world.client(None);
    world.rotate("new");
    let answers = (0..10).map(|_| world.send(&client));
    let answers = futures::future::join_all(answers).await;
    assert!(answers.iter().all(|(code, _)| *code == 200));
    assert_eq!(client.inner.signed.lock().await.generation, 1);
}
