//! Programs that compute a value for every vertex.
