//! Expands attention: gather Q, K and V in one phase; scores, softmax and output head by head; then normalise, or
//! exchange partial results inside every team of key groups and merge them.

use ipu21::tile::TileId;

use crate::expand_product::{Multiply, multiply, panels, partials_bytes, transpose};
use crate::expanding::{Calls, Expanding, Need, Panels, ROW, Runs, Traffic};
use crate::layout::Partials;
use crate::model::ValueId;
use crate::plan::{AttentionPlan, PANEL, Rectangle, Task};
use crate::plan_fault::Fault;
use crate::program::{Operand, Order, Piece, Region};

/// Bytes of the two f32 a row has after softmax: maximum times scale, sum.
const STATISTICS: u32 = 8;

/// The operation, free of the model's type.
pub(crate) struct Work {
    pub(crate) number: u32,
    pub(crate) queries: ValueId,
    pub(crate) keys: ValueId,
    pub(crate) values: ValueId,
    pub(crate) scale: f32,
}

/// A task with its tile and the places of what it works on.
struct Job {
    task: Task,
    tile: TileId,
    queries: Panels,
    keys: Panels,
    values: Panels,
    output: Panels,
}

/// Widths and buffers all jobs share.
struct Shared<'a> {
    work: &'a Work,
    /// Q, or Q scaled.
    queries: ValueId,
    /// What is left to do for the softmax.
    scale: f32,
    plan: &'a AttentionPlan,
    name: String,
    /// Padded columns of a head of Q and K.
    width: u32,
    /// Padded columns of a head of V and of the result.
    value_width: u32,
    scores: Operand,
    statistics: Operand,
    score_partials: Option<Operand>,
    output_partials: Option<Operand>,
}

impl Job {
    fn rows(&self) -> u32 {
        self.task.queries.1 - self.task.queries.0
    }

    fn keys(&self) -> u32 {
        self.task.keys.1 - self.task.keys.0
    }

    fn heads(&self) -> u32 {
        self.task.heads.1 - self.task.heads.0
    }

    /// The statistics of its head number `head`, counted from its first.
    fn statistics(&self, shared: &Shared, head: u32) -> Operand {
        Operand { offset: head * self.rows() * STATISTICS, ..shared.statistics }
    }

    fn output(&self, shared: &Shared, head: u32) -> Panels {
        self.output.at(head * shared.value_width / PANEL, 0)
    }
}

/// Appends the steps of an attention and keeps its result.
pub(crate) fn expand(state: &mut Expanding, work: &Work, plan: &AttentionPlan) -> Result<(), Fault> {
    let result = state.model.operations[work.number as usize].result;
    let head_width = |value| state.plan.padded_columns(value) / plan.heads.extent;
    let (width, value_width) = (head_width(work.queries), head_width(work.values));
    let tasks: Vec<_> = plan.tasks(state.plan).into_iter().map(|task| (state.tile(task.position), task)).collect();
    let name = state.model.operations[work.number as usize].name.clone();

    let scaled = if plan.queries_scaled { scale_queries(state, work, &name)? } else { (work.queries, work.scale) };
    gather(state, (work, scaled.0), plan, &name, (width, value_width), &tasks)?;
    let shared = buffers(state, (work, scaled), plan, name, (width, value_width), &tasks);
    let whole: Vec<_> = tasks.iter().map(|(tile, task)| (*tile, columns(task.queries, task.heads, value_width))).collect();
    let merged = plan.keys.parts > 1;
    let output_name = if merged { format!("{}.partial", shared.name) } else { shared.name.clone() };
    let outputs = state.pieces(output_name, Region::Any, Order::ByColumn, &whole);
    let jobs = jobs(state, &shared, &tasks, &outputs)?;

    for head in 0..plan.heads.largest() {
        scores(state, &shared, &jobs, head)?;
        softmax(state, &shared, &jobs, head)?;
        output(state, &shared, &jobs, head)?;
    }
    if merged {
        let pieces = merge(state, &shared, &jobs)?;
        state.keep(result, pieces);
    } else {
        normalise(state, &shared, &jobs)?;
        state.keep(result, outputs);
    }
    Ok(())
}

/// The columns of some heads.
fn columns(rows: (u32, u32), heads: (u32, u32), width: u32) -> Rectangle {
    Rectangle { rows, columns: (heads.0 * width, heads.1 * width) }
}

fn key_rectangle(task: &Task, width: u32) -> Rectangle {
    columns(task.keys, task.heads, width)
}

