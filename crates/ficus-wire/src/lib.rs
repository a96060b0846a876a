//! GraphSON and GraphBinary, requests and responses: values to bytes and back.
