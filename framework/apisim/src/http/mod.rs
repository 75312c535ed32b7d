//! How requests arrive and answers leave.

mod answer;
mod discovery;
mod media;
mod messages;
mod objects;
mod openapi;
mod protobuf;
mod review;
mod route;
pub(crate) mod server;
pub(crate) mod service;
mod stream;