/// Makes a scaled copy of Q beside every piece of it; the value it is known by, and the scale left.
fn scale_queries(state: &mut Expanding, work: &Work, name: &str) -> Result<(ValueId, f32), Fault> {
    let home = state.home(work.queries, Order::ByColumn).to_vec();
    let rectangles: Vec<_> = home.iter().map(|piece| (piece.tile, Rectangle { rows: piece.rows, columns: piece.columns })).collect();
    let copies = state.pieces(format!("{name}.queries.scaled"), Region::Any, Order::ByColumn, &rectangles);
    let mut calls = Calls::new();
    for (piece, copy) in home.iter().zip(&copies) {
        // A piece with its panels one behind the other is one run, as its copy is.
        let panels = (piece.columns.1 - piece.columns.0) / PANEL;
        let run = copy.panel_bytes * if piece.panel_bytes == copy.panel_bytes { panels } else { 1 };
        for at in 0..copy.panel_bytes * panels / run {
            let from = Operand { buffer: piece.buffer, offset: piece.offset + at * piece.panel_bytes };
            let to = Operand { buffer: copy.buffer, offset: copy.offset + at * copy.panel_bytes };
            let parameters = [("BYTES", i64::from(run)), ("SCALE", i64::from(work.scale.to_bits()))];
            let call = state.call("scale", &parameters, &[from, to]);
            calls.entry(piece.tile).or_default().push(call);
        }
    }
    state.compute(work.number, "scale", calls);
    let value = state.own_value(work.number);
    state.keep(value, copies);
    Ok((value, 1.0))
}

/// Brings Q, K and V to the tasks; turns V where it is used if it is not kept `ByRow`.
fn gather(
    state: &mut Expanding,
    (work, queries): (&Work, ValueId),
    plan: &AttentionPlan,
    name: &str,
    (width, value_width): (u32, u32),
    tasks: &[(TileId, Task)],
) -> Result<(), Fault> {
    let need = |what: &str, value, order, rectangle: &dyn Fn(&Task) -> Rectangle| Need {
        name: format!("{name}.{what}"),
        value,
        order,
        rectangles: tasks.iter().map(|(tile, task)| (*tile, rectangle(task))).collect(),
    };
    let value_order = if plan.values_transposed { Order::ByColumn } else { Order::ByRow };
    let queries = need("queries", queries, Order::ByColumn, &|task| columns(task.queries, task.heads, width));
    let keys = need("keys", work.keys, Order::ByColumn, &|task| key_rectangle(task, width));
    let values = need("values", work.values, value_order, &|task| key_rectangle(task, value_width));
    let same = work.values == work.keys && value_order == Order::ByColumn;
    let needs = if same { vec![queries, keys] } else { vec![queries, keys, values] };
    state.gather(work.number, &needs)?;
    if !plan.values_transposed {
        return Ok(());
    }
    let rectangles: Vec<_> = tasks.iter().map(|(tile, task)| (*tile, key_rectangle(task, value_width))).collect();
    let mut from = Vec::new();
    for (tile, rectangle) in &rectangles {
        let place = state.located(work.values, Order::ByColumn, *tile, rectangle).ok_or_else(|| mismatch(name))?;
        from.push(Piece {
            tile: *tile,
            buffer: place.operand.buffer,
            offset: place.operand.offset,
            order: Order::ByColumn,
            rows: rectangle.rows,
            columns: rectangle.columns,
            panel_bytes: place.stride,
        });
    }
    let turned = state.pieces(format!("{name}.values.turned"), Region::Any, Order::ByRow, &rectangles);
    transpose(state, work.number, &from, &turned)?;
    for piece in turned {
        state.remember(work.values, piece);
    }
    Ok(())
}

fn mismatch(name: &str) -> Fault {
    Fault::PlanMismatch { operation: name.to_owned() }
}

fn buffers<'a>(
    state: &mut Expanding,
    (work, (queries, scale)): (&'a Work, (ValueId, f32)),
    plan: &'a AttentionPlan,
    name: String,
    (width, value_width): (u32, u32),
    tasks: &[(TileId, Task)],
) -> Shared<'a> {
    let mut buffer = |what: &str, region, size: &dyn Fn(&Task) -> u32| {
        let sizes: Vec<_> = tasks.iter().map(|(tile, task)| (*tile, size(task))).collect();
        Operand { buffer: state.buffer(format!("{name}.{what}"), region, &sizes), offset: 0 }
    };
    let rows = |task: &Task| task.queries.1 - task.queries.0;
    let scores = buffer("scores", Region::Any, &|task| rows(task) * ROW * ((task.keys.1 - task.keys.0) / PANEL));
    let statistics = buffer("statistics", Region::Any, &|task| rows(task) * STATISTICS * (task.heads.1 - task.heads.0));
    let mut scratch =
        |what: &str, partials| (partials == Partials::F32).then(|| buffer(what, Region::One, &|task| partials_bytes(rows(task))));
    let score_partials = scratch("scores.partials", plan.score_partials);
    let output_partials = scratch("output.partials", plan.output_partials);
    Shared { work, queries, scale, plan, name, width, value_width, scores, statistics, score_partials, output_partials }
}

