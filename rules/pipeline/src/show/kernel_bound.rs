//! What a kernel takes by its manifest, beside what it was measured to take.

use graph::{Document, ShowFault, Shown};

use crate::stage::kernel_bound::KernelBound;

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let bound: KernelBound = shown.decode()?;
    let measured = shown.other("measured", shown.entry.name.index.as_deref());
    Ok(with_bound(Document::default().fact("kernel", shown.index()), measured, Some(&bound)))
}

/// Adds measured clocks, and how far they are from the manifest's model and from its lower bound, in clocks of a call.
pub(super) fn with_bound(document: Document, measured: Option<u64>, bound: Option<&KernelBound>) -> Document {
    let document = document.fact("measured cycles", measured);
    let Some(bound) = bound else { return document };
    let clocks = measured.map(|clocks| clocks as f64);
    let error = clocks.filter(|clocks| *clocks > 0.0).map(|clocks| 100.0 * (bound.modelled as f64 - clocks) / clocks);
    let mut document = document.fact("modelled cycles", bound.modelled).fact("model error %", error);
    for (name, least) in &bound.components {
        document = document.fact(&format!("least cycles of {name}"), *least);
    }
    let Some(least) = bound.bound() else { return document };
    let document = document.fact("lower bound cycles", least).fact("measured to bound", clocks.map(|clocks| clocks / least as f64));
    let Some((unit, count)) = bound.per.as_ref().filter(|(_, count)| *count > 0) else { return document };
    let each = |clocks: f64| clocks / *count as f64;
    document.fact(&format!("cycles per {unit}"), clocks.map(each)).fact(&format!("least cycles per {unit}"), each(least as f64))
}
