//! Who is answered: requests under a known name, of no other origin; and for actions, with the token.

use std::{fs, io, net::IpAddr, path::PathBuf};

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{self, HeaderName},
    },
    middleware::Next,
    response::Response,
};
use subtle::ConstantTimeEq as _;

use super::problem;
use crate::core::Dashboard;

/// Bytes a token has at least.
const TOKEN: usize = 16;

/// Whom the dashboard answers.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// Names it may be called by in the `Host` header, beside `localhost` and addresses of the loopback interface. Other names are refused: a page
    /// whose name is made to lead to this machine (DNS rebinding) must not read the dashboard.
    pub hosts: Vec<String>,
    /// The file with the token that actions need; without it there are no actions. It is read at each action, so that the token can be changed.
    pub token_file: Option<PathBuf>,
}

/// A token that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The file cannot be read.
    #[error(
        "cannot read the dashboard's token from {path}: {source}; check --dashboard-token-file"
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no file but a pipe, a device or a folder, which may never end or never begin.
    #[error("the dashboard's token cannot be read from {path}: it is no file")]
    NoFile {
        /// What it is read from.
        path: PathBuf,
    },
    /// No header has room for it.
    #[error(
        "the dashboard's token in {path} has characters that no bearer token has; make one with `openssl rand -hex 32`"
    )]
    Unsendable {
        /// The file.
        path: PathBuf,
    },
    /// It is no name that a browser would call the dashboard by.
    #[error(
        "--dashboard-host {host:?} is no host name: give it without scheme, port and path, such as ops.example.com"
    )]
    Host {
        /// What was given.
        host: String,
    },
    /// It is easy to guess.
    #[error(
        "the dashboard's token in {path} has fewer than {TOKEN} characters; make one with `openssl rand -hex 32`"
    )]
    Short {
        /// The file.
        path: PathBuf,
    },
}

impl Guard {
    /// Whether there are actions at all.
    #[must_use]
    pub fn acts(&self) -> bool {
        self.token_file.is_some()
    }

    /// Whether the names can be met, and the token, if one is named, can be used.
    ///
    /// # Errors
    ///
    /// When a name has a scheme, a port or a path, or the file of the token cannot be read or holds too little.
    pub fn check(&self) -> Result<(), GuardError> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let is_name = |host: &str| !host.is_empty() && host.chars().all(is_part);
        let fits = |host: &String| is_name(host) || host.parse::<IpAddr>().is_ok();
        if let Some(host) = self.hosts.iter().find(|host| !fits(host)) {
            return Err(GuardError::Host { host: host.clone() });
        }
        self.token().map(drop)
    }

    fn token(&self) -> Result<Option<String>, GuardError> {
        let Some(path) = &self.token_file else {
            return Ok(None);
        };
        let path = || path.clone();
        let complaint = |source| GuardError::Read {
            path: path(),
            source,
        };
        if !fs::metadata(path()).map_err(complaint)?.is_file() {
            return Err(GuardError::NoFile { path: path() });
        }
        let text = fs::read_to_string(path()).map_err(complaint)?;
        let token = text.trim();
        if !token.chars().all(|c| c.is_ascii_graphic()) {
            return Err(GuardError::Unsendable { path: path() });
        }
        if token.len() < TOKEN {
            return Err(GuardError::Short { path: path() });
        }
        Ok(Some(token.to_owned()))
    }

    /// Whether a request with these headers may ask for something; if not, why.
    pub(super) fn authorize(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        let token = match self.token() {
            Ok(Some(token)) => token,
            Ok(None) => {
                return Err(
                    "this dashboard only shows: start the manager with --dashboard-token-file to allow actions",
                );
            }
            Err(error) => {
                tracing::error!(%error, "actions of the dashboard are refused");
                return Err(
                    "the token file of this dashboard cannot be used at present; the manager's log says why",
                );
            }
        };
        let given = headers.get(header::AUTHORIZATION);
        let given = given.and_then(|value| value.to_str().ok());
        match given.and_then(|value| value.strip_prefix("Bearer ")) {
            Some(given) if bool::from(given.as_bytes().ct_eq(token.as_bytes())) => Ok(()),
            Some(_) => Err("this is not the token"),
            None => Err("actions need the token, as `Authorization: Bearer …`"),
        }
    }

    fn knows(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        let loopback = name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        let same = |known: &String| known.eq_ignore_ascii_case(name);
        loopback || name.eq_ignore_ascii_case("localhost") || self.hosts.iter().any(same)
    }

    /// Whether a request with these headers is answered; if not, why.
    fn admit(&self, headers: &HeaderMap, host: Option<&str>) -> Result<(), &'static str> {
        let Some(host) = host.filter(|host| self.knows(host)) else {
            return Err(
                "this dashboard is not known by that name: call it localhost, or start the manager with --dashboard-host NAME",
            );
        };
        let foreign = headers.get_all(header::ORIGIN).iter().any(|origin| {
            let origin = origin.to_str().unwrap_or_default();
            let of = origin.split_once("://").map(|(_, host)| host);
            of.is_none_or(|of| !of.eq_ignore_ascii_case(host))
        });
        let site = headers.get("sec-fetch-site");
        // a link that is followed to the page is the user's own wish
        let navigates = headers
            .get("sec-fetch-mode")
            .is_some_and(|mode| mode == "navigate");
        let crosses = site.is_some_and(|site| site != "same-origin" && site != "none");
        if foreign || (crosses && !navigates) {
            return Err("pages of other origins are not answered");
        }
        Ok(())
    }
}

