//! What the clients ask of the API server, under client-go's names.

use prometheus::Registry;

use super::families::{Families, Scraped};
use crate::{
    client::{Measured, NO_ANSWER, REQUEST, Requests},
    dispatch::Sums,
};

/// Registers what the clients ask of the API server.
pub(crate) fn register_requests(
    requests: &Requests,
    registry: &Registry,
) -> Result<(), prometheus::Error> {
    let requests = requests.clone();
    registry.register(Box::new(Scraped::new(families, move || {
        (requests.host().to_owned(), requests.measured())
    })?))
}

fn families(families: &mut Families, read: Option<&(String, Vec<Measured>)>) {
    let (host, measured) = read.map_or(("", &[][..]), |(host, measured)| (host, measured));
    let answers = measured.iter().flat_map(|of| {
        of.answers.iter().map(|(code, count)| {
            let code = match *code {
                NO_ANSWER => "<error>".to_owned(),
                code => code.to_string(),
            };
            (vec![code, of.method.to_owned(), host.to_owned()], *count)
        })
    });
    families.counter(
        "rest_client_requests_total",
        "Requests by the code they were answered with, <error> where no answer came.",
        &["code", "method", "host"],
        answers,
    );
    type Read = fn(&Measured) -> &Sums;
    let times: [(&'static str, &'static str, Read); 2] = [
        (
            "rest_client_request_duration_seconds",
            "Time until the answer to a request began.",
            |of| &of.took,
        ),
        (
            "rest_client_rate_limiter_duration_seconds",
            "Time that requests waited for the client's own limit; those of watches and of the lease do not.",
            |of| &of.waited,
        ),
    ];
    for (name, help, read) in times {
        let series = measured.iter().map(|of| {
            let sums = read(of);
            let labels = vec![of.method.to_owned(), host.to_owned()];
            (labels, (sums.below(REQUEST), sums.count(), sums.seconds()))
        });
        families.histogram(name, help, &["verb", "host"], series);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use boatswain_supervision::Clock;
    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use prometheus::TextEncoder;
    use tower::{BoxError, Layer as _, ServiceExt as _, service_fn};

    use super::*;
    use crate::client::MeasureLayer;

    #[tokio::test(start_paused = true)]
    async fn requests_are_counted_by_method_and_code_and_their_time_is_told() {
        let requests = Requests::to("https://10.0.0.1:6443/");
        let registry = Registry::new();
        register_requests(&requests, &registry).expect("registered");
        let clock = Clock::paused(std::time::UNIX_EPOCH);
        let time = clock.clone();
        let server = service_fn(move |request: Request<Body>| {
            let time = time.clone();
            async move {
                time.sleep(Duration::from_millis(20)).await;
                match request.method().as_str() {
                    "GET" => Ok(Response::new(())),
                    "PUT" => Err(BoxError::from("gone")),
                    _ => {
                        let mut refused = Response::new(());
                        *refused.status_mut() = StatusCode::CONFLICT;
                        Ok(refused)
                    }
                }
            }
        });
        for method in ["GET", "GET", "PATCH", "PUT"] {
            let sent = MeasureLayer::new(requests.clone(), clock.clone()).layer(server.clone());
            let request = Request::builder().method(method).body(Body::empty());
            let _ = sent.oneshot(request.expect("a request")).await;
        }
        requests.waited(&http::Method::PUT, Duration::from_secs(3));
        let page = TextEncoder::new()
            .encode_to_string(&registry.gather())
            .expect("text");
        for line in [
            r#"rest_client_requests_total{code="200",host="10.0.0.1:6443",method="GET"} 2"#,
            r#"rest_client_requests_total{code="409",host="10.0.0.1:6443",method="PATCH"} 1"#,
            r#"rest_client_requests_total{code="<error>",host="10.0.0.1:6443",method="PUT"} 1"#,
            r#"rest_client_request_duration_seconds_bucket{host="10.0.0.1:6443",verb="GET",le="0.005"} 0"#,
            r#"rest_client_request_duration_seconds_bucket{host="10.0.0.1:6443",verb="GET",le="0.025"} 2"#,
            r#"rest_client_rate_limiter_duration_seconds_sum{host="10.0.0.1:6443",verb="PUT"} 3"#,
        ] {
            assert!(page.contains(line), "{line} is missing in:\n{page}");
        }
    }
}
