//! Asks a dashboard: one request, one connection, JSON.

use std::{future::Future, io, net::SocketAddr, time::Duration};

use boatswain_supervision::Clock;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{Request, StatusCode, client::conn::http1, header::HOST};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::{
    plain::{plain, plain_line},
    view::Problem,
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer.
const ANSWER: usize = 64 << 20;

/// Why a dashboard could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It cannot be reached.
    #[error(
        "no dashboard answers at {address}: {cause}; is a manager running there, or `kubectl port-forward` to one?"
    )]
    Unreachable {
        /// Where.
        address: SocketAddr,
        /// Why.
        cause: String,
    },
    /// It refused, and said why.
    #[error("the dashboard at {address} refuses: {error}")]
    Refused {
        /// Where.
        address: SocketAddr,
        /// Its words.
        error: String,
    },
    /// No controller reconciles such objects.
    #[error("no controller there is or reconciles {kind:?}; there are {known}")]
    Kind {
        /// What was asked for.
        kind: String,
        /// The controllers.
        known: String,
    },
    /// It is no name of an object.
    #[error(
        "{key:?} is no name: objects are called NAMESPACE/NAME, or NAME where their kind has no namespaces"
    )]
    Crooked {
        /// What was asked for.
        key: String,
    },
    /// There is no such object, nor is a run of it remembered.
    #[error("there is no key {key} of {controller}{hint}")]
    Key {
        /// What was asked for.
        key: String,
        /// Who does not know it.
        controller: String,
        /// What may have been meant.
        hint: String,
    },
    /// The terminal does not play along.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[from] io::Error),
}

pub(super) struct Client {
    address: SocketAddr,
    clock: Clock,
}

/// A part of a path.
pub(super) fn escaped(part: &str) -> String {
    let mut text = String::new();
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(byte.into());
            }
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

impl Client {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            clock: Clock::system(),
        }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn block_on<T>(
        &self,
        asked: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(asked)
    }

    /// What the API answers at `path`.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.read(path).await?.map_err(|refused| refused.1)
    }

    /// The same; none where it says that there is no such thing.
    pub(super) async fn find<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, ClientError> {
        match self.read(path).await? {
            Ok(found) => Ok(Some(found)),
            Err((StatusCode::NOT_FOUND, _)) => Ok(None),
            Err((_, why)) => Err(why),
        }
    }

    /// What is answered, or the code and the words of a refusal.
    async fn read<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Result<T, (StatusCode, ClientError)>, ClientError> {
        let unreachable = |cause: String| ClientError::Unreachable {
            address: self.address,
            cause,
        };
        let (code, body) = tokio::select! {
            answer = self.ask(path) => answer.map_err(|error| unreachable(error.to_string()))?,
            () = self.clock.sleep(PATIENCE) => {
                return Err(unreachable(format!("no answer within {PATIENCE:?}")));
            }
        };
        let complaint = |error: serde_json::Error| {
            unreachable(format!(
                "what answers is no dashboard of this version: {error}"
            ))
        };
        if code.is_success() {
            // in one place, so that nothing that is printed can be forgotten
            let mut told: Value = serde_json::from_slice(&body).map_err(complaint)?;
            tame(&mut told);
            return serde_json::from_value(told).map(Ok).map_err(complaint);
        }
        let Problem { error } = serde_json::from_slice(&body).map_err(complaint)?;
        let refused = ClientError::Refused {
            address: self.address,
            error: plain_line(&error),
        };
        Ok(Err((code, refused)))
    }

    async fn ask(
        &self,
        path: &str,
    ) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect(self.address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let request = Request::get(format!("/api/v1/{path}"))
            // a forwarded port is known as that
            .header(HOST, format!("localhost:{}", self.address.port()))
            .body(Empty::<Bytes>::new())?;
        let answer = sender.send_request(request).await?;
        let code = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER).collect().await?;
        connection.abort();
        Ok((code, body.to_bytes()))
    }
}

/// Makes every text fit for a terminal, the names of fields that are names of things, too.
fn tame(value: &mut Value) {
    match value {
        Value::String(text) => *text = plain(text),
        Value::Array(items) => items.iter_mut().for_each(tame),
        Value::Object(fields) => {
            let tamed = std::mem::take(fields).into_iter();
            *fields = tamed
                .map(|(name, mut inner)| {
                    tame(&mut inner);
                    (plain_line(&name), inner)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whatever_a_dashboard_tells_is_tame_names_and_all() {
        let mut told = json!({ "why\u{1b}": ["a\u{202e}b", { "deep": "\u{7}\n" }], "n": 7 });
        tame(&mut told);
        assert_eq!(
            told,
            json!({ "why\u{FFFD}": ["a\u{FFFD}b", { "deep": "\u{FFFD}\n" }], "n": 7 })
        );
    }
}
