//! Transactional multi-version graph store with a commit log.
