//! (purpose)
