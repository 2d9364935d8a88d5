//! The program of every tile, as relocatable words for each class of tiles that do the same.
//!
//! In: an [`Expanded`], its [`HostPlan`]. Out: [`TileCode`]: sizes are final, addresses open. Programs are straight lines:
//! host phases of the call `initialize`, host phases with inputs, the steps, host phases with outputs, the end. Everything that
//! differs from tile to tile inside a class (exchange rows, host rows, packet words) is called at one address. [`check`] lists
//! what holds.

use std::collections::{BTreeMap, BTreeSet};

use ipu21::tile::TileId;
use serde::{Deserialize, Serialize};

use crate::{
    host_plan::{Batch, HostPlan, Part, Way},
    placement::Block,
    program::{Call, Expanded, Step, VariantId},
    supervisor::{ARGUMENT, Listing, Relocation, Routine, Target, ZERO},
    tile_set::TileSet,
};

/// One distinct program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassCode {
    /// The logical tiles that run it, ascending.
    pub tiles: Vec<TileId>,
    /// Instructions, then argument blocks.
    pub words: Vec<u32>,
    /// Words that wait for addresses.
    pub relocations: Vec<Relocation>,
    /// Byte offsets of program points.
    pub points: Points,
    /// Kernel variants called, ascending.
    pub kernels: Vec<VariantId>,
    /// Whether the program copies staged host data.
    pub copies: bool,
    /// Exchange phases with a row of this class's tiles.
    pub phases: Vec<u32>,
    /// Host phases in which these tiles move packets or send participation words.
    pub host_phases: Vec<u32>,
}

/// Byte offsets from the program's first word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Points {
    /// First instruction behind the last host input phase.
    pub begin: u32,
    /// First instruction of each step.
    pub steps: Vec<u32>,
    /// First instruction behind the last step.
    pub end: u32,
}

/// The programs of all tiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TileCode {
    /// Index into `classes`, by logical tile.
    pub class_of: Vec<u32>,
    /// Ordered by their first tile.
    pub classes: Vec<ClassCode>,
}

impl TileCode {
    /// The class of a tile.
    pub fn class(&self, tile: TileId) -> &ClassCode {
        &self.classes[self.class_of[tile.index()] as usize]
    }

    /// Size of the largest program in bytes.
    pub fn program_bytes(&self) -> u32 {
        self.classes.iter().map(|class| class.words.len() as u32 * 4).max().unwrap_or(0)
    }

    /// Tiles whose program calls a kernel variant.
    pub fn tiles_with(&self, kernel: VariantId) -> Vec<TileId> {
        self.tiles_where(|class| class.kernels.contains(&kernel))
    }

    /// Tiles of the classes that satisfy a condition, ascending.
    pub fn tiles_where(&self, condition: impl Fn(&ClassCode) -> bool) -> Vec<TileId> {
        let classes = self.classes.iter().filter(|class| condition(class));
        classes.flat_map(|class| &class.tiles).copied().collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// What can be wrong with tile code or its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A step names something the program does not have.
    Dangling {
        /// Number of the step.
        step: u32,
        /// Kind of thing.
        what: &'static str,
        /// Its number.
        index: u32,
    },
    /// A tile is in two groups of a step.
    TwoGroups {
        /// Number of the step.
        step: u32,
        /// The tile.
        tile: TileId,
    },
    /// A tile is in no class or in two.
    Classes {
        /// The tile.
        tile: TileId,
        /// Classes found.
        count: usize,
    },
    /// A tile meets another number of barriers than the program has.
    Barriers {
        /// The tile.
        tile: TileId,
        /// Internal barriers met and expected.
        internal: (u32, u32),
        /// Host barriers met and expected.
        host: (u32, u32),
    },
    /// A tile that moves data in a phase has no row call, or the reverse.
    WrongPart {
        /// The tile.
        tile: TileId,
        /// Number of the exchange phase.
        phase: u32,
    },
    /// The points of a class do not ascend.
    Points {
        /// The tile.
        tile: TileId,
    },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dangling { step, what, index } => write!(f, "step {step} names {what} {index}, which the program does not have"),
            Self::TwoGroups { step, tile } => write!(f, "step {step}: tile {} is in two groups", tile),
            Self::Classes { tile, count } => write!(f, "tile {} is in {count} classes", tile),
            Self::Barriers { tile, internal, host } => write!(
                f,
                "tile {} meets {} internal and {} host barriers; the program has {} and {}",
                tile, internal.0, host.0, internal.1, host.1
            ),
            Self::WrongPart { tile, phase } => write!(f, "tile {} has the wrong part in exchange phase {phase}", tile),
            Self::Points { tile } => write!(f, "program points of the class of tile {} do not ascend", tile),
        }
    }
}

