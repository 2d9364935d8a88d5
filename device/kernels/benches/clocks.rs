//! Simulated clocks of the kernels: complete calls against their floors, the bounds on products, softmax and copies, and the errors of the
//! screening models. Figures and cases are those of the tests, which assert the bounds. Nothing is timed.

#![allow(dead_code, reason = "the tests' own modules, of which this program prints the figures")]
#![allow(clippy::print_stdout, reason = "the figures are the purpose of the program")]

#[path = "../tests/kernels/attention.rs"]
mod attention;
#[path = "../tests/kernels/bench.rs"]
mod bench;
#[path = "../tests/kernels/copies.rs"]
mod copies;
#[path = "../tests/kernels/cycle_model.rs"]
mod cycle_model;
#[path = "../tests/kernels/figures.rs"]
mod figures;
#[path = "../tests/kernels/matrix.rs"]
mod matrix;
#[path = "../tests/kernels/product.rs"]
mod product;

use figures::Figure;

fn main() {
    println!("complete calls, clocks; coefficients in region 1\n");
    println!("{:<44}{:>10}{:>11}{:>9}{:>9}{:>9}{:>7}  each unit", "call", "measured", "arithmetic", "loads", "stores", "bound", "ratio");
    figures::ROWS.into_iter().for_each(|rows| line(&figures::product("gemm", rows, 5, 6)));
    figures::SOFTMAXES.into_iter().for_each(|shape| line(&figures::softmax(shape)));
    figures::COPIES.into_iter().for_each(|bytes| line(&Figure::of("copy", &[], &[bytes])));
    figures::PANELS.into_iter().for_each(|shape| line(&figures::copy_panels(shape)));
    figures::others().iter().for_each(line);
    blocks();
    models();
}

fn line(figure: &Figure) {
    print!("{:<44}{:>10}", figure.call, figure.measured);
    for ((_, clocks), width) in figure.components.iter().zip([11, 9, 9]) {
        print!("{clocks:>width$}");
    }
    let ratio = figure.measured as f64 / figure.bound() as f64;
    println!("{:>9}{ratio:>7.2}  {:.3} a {}", figure.bound(), figure.each(), figure.per.0);
}

fn blocks() {
    println!(
        "\na block of 16 x 16 coefficients, clocks: one more in a chain, all blocks of 6 x 5 with their call, bound 75 + 24 * ceil(rows / 6)\n"
    );
    println!("{:>6}{:>12}{:>12}{:>10}", "rows", "one more", "of a call", "bound");
    for rows in figures::ROWS {
        let (block, whole) = (figures::product_block(rows), figures::product("gemm", rows, 5, 6).each());
        println!("{rows:>6}{block:>12.1}{whole:>12.1}{:>10}", figures::block_bound(rows));
    }
}

fn models() {
    println!("\nscreening models against measured calls\n");
    println!("{:<14}{:>6}{:>9}{:>10}  worst", "kernel", "cases", "mean %", "largest %");
    for model in cycle_model::MODELS {
        let errors = model.errors();
        println!("{:<14}{:>6}{:>9.1}{:>10.1}  {}", model.name, errors.cases, 100.0 * errors.mean, 100.0 * errors.largest, errors.worst);
    }
}
