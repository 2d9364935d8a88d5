//! What planning knows of kernels: limits, operands and screening costs of every variant, from the manifests.

use std::collections::BTreeMap;

use toolchain::expression::Expression;
use toolchain::manifest::{self, Kernel, Operand};

use crate::does_not_fit::Nearest;
use crate::plan_fault::Fault;
use crate::program::{Region, Variant};

/// How a call uses an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Read only.
    Read,
    /// Written over its whole footprint, not read before.
    Write,
    /// Read, then written.
    ReadWrite,
}

/// An operand of a variant, its expressions evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandFacts {
    /// Name in the manifest.
    pub name: String,
    /// Use.
    pub access: Access,
    /// Bytes from its address to the end of its reach.
    pub bytes: u64,
    /// Alignment of its address, bytes.
    pub align: u32,
    /// Region it must lie in.
    pub region: Region,
    /// Bytes behind the reach that may be read.
    pub readable_tail: u32,
}

/// The kernels a program may call, by name. Of two libraries the first that has a kernel wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelTable {
    kernels: BTreeMap<String, Kernel>,
}

impl KernelTable {
    /// A table of these kernels; of two with one name the first is kept.
    #[must_use]
    pub fn new(kernels: impl IntoIterator<Item = Kernel>) -> Self {
        let mut table = BTreeMap::new();
        for kernel in kernels {
            table.entry(kernel.name.clone()).or_insert(kernel);
        }
        Self { kernels: table }
    }

    fn kernel(&self, name: &str) -> Result<&Kernel, Fault> {
        self.kernels.get(name).ok_or_else(|| Fault::NoKernel { kernel: name.to_owned() })
    }

    /// All parameters of the kernel are given, no others, and within their limits.
    ///
    /// # Errors
    /// The first parameter that is not.
    pub fn accepts(&self, variant: &Variant) -> Result<(), Fault> {
        let kernel = self.kernel(&variant.kernel)?;
        for (name, range) in &kernel.parameters {
            let Some(&value) = variant.parameters.get(name) else {
                return Err(limit(variant, format!("parameter {name} is missing")));
            };
            if value < range.min || value > range.max || value % range.multiple_of != 0 {
                let reason = format!("{name} = {value}, expected {} to {} in steps of {}", range.min, range.max, range.multiple_of);
                return Err(limit(variant, reason));
            }
        }
        match variant.parameters.keys().find(|name| !kernel.parameters.contains_key(*name)) {
            Some(name) => Err(limit(variant, format!("the kernel has no parameter {name}"))),
            None => Ok(()),
        }
    }

    /// Clocks of one complete call by the manifest's screening model.
    ///
    /// # Errors
    /// An unknown kernel, a parameter out of range, a model that cannot be evaluated.
    pub fn modelled_clocks(&self, variant: &Variant) -> Result<u64, Fault> {
        self.accepts(variant)?;
        let kernel = self.kernel(&variant.kernel)?;
        evaluate(variant, &kernel.cycles)
    }

    /// The operands of a variant in the order of a call.
    ///
    /// # Errors
    /// An unknown kernel or a size that cannot be evaluated.
    pub fn operands(&self, variant: &Variant) -> Result<Vec<OperandFacts>, Fault> {
        let kernel = self.kernel(&variant.kernel)?;
        kernel.operands.iter().map(|operand| facts(variant, operand)).collect()
    }

    /// Pairs of operands, by position, that must lie in different conflict units.
    ///
    /// # Errors
    /// An unknown kernel.
    pub fn apart(&self, variant: &Variant) -> Result<Vec<(usize, usize)>, Fault> {
        let kernel = self.kernel(&variant.kernel)?;
        let position = |name: &str| kernel.operands.iter().position(|operand| operand.name == name);
        Ok(kernel.apart.iter().filter_map(|[one, other]| Some((position(one)?, position(other)?))).collect())
    }

    /// Whether there is a kernel of this name.
    #[must_use]
    pub fn has(&self, kernel: &str) -> bool {
        self.kernels.contains_key(kernel)
    }
}

fn limit(variant: &Variant, reason: String) -> Fault {
    Fault::KernelLimit { variant: printed(variant), reason, nearest: Nearest::default() }
}

fn evaluate(variant: &Variant, expression: &Expression) -> Result<u64, Fault> {
    let value = expression.evaluate(&variant.parameters).map_err(|fault| limit(variant, fault.to_string()))?;
    u64::try_from(value).map_err(|_| limit(variant, format!("an expression of its manifest gives {value}")))
}

fn facts(variant: &Variant, operand: &Operand) -> Result<OperandFacts, Fault> {
    let access = match operand.access {
        manifest::Access::Read => Access::Read,
        manifest::Access::Write => Access::Write,
        manifest::Access::ReadWrite => Access::ReadWrite,
    };
    let region = match operand.region_of(&variant.parameters) {
        "0" => Region::Zero,
        "1" => Region::One,
        _ => Region::Any,
    };
    Ok(OperandFacts {
        name: operand.name.clone(),
        access,
        bytes: evaluate(variant, &operand.bytes)?,
        align: operand.align,
        region,
        readable_tail: u32::try_from(evaluate(variant, &operand.readable_tail)?).unwrap_or(u32::MAX),
    })
}

/// `gemm{cg=5,kb=5,rows=12}`: parameters in lower case, sorted; the kernel's name alone when there are none.
#[must_use]
pub fn printed(variant: &Variant) -> String {
    let parameters: Vec<String> = variant.parameters.iter().map(|(name, value)| format!("{}={value}", name.to_lowercase())).collect();
    match parameters.is_empty() {
        true => variant.kernel.clone(),
        false => format!("{}{{{}}}", variant.kernel, parameters.join(",")),
    }
}