impl std::error::Error for Fault {}

/// Barrier zones (machine.md d.1).
pub(crate) const ZONE_ANNOUNCED: u32 = 1;
pub(crate) const ZONE_INTERNAL: u32 = 3;

/// One thing a tile does; numbers index the interned calls and copies, phases, checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    /// Announces the two barriers of a host phase and waits.
    Bystander,
    /// Takes part in a host phase.
    Host(u32),
    /// Copies a staged part to its place.
    Copy(u32),
    /// The timed part begins here.
    Begin,
    /// A step begins here.
    Step,
    /// Announces an internal barrier and waits.
    Idle,
    /// Meets an internal barrier and runs its row.
    Exchange(u32),
    /// Calls a kernel.
    Call(u32),
    /// Stops for the host.
    Checkpoint(u32),
    /// The timed part ends here.
    End,
    /// The program ends here.
    Finish,
}

/// Calls and copies by number.
#[derive(Default)]
struct Interned {
    calls: Vec<Call>,
    call_numbers: BTreeMap<Call, u32>,
    copies: Vec<Part>,
    copy_numbers: BTreeMap<Part, u32>,
}

impl Interned {
    fn call(&mut self, call: &Call) -> u32 {
        let next = self.calls.len() as u32;
        *self.call_numbers.entry(call.clone()).or_insert_with(|| {
            self.calls.push(call.clone());
            next
        })
    }

    /// Copies are equal when they move the same bytes of the slot to the same place.
    fn copy(&mut self, part: &Part) -> u32 {
        let key = Part { binding: 0, file_offset: 0, ..part.clone() };
        let next = self.copies.len() as u32;
        *self.copy_numbers.entry(key.clone()).or_insert_with(|| {
            self.copies.push(key);
            next
        })
    }
}

/// Tiles that send or receive in each exchange phase.
pub fn active_tiles(expanded: &Expanded) -> Vec<Vec<TileId>> {
    let tiles = |problem: &exchange::Problem| {
        let ends = problem
            .transfers
            .iter()
            .flat_map(|transfer| std::iter::once(transfer.source.tile).chain(transfer.destinations.iter().map(|place| place.tile)));
        ends.collect::<BTreeSet<TileId>>().into_iter().collect()
    };
    expanded.phases.iter().map(tiles).collect()
}

/// Walks the program once for all tiles, groups tiles with equal walks and lists each group's instructions.
pub fn generate(expanded: &Expanded, plan: &HostPlan) -> Result<TileCode, Fault> {
    well_formed(expanded)?;
    let mut interned = Interned::default();
    let acts = walks(expanded, plan, &mut interned);
    let mut groups: BTreeMap<&[Act], Vec<TileId>> = BTreeMap::new();
    for (tile, acts) in TileId::all().zip(&acts) {
        groups.entry(acts.as_slice()).or_default().push(tile);
    }
    let mut classes: Vec<ClassCode> = groups.into_iter().map(|(acts, tiles)| class_code(acts, tiles, &interned)).collect();
    classes.sort_by_key(|class| class.tiles[0]);
    let mut class_of = vec![0; acts.len()];
    for (index, class) in classes.iter().enumerate() {
        class.tiles.iter().for_each(|tile| class_of[tile.index()] = index as u32);
    }
    Ok(TileCode { class_of, classes })
}

