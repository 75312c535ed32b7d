//! Where the dashboard is served, and to whom.

use std::{fmt, net::SocketAddr, path::PathBuf, str::FromStr};

use super::{Address, text::as_text};

/// Where the dashboard is served, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DashboardOptions {
    /// The address it is served on. One that is taken is an error of the start, but for [`DashboardOptions::ADDRESS`] where it is not
    /// [required](Self::required): then the manager works without a dashboard and says so.
    pub listen: SocketAddr,
    /// Whether [`DashboardOptions::ADDRESS`] was chosen, or anything else was said about the dashboard, so that somebody counts on it. By default nobody does:
    /// two managers on one machine need no flags.
    pub required: bool,
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
            required: false,
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
            text => {
                let Address(address) = text.parse().map_err(|why| format!("{why}; or off"))?;
                Ok(Self::At(address))
            }
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
