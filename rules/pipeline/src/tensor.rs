//! Tensors of users: files and seeded draws, as row-major values.
//!
//! In: bytes of `.npy` or `.safetensors` files, or a [`Draw`] with a seed. Out: [`Tensor`]s. Foreign bytes never panic; a tensor
//! is refused when its type is none of f16, f32, f64, when it is not row-major, or when a value is not finite.

use std::collections::BTreeMap;
use std::fmt;

use half::f16;
use npyz::{DType, NpyFile, Order, TypeChar};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

/// A tensor in row-major order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tensor {
    /// Extents, outermost first.
    pub shape: Vec<u32>,
    /// The elements, as many as the product of the extents.
    pub values: Values,
}

/// The elements of a tensor, with the type they were given in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Values {
    /// Bits of binary16 values.
    F16(Vec<u16>),
    /// Binary32 values.
    F32(Vec<f32>),
    /// Binary64 values.
    F64(Vec<f64>),
}

impl Tensor {
    /// A tensor of f16 bits; the number of elements must be that of the shape.
    #[must_use]
    pub fn of_f16(shape: Vec<u32>, bits: Vec<u16>) -> Self {
        debug_assert_eq!(shape.iter().product::<u32>() as usize, bits.len(), "elements of a tensor");
        Self { shape, values: Values::F16(bits) }
    }

    /// The bits of the elements as f16, other types rounded to nearest even.
    #[must_use]
    pub fn f16_bits(&self) -> Vec<u16> {
        match &self.values {
            Values::F16(bits) => bits.clone(),
            Values::F32(values) => values.iter().map(|value| f16::from_f32(*value).to_bits()).collect(),
            Values::F64(values) => values.iter().map(|value| nearest_f16(*value).to_bits()).collect(),
        }
    }

    /// The elements, exactly.
    #[must_use]
    pub fn to_f64(&self) -> Vec<f64> {
        match &self.values {
            Values::F16(bits) => bits.iter().map(|bits| f16::from_bits(*bits).to_f64()).collect(),
            Values::F32(values) => values.iter().map(|value| f64::from(*value)).collect(),
            Values::F64(values) => values.clone(),
        }
    }
}

/// Values drawn from a normal distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Draw {
    /// Extents, outermost first.
    pub shape: Vec<u32>,
    /// Mean of the distribution.
    pub mean: f64,
    /// Variance of the distribution, at least 0.
    pub variance: f64,
}

/// The binary16 value nearest to a binary64 value, ties to even, in one rounding. The conversion of `half` rounds twice on processors
/// that convert by way of binary32 and once on others. Rounding to odd first makes the second rounding the only one that counts.
fn nearest_f16(value: f64) -> f16 {
    let near = value as f32;
    let bits = near.to_bits();
    let odd = if f64::from(near) == value || bits & 1 == 1 || near.is_nan() {
        near
    } else if f64::from(near).abs() < value.abs() {
        f32::from_bits(bits + 1)
    } else {
        f32::from_bits(bits - 1)
    };
    f16::from_f32(odd)
}

/// What can be wrong with a tensor file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The name of the file tells no format.
    UnknownFormat,
    /// The bytes are not what the format says.
    Malformed {
        /// What the reader of the format said.
        message: String,
    },
    /// An element type that is not read.
    ElementType {
        /// Tensor in the file.
        tensor: String,
        /// Its type.
        found: String,
    },
    /// Column-major data.
    ColumnMajor,
    /// More elements than a 32-bit number counts.
    TooLarge {
        /// Tensor in the file.
        tensor: String,
    },
    /// An infinity or NaN, or a value beyond the range of f16.
    NotFinite {
        /// Tensor in the file.
        tensor: String,
        /// Row-major index of the first one.
        index: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFormat => write!(out, "expected a file named *.npy or *.safetensors"),
            Self::Malformed { message } => write!(out, "{message}"),
            Self::ElementType { tensor, found } => {
                write!(out, "tensor `{tensor}`: expected elements of type f16, f32 or f64, found {found}")
            }
            Self::ColumnMajor => write!(out, "expected row-major data, found column-major"),
            Self::TooLarge { tensor } => write!(out, "tensor `{tensor}`: more than 2^32 elements"),
            Self::NotFinite { tensor, index } => write!(out, "tensor `{tensor}`: element {index} is not a finite f16 value"),
        }
    }
}

