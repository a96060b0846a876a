//! A server with a backend of our own, driven over real sockets through the codec's client side.

mod authentication;
mod client;
mod disk;
mod http;
mod life;
mod limits;
mod mock;
mod queries;
mod requests;
mod sessions;
mod tenants;
mod transactions;
mod unread;
