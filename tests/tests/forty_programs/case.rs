//! Programs drawn from a seed, and smaller ones to try when one fails.

use std::fmt::Write as _;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::estimate::Estimate;

/// A linear layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    /// Columns of the result.
    pub(crate) width: u32,
    pub(crate) bias: bool,
    pub(crate) transposed: bool,
}

/// Attention of the rows of the chain, or of an input of its own, over the rows of the input `memory`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attention {
    pub(crate) heads: u32,
    /// Keys and values; differs from the number of tokens.
    pub(crate) keys: u32,
    /// Columns of the values.
    pub(crate) value_width: u32,
    /// Columns of `memory` when keys and values are products of it; keys and values are inputs when there is none.
    pub(crate) memory: Option<u32>,
    /// Whether those products have biases.
    pub(crate) bias: bool,
}

/// A program: products one behind the other, with attention behind the first `before` of them or nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) number: u64,
    pub(crate) tokens: u32,
    /// Columns of the input.
    pub(crate) width: u32,
    pub(crate) products: Vec<Product>,
    pub(crate) attention: Option<(usize, Attention)>,
    pub(crate) tiles: u32,
    /// Whether the host reads every result.
    pub(crate) checkpoints: bool,
}

struct Draw(ChaCha8Rng);

impl Draw {
    /// A number from `low` to `high`.
    fn from(&mut self, low: u32, high: u32) -> u32 {
        low + (self.0.next_u64() % u64::from(high - low + 1)) as u32
    }

    fn coin(&mut self) -> bool {
        self.from(0, 1) == 1
    }

    fn width(&mut self) -> u32 {
        8 * self.from(1, 20)
    }

    /// A multiple of 8 and of the number of heads, up to 160.
    fn width_of(&mut self, heads: u32) -> u32 {
        let step = if heads == 3 { 24 } else { 8 };
        step * self.from(1, 160 / step)
    }

    fn product(&mut self) -> Product {
        Product { width: self.width(), bias: self.coin(), transposed: self.coin() }
    }
}

/// Case `number` of a seed. One in three is products only, one in three attention only; case 7 has all tiles.
pub(crate) fn draw(seed: u64, number: u64) -> Case {
    let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
    draw.0.set_stream(number);
    let tokens = draw.from(1, 300);
    // Every other program has few tiles, so that memory is short.
    let most = if number.is_multiple_of(2) { 128 } else { 8 };
    let tiles = if number == 7 { 1472 } else { draw.from(1, most) };
    let (mut width, checkpoints) = (draw.width(), draw.coin());
    let kind = draw.from(0, 2);
    let count = if kind == 1 { 0 } else { draw.from(1, 3) as usize };
    let mut products: Vec<Product> = (0..count).map(|_| draw.product()).collect();
    let attention = (kind > 0).then(|| {
        let heads = draw.from(1, 4);
        let before = if kind == 1 { 0 } else { draw.from(1, products.len() as u32) as usize };
        let query_width = draw.width_of(heads);
        match before.checked_sub(1) {
            Some(last) => products[last].width = query_width,
            None => width = query_width,
        }
        let keys = draw.from(1, 299);
        let keys = if keys >= tokens { keys + 1 } else { keys };
        (before, Attention { heads, keys, value_width: draw.width_of(heads), memory: (kind == 2).then(|| draw.width()), bias: draw.coin() })
    });
    Case { number, tokens, width, products, attention, tiles, checkpoints }
}

/// Variance of a drawn bias.
const BIAS_VARIANCE: f64 = 0.1;

/// Text of a BUILD.toml, written operation by operation.
struct Writer {
    inputs: String,
    parameters: String,
    operations: String,
    drawn: String,
    labels: Vec<String>,
    tolerances: String,
    computed: Vec<usize>,
    count: usize,
}

/// A value of the model.
#[derive(Clone)]
struct Value {
    name: String,
    width: u32,
    estimate: Estimate,
}

impl Writer {
    fn input(&mut self, name: &str, rows: u32, width: u32) -> Value {
        let _ = writeln!(self.inputs, "inputs.{name} = {{ type = \"f16\", shape = [1, {rows}, {width}] }}");
        let _ = writeln!(self.drawn, "normal.{name} = {{ shape = [1, {rows}, {width}] }}");
        self.labels.push(name.to_owned());
        Value { name: name.to_owned(), width, estimate: Estimate::INPUT }
    }

    fn parameter(&mut self, name: &str, shape: &str, variance: f64) {
        let _ = writeln!(self.parameters, "parameters.{name} = {{ type = \"f16\", shape = [{shape}] }}");
        let _ = writeln!(self.drawn, "normal.{name} = {{ shape = [{shape}], variance = {variance:?} }}");
    }

    fn operation(&mut self, name: &str, rest: &str) {
        let _ = writeln!(self.operations, "[[model.op]] # {}\nname = \"{name}\"\n{rest}", self.count);
        self.count += 1;
    }

    fn computed(&mut self, name: &str, width: u32, estimate: Estimate) -> Value {
        self.computed.push(self.count - 1);
        let _ = writeln!(self.tolerances, "tolerance.{name} = {:.6}", estimate.tolerance());
        Value { name: name.to_owned(), width, estimate }
    }

