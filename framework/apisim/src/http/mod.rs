//! How requests arrive and answers leave.

mod answer;
mod discovery;
mod media;
mod objects;
mod openapi;
mod review;
mod route;
pub(crate) mod server;
pub(crate) mod service;
mod stream;