fn well_formed(expanded: &Expanded) -> Result<(), Fault> {
    for (number, step) in (0u32..).zip(&expanded.steps) {
        let dangling = |what, index, count: usize| match (index as usize) < count {
            true => Ok(()),
            false => Err(Fault::Dangling { step: number, what, index }),
        };
        match step {
            Step::Exchange { phase, .. } => dangling("phase", *phase, expanded.phases.len())?,
            Step::Checkpoint { checkpoint } => dangling("checkpoint", *checkpoint, expanded.checkpoints.len())?,
            Step::Compute { groups, .. } => {
                let mut seen = TileSet::EMPTY;
                for tile in groups.iter().flat_map(|group| &group.tiles) {
                    if seen.contains(*tile) {
                        return Err(Fault::TwoGroups { step: number, tile: *tile });
                    }
                    seen.insert(*tile);
                }
                for call in groups.iter().flat_map(|group| &group.calls) {
                    dangling("kernel variant", call.kernel.0, expanded.variants.len())?;
                    for operand in &call.operands {
                        dangling("buffer", operand.buffer.0, expanded.buffers.len())?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn walks(expanded: &Expanded, plan: &HostPlan, interned: &mut Interned) -> Vec<Vec<Act>> {
    let mut acts = vec![Vec::new(); ipu21::tile::COUNT];
    let inputs = plan.initialize.len() + plan.inputs.len();
    let mut phases = (0u32..).zip(plan.batches());
    phases.by_ref().take(inputs).for_each(|(number, (way, batch))| host_phase(&mut acts, number, way, batch, interned));
    acts.iter_mut().for_each(|acts| acts.push(Act::Begin));
    let active: Vec<TileSet> = active_tiles(expanded).iter().map(|tiles| tiles.iter().collect()).collect();
    for step in &expanded.steps {
        walk_step(&mut acts, step, &active, interned);
    }
    acts.iter_mut().for_each(|acts| acts.push(Act::End));
    phases.for_each(|(number, (way, batch))| host_phase(&mut acts, number, way, batch, interned));
    acts.iter_mut().for_each(|acts| acts.push(Act::Finish));
    acts
}

fn host_phase(acts: &mut [Vec<Act>], number: u32, way: Way, batch: &Batch, interned: &mut Interned) {
    let taking_part = crate::host_rows::participants(batch);
    for (tile, acts) in TileId::all().zip(acts.iter_mut()) {
        acts.push(if taking_part.contains(tile) { Act::Host(number) } else { Act::Bystander });
        if way == Way::ToTiles {
            acts.extend(batch.parts_of(tile).iter().map(|part| Act::Copy(interned.copy(part))));
        }
    }
}

fn walk_step(acts: &mut [Vec<Act>], step: &Step, active: &[TileSet], interned: &mut Interned) {
    acts.iter_mut().for_each(|acts| acts.push(Act::Step));
    match step {
        Step::Exchange { phase, .. } => {
            for (tile, acts) in TileId::all().zip(acts.iter_mut()) {
                let takes_part = active[*phase as usize].contains(tile);
                acts.push(if takes_part { Act::Exchange(*phase) } else { Act::Idle });
            }
        }
        Step::Compute { groups, .. } => {
            for group in groups {
                let calls: Vec<Act> = group.calls.iter().map(|call| Act::Call(interned.call(call))).collect();
                group.tiles.iter().for_each(|tile| acts[tile.index()].extend(&calls));
            }
        }
        Step::Checkpoint { checkpoint } => acts.iter_mut().for_each(|acts| acts.push(Act::Checkpoint(*checkpoint))),
    }
}

fn class_code(acts: &[Act], tiles: Vec<TileId>, interned: &Interned) -> ClassCode {
    let mut listing = Listing::default();
    let mut arguments = Arguments { interned, listing: Listing::default(), offsets: BTreeMap::new() };
    let mut points = Points::default();
    for act in acts {
        match act {
            Act::Begin => points.begin = listing.bytes(),
            Act::Step => points.steps.push(listing.bytes()),
            Act::End => points.end = listing.bytes(),
            act => list_act(&mut listing, *act, &mut arguments),
        }
    }
    arguments.append_to(&mut listing);
    let kernels = numbers(acts, |act| match act {
        Act::Call(call) => Some(interned.calls[*call as usize].kernel.0),
        _ => None,
    });
    ClassCode {
        tiles,
        words: listing.words,
        relocations: listing.relocations,
        points,
        kernels: kernels.into_iter().map(VariantId).collect(),
        copies: acts.iter().any(|act| matches!(act, Act::Copy(_))),
        phases: numbers(acts, |act| match act {
            Act::Exchange(phase) => Some(*phase),
            _ => None,
        }),
        host_phases: numbers(acts, |act| match act {
            Act::Host(phase) => Some(*phase),
            _ => None,
        }),
    }
}

fn numbers(acts: &[Act], select: impl Fn(&Act) -> Option<u32>) -> Vec<u32> {
    acts.iter().filter_map(select).collect::<BTreeSet<u32>>().into_iter().collect()
}

/// Argument blocks of a class, each distinct one once.
struct Arguments<'a> {
    interned: &'a Interned,
    listing: Listing,
    offsets: BTreeMap<Act, u32>,
}

impl Arguments<'_> {
    /// Offset of the block of a call or copy from the first block.
    fn offset(&mut self, act: Act) -> u32 {
        if let Some(offset) = self.offsets.get(&act) {
            return *offset;
        }
        self.listing.align_ahead(0);
        let offset = self.listing.bytes();
        match act {
            Act::Call(number) => self.list_call(&self.interned.calls[number as usize]),
            Act::Copy(number) => self.list_copy(&self.interned.copies[number as usize]),
            _ => {}
        }
        self.offsets.insert(act, offset);
        offset
    }

    fn list_call(&mut self, call: &Call) {
        call.operands.iter().for_each(|operand| self.listing.data_at(Target::Place(*operand)));
        call.values.iter().for_each(|value| self.listing.data(*value));
    }

    /// Operands and value of the kernel `copy`: source, destination, bytes.
    fn list_copy(&mut self, part: &Part) {
        self.listing.data(ipu21::host::STAGING_ADDRESS + part.slot_offset);
        self.listing.data_at(Target::Place(part.place));
        self.listing.data(part.bytes);
    }

    /// Puts the blocks behind the instructions, whose references become offsets from the program's first word.
    fn append_to(self, listing: &mut Listing) {
        listing.align_ahead(0);
        let (base, base_word) = (listing.bytes(), listing.words.len() as u32);
        for relocation in &mut listing.relocations {
            if let Target::Arguments(offset) = &mut relocation.target {
                *offset += base;
            }
        }
        let moved = |relocation: Relocation| Relocation { word: relocation.word + base_word, ..relocation };
        listing.relocations.extend(self.listing.relocations.into_iter().map(moved));
        listing.words.extend(self.listing.words);
    }
}

fn list_act(listing: &mut Listing, act: Act, arguments: &mut Arguments<'_>) {
    match act {
        Act::Bystander => {
            listing.announce(1);
            listing.sync(ZONE_ANNOUNCED);
        }
        Act::Host(phase) => {
            listing.call_with(Target::Block(Block::Host(phase)), Target::Routine(Routine::Stage));
            listing.call(Target::HostRow(phase));
        }
        Act::Copy(_) => listing.call_with(Target::Arguments(arguments.offset(act)), Target::Block(Block::Copy)),
        Act::Call(number) => {
            let kernel = arguments.interned.calls[number as usize].kernel;
            listing.call_with(Target::Arguments(arguments.offset(act)), Target::Block(Block::Kernel(kernel)));
        }
        Act::Idle => {
            listing.announce(0);
            listing.sync(ZONE_ANNOUNCED);
            listing.call(Target::Routine(Routine::Idle));
        }
        Act::Exchange(phase) => list_exchange(listing, phase),
        Act::Checkpoint(checkpoint) => {
            // The worker call keeps the trap away from an exchange (machine.md f.11).
            listing.call(Target::Routine(Routine::Join));
            listing.call(Target::Routine(Routine::Checkpoint(checkpoint)));
        }
        Act::Finish => listing.jump(Target::Routine(Routine::Finish)),
        Act::Begin | Act::Step | Act::End => {}
    }
}

/// The way of an active tile into a phase (machine.md c.8). The barrier is 8-byte aligned on every tile, so that the path from
/// it to the row is the same in every class.
fn list_exchange(listing: &mut Listing, phase: u32) {
    listing.call(Target::Routine(Routine::Join));
    listing.put(ipu21::csr::INCOMING_BASE, ZERO);
    listing.put(ipu21::csr::OUTGOING_BASE, ZERO);
    listing.set(ARGUMENT, 1);
    listing.put(ipu21::csr::INCOMING_DCOUNT, ARGUMENT);
    listing.align_ahead(0);
    listing.sync(ZONE_INTERNAL);
    listing.call(Target::Block(Block::Row(phase)));
}

/// What holds of tile code:
/// * every tile is in exactly one class, and the classes name it;
/// * read word by word, every class meets each internal barrier once (by `sync 3`, or announced) and each host barrier once;
/// * a class calls the row of exactly the phases in which its tiles send or receive;
/// * program points ascend, one for each step.
pub fn check(expanded: &Expanded, plan: &HostPlan, code: &TileCode) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    for (tile, class) in TileId::all().zip(&code.class_of) {
        let count = code.classes.iter().filter(|class| class.tiles.contains(&tile)).count();
        let named = code.classes.get(*class as usize).is_some_and(|class| class.tiles.contains(&tile));
        if count != 1 || !named {
            faults.push(Fault::Classes { tile, count });
        }
    }
    let active = active_tiles(expanded);
    for class in &code.classes {
        check_class(expanded, plan, &active, class, &mut faults);
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn check_class(expanded: &Expanded, plan: &HostPlan, active: &[Vec<TileId>], class: &ClassCode, faults: &mut Vec<Fault>) {
    let Some(tile) = class.tiles.first().copied() else { return };
    let (internal, host) = barriers_met(class);
    let phases = expanded.steps.iter().filter(|step| matches!(step, Step::Exchange { .. })).count() as u32;
    let host_barriers = 2 * plan.batches().count() as u32;
    if (internal, host) != (phases, host_barriers) {
        faults.push(Fault::Barriers { tile, internal: (internal, phases), host: (host, host_barriers) });
    }
    for (phase, active) in (0u32..).zip(active) {
        let target = Target::Block(Block::Row(phase));
        let calls = class.relocations.iter().any(|relocation| relocation.target == target);
        let wrong = class.tiles.iter().find(|tile| active.contains(tile) != calls);
        let used = expanded.steps.iter().any(|step| matches!(step, Step::Exchange { phase: used, .. } if *used == phase));
        if let Some(tile) = wrong.filter(|_| used) {
            faults.push(Fault::WrongPart { tile: *tile, phase });
        }
    }
    let points = &class.points;
    let mut all = std::iter::once(points.begin).chain(points.steps.iter().copied()).chain([points.end]);
    let ascending = all.clone().is_sorted() && all.all(|point| point <= class.words.len() as u32 * 4);
    if !ascending || points.steps.len() != expanded.steps.len() {
        faults.push(Fault::Points { tile });
    }
}

/// Internal and host barriers met by a straight-line program: a host row call meets two host barriers, `sans i` announces i + 1
/// barriers, of a host phase when i is 1.
fn barriers_met(class: &ClassCode) -> (u32, u32) {
    let end = class.relocations.iter().position(|relocation| relocation.target == Target::Routine(Routine::Finish));
    let code = &class.words[..end.map_or(0, |index| class.relocations[index].word as usize)];
    let (mut internal, mut host) = (0, 0);
    for word in code {
        match word {
            0x4180_0003 | 0x40c0_0000 => internal += 1,
            0x40c0_0001 => host += 2,
            _ => {}
        }
    }
    let rows = class.relocations.iter().filter(|relocation| matches!(relocation.target, Target::HostRow(_))).count();
    (internal, host + 2 * rows as u32)
}

#[cfg(test)]
mod tests {
    use exchange::{BufferId, Place, Problem, Transfer};

    use super::*;
    use crate::{
        program::{CallGroup, Operand, Variant},
        rows,
    };

    fn tile(number: u16) -> TileId {
        TileId::new(number).expect("a tile")
    }

    fn phase(from: u16, to: u16) -> Problem {
        let place = |number| Place { tile: tile(number), buffer: BufferId(0), offset: 0 };
        Problem { transfers: vec![Transfer { source: place(from), words: 2, destinations: vec![place(to)] }], serial: Vec::new() }
    }

    /// Tiles 2 and 3 exchange, tile 3 computes and sends to 4.
    fn program() -> Expanded {
        let call = Call { kernel: VariantId(0), operands: vec![Operand { buffer: BufferId(0), offset: 0 }], values: vec![8] };
        let compute = Step::Compute {
            operation: 0,
            what: "clear".to_owned(),
            groups: vec![CallGroup { tiles: vec![tile(3)], calls: vec![call.clone(), call] }],
        };
        let buffer = crate::program::Buffer {
            name: "value".to_owned(),
            bytes: 8,
            tiles: vec![tile(2), tile(3), tile(4)],
            region: crate::program::Region::Any,
            align: 8,
            readable_tail: 0,
            first_step: None,
            last_step: None,
        };
        Expanded {
            buffers: vec![buffer],
            steps: vec![Step::Exchange { phase: 0, operation: 0 }, compute, Step::Exchange { phase: 1, operation: 0 }],
            phases: vec![phase(2, 3), phase(3, 4)],
            variants: vec![Variant { kernel: "clear".to_owned(), parameters: BTreeMap::new() }],
            bindings: Vec::new(),
            checkpoints: Vec::new(),
            operations: vec!["move".to_owned()],
            pairs: false,
        }
    }

    fn code() -> TileCode {
        generate(&program(), &HostPlan::default()).expect("a sound program")
    }

    #[test]
    fn tiles_that_do_the_same_share_a_class() {
        let code = code();
        let sizes: Vec<usize> = code.classes.iter().map(|class| class.tiles.len()).collect();
        assert_eq!(sizes, [1469, 1, 1, 1]);
        assert_eq!(code.class(tile(3)).phases, [0, 1]);
        assert_eq!(code.tiles_with(VariantId(0)), [tile(3)]);
        assert_eq!(check(&program(), &HostPlan::default(), &code), Ok(()));
        assert_eq!(rows::check_entries(&program(), &code), Ok(()));
    }

    #[test]
    fn equal_calls_share_their_argument_block_behind_the_code() {
        let code = code();
        let class = code.class(tile(3));
        let blocks: Vec<u32> = class
            .relocations
            .iter()
            .filter_map(|relocation| match relocation.target {
                Target::Arguments(offset) => Some(offset),
                _ => None,
            })
            .collect();
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[0], blocks[1]);
        assert_eq!(blocks[0] % 8, 0);
        assert_eq!(class.words[blocks[0] as usize / 4..], [0, 8]);
    }

    #[test]
    fn references_to_nothing_and_tiles_in_two_groups_are_refused() {
        let mut two = program();
        if let Step::Compute { groups, .. } = &mut two.steps[1] {
            groups.push(groups[0].clone());
        }
        let plan = HostPlan::default();
        assert_eq!(generate(&two, &plan), Err(Fault::TwoGroups { step: 1, tile: tile(3) }));
        let mut dangling = program();
        dangling.phases.pop();
        assert_eq!(generate(&dangling, &plan), Err(Fault::Dangling { step: 2, what: "phase", index: 1 }));
        let mut dangling = program();
        dangling.buffers.clear();
        assert_eq!(generate(&dangling, &plan), Err(Fault::Dangling { step: 1, what: "buffer", index: 0 }));
    }

    #[test]
    fn every_rule_has_a_case_that_breaks_it() {
        let faults = |change: &dyn Fn(&mut TileCode)| {
            let mut changed = code();
            change(&mut changed);
            check(&program(), &HostPlan::default(), &changed).expect_err("the code is wrong")
        };
        let position = |code: &TileCode, number: u16| code.class_of[tile(number).index()] as usize;
        let twice = faults(&|code| code.classes[0].tiles.push(tile(3)));
        assert_eq!(twice[0], Fault::Classes { tile: tile(3), count: 2 });
        let skipped = faults(&|code| {
            let class = position(code, 2);
            let word = code.classes[class].words.iter().position(|word| *word == 0x4180_0003).expect("a barrier");
            code.classes[class].words[word] = ipu21::isa::NOP;
        });
        assert_eq!(skipped, [Fault::Barriers { tile: tile(2), internal: (1, 2), host: (0, 0) }]);
        let unrowed = faults(&|code| {
            let class = position(code, 4);
            code.classes[class].relocations.retain(|relocation| relocation.target != Target::Block(Block::Row(1)));
        });
        assert_eq!(unrowed, [Fault::WrongPart { tile: tile(4), phase: 1 }]);
        let early = faults(&|code| code.classes[0].points.end = 0);
        assert_eq!(early, [Fault::Points { tile: tile(0) }]);
    }

    /// Inserts a word into the class of a tile, moving what refers to places behind it.
    fn insert(code: &mut TileCode, number: u16, at: u32, word: u32) {
        let class = code.class_of[tile(number).index()] as usize;
        let class = &mut code.classes[class];
        class.words.insert(at as usize, word);
        class.relocations.iter_mut().filter(|relocation| relocation.word >= at).for_each(|relocation| relocation.word += 1);
    }

    #[test]
    fn a_different_way_from_the_barrier_to_the_row_is_found() {
        let barrier = |code: &TileCode| code.class(tile(3)).words.iter().position(|word| *word == 0x4180_0003).expect("a barrier") as u32;
        let mut slow = code();
        let behind = barrier(&slow) + 1;
        insert(&mut slow, 3, behind, ipu21::isa::NOP);
        assert!(rows::check_entries(&program(), &slow).is_err());
        let mut odd = code();
        let before = barrier(&odd);
        insert(&mut odd, 3, before, ipu21::isa::NOP);
        assert!(rows::check_entries(&program(), &odd).is_err());
    }

    #[test]
    fn workers_that_nobody_joined_are_found() {
        let mut code = code();
        let class = code.class_of[tile(3).index()] as usize;
        code.classes[class]
            .relocations
            .iter_mut()
            .filter(|relocation| relocation.target == Target::Routine(Routine::Join))
            .for_each(|relocation| relocation.target = Target::Routine(Routine::Stage));
        assert!(rows::check_entries(&program(), &code).is_err());
    }
}
