//! Programs from buffers to results: one written by hand, others planned.

mod building;

mod small_program;
mod whole_programs;
