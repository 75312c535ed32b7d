//! Addresses as people write them.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    str::FromStr,
};

use super::text::as_text;

/// An address with a port: `127.0.0.1:8080`, `[::]:8080`, or `localhost:8080`, which is 127.0.0.1. Other names are for those who can be asked what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub SocketAddr);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let local = || {
            let port = text.strip_prefix("localhost:")?.parse().ok()?;
            Some((Ipv4Addr::LOCALHOST, port).into())
        };
        let address = text.parse().ok().or_else(local);
        address.map(Self).ok_or_else(|| {
            if let Some((_, rest)) = text.split_once("://") {
                let rest = rest.trim_end_matches('/');
                return format!("{text:?} is no address: leave the scheme out, as in {rest}");
            }
            let port = text.strip_prefix(':').unwrap_or("8080");
            format!(
                "{text:?} is no address: write one such as 127.0.0.1:{port} or localhost:{port}, or [::]:{port} for all that this machine has"
            )
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

as_text!(Address);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_and_says_which_machine_or_this_one() {
        for (text, meant) in [
            ("localhost:8081", "127.0.0.1:8081"),
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("[::]:8080", "[::]:8080"),
        ] {
            let Address(address) = text.parse().expect(text);
            assert_eq!(address.to_string(), meant);
        }
        for (text, advice) in [
            ("localhost", "localhost:8080"),
            (":9090", "[::]:9090"),
            ("example.com:80", "127.0.0.1:8080"),
            ("localhost:99999", "127.0.0.1:8080"),
            ("", "127.0.0.1:8080"),
            (
                "http://127.0.0.1:8081/",
                "leave the scheme out, as in 127.0.0.1:8081",
            ),
        ] {
            let why = text.parse::<Address>().expect_err(text);
            assert!(why.contains(advice), "{why}");
        }
    }
}
