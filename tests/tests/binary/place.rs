//! See [`tests::place`].

pub(crate) use tests::place::*;
