//! Plain HTTP requests, as somebody with nothing but a socket makes them.

use std::net::SocketAddr;

use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, StatusCode, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Makes one request on a connection of its own, with a JSON body; the answer's code and text.
///
/// # Panics
///
/// When there is no answer.
pub async fn request(
    address: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
) -> (StatusCode, String) {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    let connection = tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header(header::HOST, address.to_string());
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .expect("a sound request");
    let answer = sender.send_request(request).await.expect("an answer");
    let code = answer.status();
    let body = answer.into_body().collect().await.expect("a whole answer");
    connection.abort();
    (code, String::from_utf8_lossy(&body.to_bytes()).into_owned())
}
