//! The server as kube clients see it: in process on virtual time, and over HTTP.

mod custom;
mod faults;
mod http;
mod lists;
mod objects;
mod scene;
mod watches;