fn jobs(state: &Expanding, shared: &Shared, tasks: &[(TileId, Task)], outputs: &[Piece]) -> Result<Vec<Job>, Fault> {
    let Shared { work, queries, width, value_width, .. } = shared;
    let job = |((tile, task), output): (&(TileId, Task), &Piece)| {
        let located = |value, order, rectangle| state.located(value, order, *tile, &rectangle);
        Some(Job {
            task: *task,
            tile: *tile,
            queries: located(*queries, Order::ByColumn, columns(task.queries, task.heads, *width))?,
            keys: located(work.keys, Order::ByColumn, key_rectangle(task, *width))?,
            values: located(work.values, Order::ByRow, key_rectangle(task, *value_width))?,
            output: panels(output),
        })
    };
    tasks.iter().zip(outputs).map(job).collect::<Option<_>>().ok_or_else(|| mismatch(&shared.name))
}

/// The jobs that have a head of this number.
fn with_head<'a>(jobs: &'a [Job], head: u32) -> impl Iterator<Item = &'a Job> + 'a {
    jobs.iter().filter(move |job| head < job.heads())
}

fn score_panels(shared: &Shared, job: &Job) -> Panels {
    Panels { operand: shared.scores, stride: job.rows() * ROW }
}

fn scores(state: &mut Expanding, shared: &Shared, jobs: &[Job], head: u32) -> Result<(), Fault> {
    let mut calls = Calls::new();
    for job in with_head(jobs, head) {
        let panels = head * shared.width / PANEL;
        let product = Multiply {
            rows: job.rows(),
            inner: shared.width,
            columns: job.keys(),
            x: job.queries.at(panels, 0),
            w: job.keys.at(panels, 0),
            out: score_panels(shared, job),
            interleaved: shared.plan.interleaved,
            added: false,
            partials: shared.score_partials,
        };
        calls.entry(job.tile).or_default().push(multiply(state, &product));
    }
    state.compute(shared.work.number, "scores", calls);
    Ok(())
}

fn softmax(state: &mut Expanding, shared: &Shared, jobs: &[Job], head: u32) -> Result<(), Fault> {
    let real = state.model.value(shared.work.keys).rows();
    let mut calls = Calls::new();
    for job in with_head(jobs, head) {
        let tail = real.min(job.task.keys.1) - (job.task.keys.1 - PANEL);
        let scores = score_panels(shared, job);
        let parameters = [
            ("ROWS", i64::from(job.rows())),
            ("KG", i64::from(job.keys() / PANEL)),
            ("TAIL", i64::from(tail)),
            ("S_PANEL", i64::from(scores.stride)),
            ("SCALE", i64::from(shared.scale.to_bits())),
        ];
        let call = state.call("softmax", &parameters, &[scores.operand, job.statistics(shared, head)]);
        calls.entry(job.tile).or_default().push(call);
    }
    state.compute(shared.work.number, "softmax", calls);
    Ok(())
}

fn output(state: &mut Expanding, shared: &Shared, jobs: &[Job], head: u32) -> Result<(), Fault> {
    let mut calls = Calls::new();
    for job in with_head(jobs, head) {
        let product = Multiply {
            rows: job.rows(),
            inner: job.keys(),
            columns: shared.value_width,
            x: score_panels(shared, job),
            w: job.values.at(0, head * shared.value_width),
            out: job.output(shared, head),
            interleaved: shared.plan.interleaved,
            added: false,
            partials: shared.output_partials,
        };
        calls.entry(job.tile).or_default().push(multiply(state, &product));
    }
    state.compute(shared.work.number, "output", calls);
    Ok(())
}

fn normalise(state: &mut Expanding, shared: &Shared, jobs: &[Job]) -> Result<(), Fault> {
    let mut calls = Calls::new();
    for job in jobs {
        for head in 0..job.heads() {
            let output = job.output(shared, head);
            let parameters =
                [("ROWS", i64::from(job.rows())), ("CG", i64::from(shared.value_width / PANEL)), ("O_PANEL", i64::from(output.stride))];
            let call = state.call("normalise", &parameters, &[output.operand, job.statistics(shared, head)]);
            calls.entry(job.tile).or_default().push(call);
        }
    }
    state.compute(shared.work.number, "normalise", calls);
    Ok(())
}

/// What a member of a team merges, and the buffers it merges from.
struct Share {
    /// Query rows.
    rows: (u32, u32),
    /// All parts of all heads: `[head][part]`, each a dense `P(rows, value width)`.
    parts: Operand,
    /// `[head][part][row]` statistics.
    statistics: Operand,
}

