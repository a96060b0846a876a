//! Gremlin over WebSocket and HTTP: sessions, limits, authentication.