/// The tensors of a file by name; an `.npy` file has one, named by the stem of the file.
///
/// # Errors
/// [`Fault`] when the bytes are not such a file or hold what is not read.
pub fn read_file(file_name: &str, bytes: &[u8]) -> Result<BTreeMap<String, Tensor>, Fault> {
    let base = file_name.rsplit('/').next().unwrap_or(file_name);
    match base.rsplit_once('.') {
        Some((stem, "npy")) => Ok(BTreeMap::from([(stem.to_owned(), read_npy(stem, bytes)?)])),
        Some((_, "safetensors")) => read_safetensors(bytes),
        _ => Err(Fault::UnknownFormat),
    }
}

fn read_safetensors(bytes: &[u8]) -> Result<BTreeMap<String, Tensor>, Fault> {
    let file = SafeTensors::deserialize(bytes).map_err(|fault| Fault::Malformed { message: fault.to_string() })?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.iter() {
        let values = match view.dtype() {
            Dtype::F16 => Values::F16(words(view.data(), u16::from_le_bytes)),
            Dtype::F32 => Values::F32(words(view.data(), f32::from_le_bytes)),
            Dtype::F64 => Values::F64(words(view.data(), f64::from_le_bytes)),
            other => return Err(Fault::ElementType { tensor: name.to_owned(), found: format!("{other:?}") }),
        };
        let shape = extents(name, view.shape().iter().map(|extent| *extent as u64))?;
        tensors.insert(name.to_owned(), finite(name, Tensor { shape, values })?);
    }
    Ok(tensors)
}

fn read_npy(name: &str, bytes: &[u8]) -> Result<Tensor, Fault> {
    let malformed = |fault: std::io::Error| Fault::Malformed { message: fault.to_string() };
    let file = NpyFile::new(bytes).map_err(malformed)?;
    if file.order() != Order::C {
        return Err(Fault::ColumnMajor);
    }
    let shape = extents(name, file.shape().iter().copied())?;
    let kind = file.dtype();
    let found = || Fault::ElementType { tensor: name.to_owned(), found: kind.descr() };
    let DType::Plain(plain) = &kind else { return Err(found()) };
    // The reader allocates for the number of elements the header claims; the bytes that are there bound it first.
    let needed = file.len().checked_mul(plain.size_field()).ok_or(Fault::TooLarge { tensor: name.to_owned() })?;
    if needed > bytes.len() as u64 {
        return Err(Fault::Malformed {
            message: format!("the header asks for {needed} bytes of data, the file has {} in all", bytes.len()),
        });
    }
    let values = match (plain.type_char(), plain.size_field()) {
        (TypeChar::Float, 2) => Values::F16(file.into_vec::<f16>().map_err(malformed)?.into_iter().map(f16::to_bits).collect()),
        (TypeChar::Float, 4) => Values::F32(file.into_vec().map_err(malformed)?),
        (TypeChar::Float, 8) => Values::F64(file.into_vec().map_err(malformed)?),
        _ => return Err(found()),
    };
    finite(name, Tensor { shape, values })
}

fn words<const N: usize, T>(bytes: &[u8], word: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| word(*chunk)).collect()
}

fn extents(name: &str, extents: impl Iterator<Item = u64>) -> Result<Vec<u32>, Fault> {
    let too_large = || Fault::TooLarge { tensor: name.to_owned() };
    let shape: Vec<u32> = extents.map(u32::try_from).collect::<Result<_, _>>().map_err(|_| too_large())?;
    shape.iter().try_fold(1_u32, |product, extent| product.checked_mul(*extent)).ok_or_else(too_large)?;
    Ok(shape)
}

fn finite(name: &str, tensor: Tensor) -> Result<Tensor, Fault> {
    let finite = |bits: &u16| f16::from_bits(*bits).is_finite();
    match tensor.f16_bits().iter().position(|bits| !finite(bits)) {
        Some(index) => Err(Fault::NotFinite { tensor: name.to_owned(), index: index as u64 }),
        None => Ok(tensor),
    }
}

/// Draws a tensor, rounded to f16: ChaCha8 with `seed`, one stream per tensor name (so that adding a tensor moves no other),
/// Box-Muller on pairs of uniform values. The transcendentals are those of `libm`.
#[must_use]
pub fn draw(seed: u64, name: &str, draw: &Draw) -> Tensor {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(stream_of(name));
    let deviation = libm::sqrt(draw.variance);
    let count = draw.shape.iter().map(|extent| *extent as usize).product();
    let mut bits = Vec::with_capacity(count + 1);
    while bits.len() < count {
        let (first, second) = normal_pair(&mut random);
        bits.extend([first, second].map(|value| nearest_f16(draw.mean + deviation * value).to_bits()));
    }
    bits.truncate(count);
    Tensor::of_f16(draw.shape.clone(), bits)
}

