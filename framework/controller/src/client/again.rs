//! Requests that are sent again because the server says that it has not done them.

use std::time::Duration;

use boatswain_cache::copy_request;
use boatswain_supervision::Clock;
use http::{Request, Response, StatusCode, header::RETRY_AFTER};
use kube::client::Body;

/// How often a request is sent at most.
const TRIES: usize = 3;
/// The longest rest a run waits for in place; for a longer one it fails, and its key waits without a worker.
const LONGEST_REST: Duration = Duration::from_secs(5);

/// Sends `request`. A server that is too busy to begin with it (429) and says for how many seconds it wants to be left alone is asked again after these: nothing
/// has happened yet, whatever the request is. Nothing else is repeated.
pub(super) async fn patiently(
    client: &kube::Client,
    clock: &Clock,
    mut request: Request<Body>,
) -> kube::Result<Response<Body>> {
    for _ in 1..TRIES {
        let Some(again) = copy_request(&request) else {
            break;
        };
        let answer = client.send(request).await?;
        let Some(rest) = rest(&answer) else {
            return Ok(answer);
        };
        clock.sleep(rest).await;
        request = again;
    }
    client.send(request).await
}

/// How long the server wants to be left alone before it begins with the same request.
fn rest(answer: &Response<Body>) -> Option<Duration> {
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    let rest = Duration::from_secs(seconds.trim().parse().ok()?);
    (answer.status() == StatusCode::TOO_MANY_REQUESTS && rest <= LONGEST_REST).then_some(rest)
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        sync::{Arc, Mutex},
        time::SystemTime,
    };

    use tower::{BoxError, service_fn};

    use super::*;

    /// What a server that answers so, one after the other, is asked, and what the last answer is and after which time.
    async fn play(answers: &[(u16, &str)]) -> (usize, u16, u64) {
        let clock = Clock::paused(SystemTime::UNIX_EPOCH);
        let answers: VecDeque<_> = answers
            .iter()
            .map(|(code, rest)| (*code, (*rest).to_owned()))
            .collect();
        let (all, left) = (answers.len(), Arc::new(Mutex::new(answers)));
        let script = left.clone();
        let server = service_fn(move |request: Request<Body>| {
            let script = script.clone();
            async move {
                let body = request.into_body().collect_bytes().await?;
                assert_eq!(body, "body");
                let next = script.lock().expect("lock").pop_front();
                let (code, rest) = next.expect("no more requests");
                let answer = Response::builder().status(code).header(RETRY_AFTER, rest);
                Ok::<_, BoxError>(answer.body(Body::empty())?)
            }
        });
        let client = kube::Client::new(server, "default");
        let begun = clock.now();
        let request = Request::post("/api").body(Body::from(b"body".to_vec()));
        let answer = patiently(&client, &clock, request.expect("a request")).await;
        let code = answer.expect("an answer").status().as_u16();
        let asked = all - left.lock().expect("lock").len();
        (asked, code, (clock.now() - begun).as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_was_not_begun_is_sent_again_after_the_rest_the_server_asks_for() {
        assert_eq!(
            play(&[(429, "1"), (429, "2"), (201, "")]).await,
            (3, 201, 3)
        );
        assert_eq!(
            play(&[(429, "1"), (429, "1"), (429, "1")]).await,
            (3, 429, 2)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_have_happened_or_has_to_wait_for_long_is_left_to_the_keys_backoff() {
        for answer in [
            (429, ""),
            (429, "6"),
            (429, "soon"),
            (503, "1"),
            (500, "1"),
            (409, "1"),
        ] {
            assert_eq!(
                play(&[answer, (200, "")]).await,
                (1, answer.0, 0),
                "{answer:?}"
            );
        }
    }
}