/// On every answer.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Lets in whom the guard admits, and says on every answer what browsers may do with it.
pub(super) async fn stand(
    State(dashboard): State<Dashboard>,
    request: Request,
    next: Next,
) -> Response {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    // HTTP/1.0 may say it in the address
    let host = host.or(request
        .uri()
        .authority()
        .map(|authority| authority.as_str()));
    let mut response = match dashboard.guard().admit(request.headers(), host) {
        Ok(()) => next.run(request).await,
        Err(why) => problem(StatusCode::FORBIDDEN, why),
    };
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(guard: &Guard, host: &str, more: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in more {
            headers.append(*name, HeaderValue::from_static(value));
        }
        guard.admit(&headers, Some(host)).is_ok()
    }

    #[test]
    fn only_known_names_are_answered_on_whatever_port() {
        let guard = Guard {
            hosts: vec!["ops.example.com".into()],
            token_file: None,
        };
        for host in [
            "localhost",
            "LOCALHOST:9",
            "127.0.0.1:8081",
            "127.9.9.9",
            "[::1]:8081",
            "[::1]",
            "ops.example.com:80",
        ] {
            assert!(admits(&guard, host, &[]), "{host}");
        }
        for host in [
            "evil.example.com",
            "evil.example.com:8081",
            "localhost.evil.com",
            "127.0.0.1.evil.com",
            "10.0.0.1",
            "",
            "[::2]",
            "localhost:1:2",
        ] {
            assert!(!admits(&guard, host, &[]), "{host}");
        }
        assert!(guard.admit(&HeaderMap::new(), None).is_err());
    }

    #[test]
    fn a_name_that_no_request_can_have_is_an_error() {
        let of = |host: &str| Guard {
            hosts: vec![host.into()],
            token_file: None,
        };
        for unfit in [
            "",
            "ops.example.com:80",
            "http://ops.example.com",
            "a/b",
            "a b",
        ] {
            let error = of(unfit).check().expect_err(unfit).to_string();
            assert!(error.contains("no host name"), "{error}");
        }
        for fit in ["ops.example.com", "BAZ", "10.0.0.1", "fd00::1"] {
            of(fit).check().expect(fit);
        }
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let guard = Guard::default();
        let host = "localhost:8081";
        assert!(admits(&guard, host, &[("origin", "http://localhost:8081")]));
        assert!(admits(&guard, host, &[("sec-fetch-site", "same-origin")]));
        assert!(admits(
            &guard,
            host,
            &[
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "navigate")
            ]
        ));
        for (name, value) in [
            ("origin", "http://evil.example.com"),
            ("origin", "http://localhost:9999"),
            ("origin", "null"),
            ("origin", ""),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert!(!admits(&guard, host, &[(name, value)]), "{name}: {value}");
        }
    }
}
