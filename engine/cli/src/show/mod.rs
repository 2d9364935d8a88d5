//! Listings for `show`: facts in, text out.

pub(crate) mod package_listing;
pub(crate) mod table;
pub(crate) mod target_listing;