fn stream_of(name: &str) -> u64 {
    let digest = blake3::hash(name.as_bytes());
    u64::from_le_bytes(digest.as_bytes()[..8].try_into().expect("a digest has 32 bytes"))
}

/// Two independent values of N(0, 1) from two uniform ones in (0, 1].
fn normal_pair(random: &mut ChaCha8Rng) -> (f64, f64) {
    let radius = libm::sqrt(-2.0 * libm::log(uniform(random)));
    let angle = 2.0 * std::f64::consts::PI * uniform(random);
    (radius * libm::cos(angle), radius * libm::sin(angle))
}

/// Uniform in (0, 1], 53 bits.
fn uniform(random: &mut ChaCha8Rng) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// The bytes of an f16 tensor as an `.npy` file.
///
/// # Errors
/// The writer's, which a `Vec` never gives.
pub fn to_npy(tensor: &Tensor) -> std::io::Result<Vec<u8>> {
    use npyz::WriterBuilder;
    let shape: Vec<u64> = tensor.shape.iter().map(|extent| u64::from(*extent)).collect();
    let mut bytes = Vec::new();
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut bytes).begin_nd()?;
    writer.extend(tensor.f16_bits().into_iter().map(f16::from_bits))?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Draw, Fault, Tensor, Values, draw, read_file, to_npy};
    use proptest::prelude::*;

    fn hidden() -> Draw {
        Draw { shape: vec![1, 100, 73], mean: 0.0, variance: 0.25 }
    }

    #[test]
    fn an_npy_file_comes_back_as_it_was_written() {
        let tensor = draw(3, "hidden", &hidden());
        let files = read_file("inputs/hidden.npy", &to_npy(&tensor).unwrap()).unwrap();
        assert_eq!(files["hidden"], tensor);
    }

    #[test]
    fn drawn_values_have_the_mean_and_variance_asked_for() {
        let values = draw(3, "hidden", &hidden()).to_f64();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        assert!(mean.abs() < 0.02, "mean {mean}");
        assert!((variance - 0.25).abs() < 0.01, "variance {variance}");
    }

    #[test]
    fn another_name_or_seed_draws_other_values() {
        let tensor = draw(3, "hidden", &hidden());
        assert_ne!(draw(3, "other", &hidden()), tensor);
        assert_ne!(draw(4, "hidden", &hidden()), tensor);
        assert_eq!(draw(3, "hidden", &hidden()), tensor);
    }

    #[test]
    fn binary64_values_are_rounded_once() {
        // By way of binary32 the first would come out one lower: it lies just above the middle of two binary16 values.
        assert_eq!(super::nearest_f16(0.587_158_215_340_288_4).to_bits(), 14515);
        for (value, bits) in
            [(0.0, 0), (-0.0, 0x8000), (1.0, 0x3c00), (65504.0, 0x7bff), (65520.0, 0x7c00), (1e300, 0x7c00), (1e-300, 0), (2.98e-8, 0)]
        {
            assert_eq!(super::nearest_f16(value).to_bits(), bits, "{value}");
        }
    }

    #[test]
    fn infinities_are_refused_with_their_place() {
        let tensor = Tensor { shape: vec![3], values: Values::F16(vec![0, 0x7c00, 0]) };
        let bytes = to_npy(&tensor).unwrap();
        assert_eq!(read_file("x.npy", &bytes), Err(Fault::NotFinite { tensor: "x".to_owned(), index: 1 }));
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        assert_eq!(read_file("x.bin", b""), Err(Fault::UnknownFormat));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn foreign_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), safetensors in any::<bool>()) {
            let _ = read_file(if safetensors { "x.safetensors" } else { "x.npy" }, &bytes);
        }

        #[test]
        fn a_changed_byte_of_an_npy_file_never_panics(at in 0_usize..140, byte in any::<u8>()) {
            let mut bytes = to_npy(&draw(1, "x", &Draw { shape: vec![3, 4], mean: 0.0, variance: 1.0 })).unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = read_file("x.npy", &bytes);
        }
    }
}
