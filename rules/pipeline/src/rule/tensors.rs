//! The rule `tensors`: values from files or drawn from a seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use graph::{Declaration, Field, Rule, RuleData, SourcePath};
use serde::Deserialize;

/// The fields of `tensors`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Tensors {
    /// Seed of what is drawn.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Tensors drawn from a normal distribution, by name.
    #[serde(default)]
    pub normal: BTreeMap<String, Normal>,
    /// Files with tensors.
    #[serde(default)]
    pub files: Vec<SourcePath>,
    /// Name here to name in the files; all tensors of the files under their own names unless set.
    #[serde(default)]
    pub select: BTreeMap<String, String>,
}

/// A normal distribution.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Normal {
    /// Extents, outermost first.
    pub shape: Vec<u32>,
    /// Mean.
    #[serde(default)]
    pub mean: f64,
    /// Variance.
    #[serde(default = "one")]
    pub variance: f64,
}

fn one() -> f64 {
    1.0
}

/// Most elements of a drawn tensor.
const ELEMENTS_MAX: u64 = 1 << 28;

pub(crate) struct TensorsRule;

impl Rule for TensorsRule {
    fn name(&self) -> &'static str {
        "tensors"
    }

    fn summary(&self) -> &'static str {
        "Tensors by name, from `.npy` and `.safetensors` files or drawn from a seed."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[
            Field::optional(
                "seed",
                "integer",
                "Seed of what is drawn: ChaCha8, one stream for each tensor name, Box-Muller, rounded to f16.",
            ),
            Field::optional(
                "normal",
                "table of { shape, mean, variance }",
                "Tensors drawn from a normal distribution; mean 0 and variance 1 unless set.",
            ),
            Field::optional("files", "list of files", "`.npy` (one tensor, named like the file) or `.safetensors` files."),
            Field::optional("select", "table of names", "Name here = name in the files. Without it all tensors keep their names."),
        ];
        FIELDS
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        let tensors = declaration.read::<Tensors>()?;
        let mut sound = true;
        let mut fault = |field: &str, message: String, expected: &str| {
            declaration.fault(field, message, expected);
            sound = false;
        };
        if !tensors.normal.is_empty() && tensors.seed.is_none() {
            fault("normal", "values are drawn without a `seed`".to_owned(), "a field `seed`");
        }
        for (name, normal) in &tensors.normal {
            let elements = normal.shape.iter().try_fold(1_u64, |product, extent| product.checked_mul(u64::from(*extent)));
            if normal.shape.is_empty() || elements.is_none_or(|elements| elements == 0 || elements > ELEMENTS_MAX) {
                fault(
                    &format!("normal.{name}.shape"),
                    format!("found {:?}", normal.shape),
                    "extents of at least 1 and at most 2^28 elements",
                );
            }
            if !(normal.variance.is_finite() && normal.variance >= 0.0 && normal.mean.is_finite()) {
                fault(
                    &format!("normal.{name}"),
                    format!("found mean {} and variance {}", normal.mean, normal.variance),
                    "a finite mean and a variance of at least 0",
                );
            }
            if tensors.select.contains_key(name) {
                fault(&format!("normal.{name}"), format!("`{name}` is drawn and selected from a file"), "one of them");
            }
        }
        sound.then(|| Arc::new(tensors) as RuleData)
    }
}
