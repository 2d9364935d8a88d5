//! The rule itself: its fields for messages and documentation, and what it gives.

use std::sync::Arc;

use store::Digest;

use super::{Sweep, table};
use crate::{Declaration, Engine, Failure, Field, Label, Outcome, Rule, RuleData, RuleKind, TargetRecord, data_of};

/// Raised when the same results give something else.
const FINGERPRINT: &[u8] = b"sweep 2";

pub(crate) struct SweepRule;

impl Rule for SweepRule {
    fn name(&self) -> &'static str {
        "sweep"
    }

    fn summary(&self) -> &'static str {
        "A target at many points, each with some of its fields changed, and what becomes of them."
    }

    fn fields(&self) -> &'static [Field] {
        const FIELDS: &[Field] = &[
            Field::required("of", "label of a target that gives something", "What is built at every point, and once as it is declared."),
            Field::required("axes", "table of axes", "By name `field` or `fields`, and `values` or `range`."),
            Field::optional("points", "list of tables", "The points one by one: axis and value."),
            Field::optional("where", "list of conditions", "What holds at every point, as in `rows * columns <= tiles`."),
            Field::optional("sample", "table", "`points`, how many are taken, and `seed`."),
            Field::optional("objective", "table", "`minimize` or `maximize`: a figure; the clocks are minimized unless set."),
            Field::optional("parquet", "boolean", "Whether `sweep.parquet` is written beside `sweep.csv`."),
        ];
        FIELDS
    }

    fn kind(&self) -> RuleKind {
        RuleKind::Sweep
    }

    fn fingerprint(&self) -> Digest {
        Digest::of(FINGERPRINT)
    }

    fn reads_outcomes(&self) -> bool {
        true
    }

    fn reads_records(&self) -> bool {
        true
    }

    fn read(&self, declaration: &Declaration<'_>) -> Option<RuleData> {
        Some(Arc::new(Sweep::read(declaration)?))
    }

    fn finish_over(&self, engine: &Engine, label: &Label, records: &[(Label, Arc<TargetRecord>)]) -> Result<Outcome, Failure> {
        let sweep = data_of::<Sweep>(engine, label)?;
        table::outcome(engine, label, &sweep, records)
    }
}
