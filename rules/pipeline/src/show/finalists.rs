//! The best operator plans: what each is estimated to cost, and the plan and clocks of every operation.

use compiler::finalists::Finalist;
use compiler::model::Model;
use compiler::plan::{AttentionPlan, Cuts, OperationPlan, ProductPlan};
use compiler::selected::Refined;
use graph::{Cell, Document, ShowFault, Shown};

pub(super) fn show(shown: &Shown<'_>) -> Result<Document, ShowFault> {
    let finalists: Vec<Finalist> = shown.decode()?;
    let model: Option<Model> = shown.input("model");
    let refined: Vec<Option<Refined>> = (0..finalists.len()).map(|index| shown.other("refined", Some(&index.to_string()))).collect();
    let plans = (0_u64..).zip(&finalists).map(|(index, finalist)| {
        let peaks = &finalist.peaks;
        let costs = [finalist.estimated_cycles, finalist.estimated_exchange_cycles, finalist.row_bytes];
        let memory = [peaks.standard, peaks.interleaved, peaks.total, peaks.largest];
        let counts = costs.into_iter().chain(memory).map(Cell::Count);
        std::iter::once(Cell::Number(index)).chain(counts).chain([peaks.largest_name.as_str().into()]).collect()
    });
    let operations = (0_u64..).zip(&finalists).zip(&refined).flat_map(|((index, finalist), refined)| {
        let model = model.as_ref();
        (0..finalist.plan.operations.len()).map(move |number| operation(index, finalist, number, model, refined.as_ref()))
    });
    Ok(Document::default()
        .table(
            "plans",
            &[
                "finalist",
                "estimated cycles",
                "exchange cycles",
                "row bytes",
                "standard bytes",
                "interleaved bytes",
                "total bytes",
                "largest bytes",
                "largest buffer",
            ],
            plans,
        )
        .table(
            "operations",
            &["finalist", "operation", "plan", "compute cycles", "exchange cycles", "active tiles", "parameters"],
            operations,
        ))
}

fn operation(index: u64, finalist: &Finalist, number: usize, model: Option<&Model>, refined: Option<&Refined>) -> Vec<Cell> {
    let name = model.and_then(|model| model.operations.get(number)).map_or_else(|| number.to_string(), |operation| operation.name.clone());
    let clocks = refined.and_then(|refined| refined.modelled.operations.get(number));
    let (kind, parameters) = match &finalist.plan.operations[number] {
        OperationPlan::View => ("view", String::new()),
        OperationPlan::Product(product) => ("product", product_parameters(product)),
        OperationPlan::Attention(attention) => ("attention", attention_parameters(attention)),
    };
    vec![
        Cell::Number(index),
        name.into(),
        kind.into(),
        clocks.map(|clocks| clocks.compute).into(),
        clocks.map(|clocks| clocks.exchange).into(),
        finalist.active_tiles.get(number).copied().into(),
        parameters.into(),
    ]
}

fn product_parameters(plan: &ProductPlan) -> String {
    let ProductPlan { rows, columns, inner, pieces, staged, first, forms, partials, interleaved } = plan;
    let form =
        |form: &compiler::plan::Form| format!("{:?}{}", form.orientation, if form.transposed { " transposed" } else { "" }).to_lowercase();
    let forms: Vec<String> = forms.iter().map(form).collect();
    format!(
        "rows {}, columns {}, {}{}{}{}{}",
        cuts(*rows),
        cuts(*columns),
        if inner.parts > 1 { format!("inner {}, ", cuts(*inner)) } else { String::new() },
        if *pieces > 1 { format!("{pieces} pieces, ") } else { String::new() },
        if *staged { "weights staged, " } else { "" },
        forms.join(" and "),
        common(&[format!("{partials:?}")], *interleaved, *first)
    )
}

fn attention_parameters(plan: &AttentionPlan) -> String {
    let AttentionPlan { heads, queries, keys, first, values_transposed, queries_scaled, score_partials, output_partials, interleaved } =
        plan;
    let turned = if *values_transposed { ", values transposed" } else { "" };
    let scaled = if *queries_scaled { ", queries scaled" } else { "" };
    let partials = [format!("{score_partials:?}"), format!("{output_partials:?}")];
    format!(
        "heads {}, queries {}, keys {}{turned}{scaled}{}",
        cuts(*heads),
        cuts(*queries),
        cuts(*keys),
        common(&partials, *interleaved, *first)
    )
}

fn common(partials: &[String], interleaved: bool, first: u32) -> String {
    let memory = if interleaved { "interleaved" } else { "standard" };
    format!(", partials {}, {memory}, from position {first}", partials.join(" and ").to_lowercase())
}

/// `46 x 16 of 736`: parts, largest part, extent.
fn cuts(cuts: Cuts) -> String {
    let unit = cuts.unit.max(1);
    let largest = u64::from((cuts.extent / unit).div_ceil(cuts.parts.max(1))) * u64::from(unit);
    format!("{} x {largest} of {}", cuts.parts, cuts.extent)
}
