//! How requests arrive and answers leave.

mod answer;
mod discovery;
mod media;
mod messages;
mod openapi;
mod pods;
mod protobuf;
mod reading;
mod review;
mod route;
pub(crate) mod server;
pub(crate) mod service;
mod stream;
mod writing;
