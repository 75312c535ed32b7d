//! The harness of the end-to-end tests: one description of a test, played on the simulated and on real API servers.
//!
//! A test body takes a [`World`]: an API server, what it recorded of the requests it got, and the means to hurt it.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

pub mod audit;
mod fixtures;
mod http;
pub mod judge;
mod load;
pub mod mirror;
mod process;
mod proxy;
mod real;
mod replica;
mod service;
mod sim;
mod wait;
mod world;

pub use fixtures::{Space, autoscaler, deployment, install};
pub use http::request;
pub use load::Load;
pub use mirror::Mirror;
pub use process::{Crew, acting_as, redirected};
pub use proxy::Proxy;
pub use real::{RealServer, Version};
pub use replica::{Program, Replica};
pub use service::Service;
pub use sim::{SimServer, requests_of};
pub use wait::{eventually, never_within};
pub use world::{World, client_of};