impl Share {
    fn count(&self) -> u32 {
        self.rows.1 - self.rows.0
    }

    fn part_at(&self, shared: &Shared, head: u32, part: u32) -> Panels {
        let stride = self.count() * ROW;
        let panels = (head * shared.plan.keys.parts + part) * shared.value_width / PANEL;
        Panels { operand: Operand { offset: panels * stride, ..self.parts }, stride }
    }

    fn statistics_at(&self, shared: &Shared, head: u32, part: u32) -> Operand {
        let offset = (head * shared.plan.keys.parts + part) * self.count() * STATISTICS;
        Operand { offset, ..self.statistics }
    }
}

/// Every member of a team receives its share of the rows from all members, then merges them.
fn merge(state: &mut Expanding, shared: &Shared, jobs: &[Job]) -> Result<Vec<Piece>, Fault> {
    let number = shared.work.number;
    let members = shared.plan.keys.parts;
    let shares = shares(state, shared, jobs);
    let (mut copies, mut traffic) = (Calls::new(), Traffic::default());
    for (job, share) in jobs.iter().zip(&shares) {
        if share.count() == 0 {
            continue;
        }
        let team = &jobs[job.task.team as usize..(job.task.team + members) as usize];
        for (part, member) in (0..members).zip(team) {
            for runs in share_runs(shared, member, share, part) {
                state.bring((member.tile, job.tile), &runs, &mut traffic, &mut copies)?;
            }
        }
    }
    state.compute(number, "copy", copies);
    state.exchange(number, traffic);

    let kept: Vec<_> = jobs
        .iter()
        .zip(&shares)
        .filter(|(_, share)| share.count() > 0)
        .map(|(job, share)| (job.tile, columns(share.rows, job.task.heads, shared.value_width)))
        .collect();
    let pieces = state.pieces(shared.name.clone(), Region::Any, Order::ByColumn, &kept);
    let mut calls = Calls::new();
    for ((job, share), piece) in jobs.iter().zip(&shares).filter(|(_, share)| share.count() > 0).zip(&pieces) {
        for head in 0..job.heads() {
            let out = panels(piece).at(head * shared.value_width / PANEL, 0);
            let parameters = [
                ("ROWS", i64::from(share.count())),
                ("CG", i64::from(shared.value_width / PANEL)),
                ("PARTS", i64::from(members)),
                ("OUT_PANEL", i64::from(out.stride)),
            ];
            let operands = [share.part_at(shared, head, 0).operand, share.statistics_at(shared, head, 0), out.operand];
            let call = state.call("merge", &parameters, &operands);
            calls.entry(job.tile).or_default().push(call);
        }
    }
    state.compute(number, "merge", calls);
    Ok(pieces)
}

fn shares(state: &mut Expanding, shared: &Shared, jobs: &[Job]) -> Vec<Share> {
    let members = shared.plan.keys.parts;
    let rows: Vec<_> = jobs.iter().map(|job| job.task.merged_rows(job.task.key_group)).collect();
    let mut buffer = |what: &str, row_bytes: u32| {
        let sizes: Vec<_> = jobs
            .iter()
            .zip(&rows)
            .filter(|(_, rows)| rows.0 < rows.1)
            .map(|(job, rows)| (job.tile, job.heads() * members * (rows.1 - rows.0) * row_bytes))
            .collect();
        Operand { buffer: state.buffer(format!("{}.{what}", shared.name), Region::Any, &sizes), offset: 0 }
    };
    let parts = buffer("parts", shared.value_width / PANEL * ROW);
    let statistics = buffer("parts.statistics", STATISTICS);
    rows.into_iter().map(|rows| Share { rows, parts, statistics }).collect()
}

/// What a member sends to the owner of a share: its part of every head and that part's statistics.
fn share_runs(shared: &Shared, member: &Job, share: &Share, part: u32) -> Vec<Runs> {
    let first = share.rows.0 - member.task.queries.0;
    let mut runs = Vec::new();
    for head in 0..member.heads() {
        let (from, to) = (member.output(shared, head).at(0, first), share.part_at(shared, head, part));
        let bytes = share.count() * ROW;
        runs.push(Runs {
            source: from.operand,
            destination: to.operand,
            count: shared.value_width / PANEL,
            bytes,
            source_stride: from.stride,
            destination_stride: to.stride,
        });
        let statistics = member.statistics(shared, head);
        let source = Operand { offset: statistics.offset + first * STATISTICS, ..statistics };
        runs.push(Runs::single(source, share.statistics_at(shared, head, part), share.count() * STATISTICS));
    }
    runs
}
