//! Where the dashboard is served, and to whom.

use std::{fmt, net::SocketAddr, path::PathBuf, str::FromStr};

use super::text::as_text;

/// Where the dashboard is served, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DashboardOptions {
    /// The address it is served on. If [`DashboardOptions::ADDRESS`] is taken the manager works without a dashboard and says so; any other address
    /// that is taken is an error of the start.
    pub listen: SocketAddr,
    /// Names it may be called by beside `localhost`; requests for others are refused.
    pub hosts: Vec<String>,
    /// The file with the token that actions need; without it the dashboard only shows.
    pub token_file: Option<PathBuf>,
}

impl DashboardOptions {
    /// Where it is served if nothing else is said: on this machine only.
    pub const ADDRESS: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8081);
}

impl Default for DashboardOptions {
    fn default() -> Self {
        Self {
            listen: Self::ADDRESS,
            hosts: Vec::new(),
            token_file: None,
        }
    }
}

/// An address for the dashboard, or none: empty, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DashboardListen {
    /// It is not served.
    Off,
    /// It is served there.
    At(SocketAddr),
}

impl FromStr for DashboardListen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" | "off" => Ok(Self::Off),
            address => address.parse().map(Self::At).map_err(|_| {
                format!("{address:?} is no address: write one such as 127.0.0.1:8081, or off")
            }),
        }
    }
}

impl fmt::Display for DashboardListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}

as_text!(DashboardListen);