    fn product(&mut self, name: &str, x: &Value, product: &Product) -> Value {
        let (inner, outer) = (x.width, product.width);
        let shape = if product.transposed { format!("{outer}, {inner}") } else { format!("{inner}, {outer}") };
        self.parameter(&format!("{name}_weight"), &shape, 1.0 / f64::from(inner));
        let mut arguments = format!("\"{}\", \"{name}_weight\"", x.name);
        if product.bias {
            self.parameter(&format!("{name}_bias"), &outer.to_string(), BIAS_VARIANCE);
            let _ = write!(arguments, ", \"{name}_bias\"");
        }
        let transposed = if product.transposed { "transposed = true\n" } else { "" };
        self.operation(name, &format!("op = \"matmul\"\nargs = [{arguments}]\n{transposed}"));
        let bias = if product.bias { BIAS_VARIANCE } else { 0.0 };
        self.computed(name, outer, x.estimate.product(inner, bias))
    }

    fn attention(&mut self, attention: &Attention, x: &Value) -> Value {
        let [keys, values] = match attention.memory {
            Some(width) => {
                let memory = self.input("memory", attention.keys, width);
                let layer = |width: u32, transposed: bool| Product { width, bias: attention.bias, transposed };
                [self.product("k", &memory, &layer(x.width, true)), self.product("v", &memory, &layer(attention.value_width, false))]
            }
            None => [self.input("k", attention.keys, x.width), self.input("v", attention.keys, attention.value_width)],
        };
        for (name, value) in [("queries", x), ("keys", &keys), ("values", &values)] {
            self.operation(name, &format!("op = \"split\"\nargs = [\"{}\"]\nheads = {}\n", value.name, attention.heads));
        }
        self.operation("context", "op = \"attention\"\nargs = [\"queries\", \"keys\", \"values\"]\n");
        let estimate = x.estimate.attention(&keys.estimate, &values.estimate, x.width / attention.heads, attention.keys);
        self.computed("context", attention.value_width, estimate)
    }
}

impl Case {
    /// The BUILD.toml; its run is `//:run`, its program `//:program`.
    pub(crate) fn toml(&self) -> String {
        let [inputs, parameters, operations, drawn, tolerances] = [const { String::new() }; 5];
        let mut writer = Writer { inputs, parameters, operations, drawn, labels: Vec::new(), tolerances, computed: Vec::new(), count: 0 };
        let mut value = writer.input("x", self.tokens, self.width);
        for place in 0..=self.products.len() {
            if let Some((_, attention)) = self.attention.as_ref().filter(|(before, _)| *before == place) {
                value = writer.attention(attention, &value);
            }
            if let Some(product) = self.products.get(place) {
                value = writer.product(&format!("p{place}"), &value, product);
            }
        }
        let Writer { inputs, parameters, operations, drawn, labels, tolerances, computed, .. } = writer;
        let checkpoints = if self.checkpoints { format!("checkpoints = {computed:?}\n") } else { String::new() };
        let tensors: Vec<String> = labels.iter().map(|name| format!("{name} = \":tensors\"")).collect();
        let given = if parameters.is_empty() { "" } else { "parameters = \":tensors\"\n" };
        format!(
            "[model]\nrule = \"model\"\n{inputs}{parameters}{operations}\n\
             [tensors]\nrule = \"tensors\"\nseed = {number}\n{drawn}\n\
             [program]\nrule = \"program\"\nmodel = \":model\"\nmachine = \"@ipu//machines:c600\"\nkernels = [\"@ipu//kernels\"]\n\
             layout = {{ tiles = {tiles} }}\n{checkpoints}\n\
             [run]\nrule = \"run\"\nprogram = \":program\"\ndevice = \"@ipu//devices:simulator\"\ntensors = {{ {tensors} }}\n{given}\
             tolerance.default = 0.0\n{tolerances}",
            number = self.number,
            tiles = self.tiles,
            tensors = tensors.join(", "),
        )
    }

    /// Programs that are smaller in one respect, the greatest steps first.
    pub(crate) fn smaller(&self) -> Vec<Case> {
        let mut found: Vec<Case> = Vec::new();
        let mut add = |change: &dyn Fn(&mut Case)| {
            let mut case = self.clone();
            change(&mut case);
            if case != *self && !found.contains(&case) {
                found.push(case);
            }
        };
        add(&|case| case.checkpoints = false);
        add(&|case| {
            case.products.pop();
            case.attention = case.attention.take().filter(|(before, _)| *before <= case.products.len() && *before > 0);
            if case.products.is_empty() && case.attention.is_none() {
                *case = self.clone();
            }
        });
        if !self.products.is_empty() {
            add(&|case| case.attention = None);
        }
        for number in 0..self.products.len() {
            add(&|case| case.products[number].bias = false);
            add(&|case| case.products[number].transposed = false);
        }
        let step = self.attention.as_ref().map_or(8, |(_, attention)| if attention.heads == 3 { 24 } else { 8 });
        for fraction in [4, 2, 1] {
            // Halfway, a quarter less, one less.
            let less = |value: u32, unit: u32| {
                let cut = if fraction == 1 { unit } else { value / fraction / unit * unit };
                value.saturating_sub(cut.max(unit)).max(unit)
            };
            add(&|case| case.tiles = less(case.tiles, 1));
            add(&|case| case.tokens = less(case.tokens, 1));
            add(&|case| case.width = less(case.width, step));
            for number in 0..self.products.len() {
                add(&|case| case.products[number].width = less(case.products[number].width, step));
            }
            if self.attention.is_some() {
                let change = |case: &mut Case, change: &dyn Fn(&mut Attention)| {
                    if let Some((_, attention)) = &mut case.attention {
                        change(attention);
                    }
                };
                add(&|case| change(case, &|attention| attention.keys = less(attention.keys, 1)));
                add(&|case| change(case, &|attention| (attention.heads, attention.bias) = (1, false)));
                add(&|case| change(case, &|attention| attention.value_width = less(attention.value_width, step)));
                add(&|case| change(case, &|attention| attention.memory = attention.memory.map(|width| less(width, 8))));
            }
        }
        found
    }
}
