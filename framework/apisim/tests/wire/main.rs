//! The server as kube clients see it: in process on virtual time, and over HTTP.

#![allow(clippy::expect_used, reason = "a helper that fails a test says why")]

mod custom;
mod faults;
mod http;
mod lists;
mod objects;
mod pods;
mod scene;
mod watches;
