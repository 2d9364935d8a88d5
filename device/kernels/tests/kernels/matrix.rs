//! Matrices of f16 values, and the panels that hold them: `[column/16][row][16]`, `panel` bytes from panel to panel.

use half::f16;

/// Seeded numbers; the same on every machine.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        (self.next() >> 56) as u8
    }

    /// Uniform in -1..1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    /// Nearly normal, standard deviation 1.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..6).map(|_| self.unit()).sum::<f64>() / 2.0_f64.sqrt()
    }
}

/// A matrix whose values are exact f16 numbers.
#[derive(Clone)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    values: Vec<f64>,
}

impl Matrix {
    pub(crate) fn from_fn(rows: usize, columns: usize, mut value: impl FnMut(usize, usize) -> f64) -> Self {
        let values = (0..rows * columns).map(|at| f16::from_f64(value(at / columns, at % columns)).to_f64()).collect();
        Matrix { rows, columns, values }
    }

    pub(crate) fn normal(rows: usize, columns: usize, deviation: f64, draw: &mut Draw) -> Self {
        Self::from_fn(rows, columns, |_, _| deviation * draw.normal())
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.columns + column]
    }

    /// The panels as stretches of memory from `base`; columns are a multiple of 16.
    pub(crate) fn panels(&self, base: u32, panel: u32) -> Vec<(u32, Vec<u8>)> {
        let bytes = |group: usize| {
            let places = (0..self.rows).flat_map(|row| (0..16).map(move |lane| (row, 16 * group + lane)));
            places.flat_map(|(row, column)| f16::from_f64(self.at(row, column)).to_le_bytes()).collect()
        };
        (0..self.columns / 16).map(|group| (base + panel * group as u32, bytes(group))).collect()
    }

    /// Reads the panels back.
    pub(crate) fn from_panels(rows: usize, columns: usize, base: u32, panel: u32, read: impl Fn(u32, u32) -> Vec<u8>) -> Self {
        let groups: Vec<Vec<f64>> = (0..columns / 16).map(|group| halves(&read(base + panel * group as u32, 32 * rows as u32))).collect();
        Self::from_fn(rows, columns, |row, column| groups[column / 16][16 * row + column % 16])
    }

    /// The largest difference from a definition.
    pub(crate) fn error(&self, expected: impl Fn(usize, usize) -> f64) -> f64 {
        let places = (0..self.rows).flat_map(|row| (0..self.columns).map(move |column| (row, column)));
        places.map(|(row, column)| (self.at(row, column) - expected(row, column)).abs()).fold(0.0, f64::max)
    }
}

/// The spans a matrix of panels occupies: (address, bytes).
pub(crate) fn spans(rows: usize, groups: usize, base: u32, panel: u32) -> Vec<(u32, u32)> {
    (0..groups as u32).map(|group| (base + panel * group, 32 * rows as u32)).collect()
}

pub(crate) fn halves(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]]).to_f64()).collect()
}

pub(crate) fn half_bytes(values: impl IntoIterator<Item = f64>) -> Vec<u8> {
    values.into_iter().flat_map(|value| f16::from_f64(value).to_le_bytes()).collect()
}

pub(crate) fn singles(bytes: &[u8]) -> Vec<f64> {
    let single = |word: &[u8]| f32::from_le_bytes([word[0], word[1], word[2], word[3]]);
    bytes.chunks_exact(4).map(|word| f64::from(single(word))).collect()
}

pub(crate) fn single_bytes(values: impl IntoIterator<Item = f64>) -> Vec<u8> {
    values.into_iter().flat_map(|value| (value as f32).to_le_bytes()).collect()
}
