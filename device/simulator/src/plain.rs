//! One instruction for all workers that stand at it: the fast path.
//!
//! [`execute`] first looks at the registers of all workers: whether the main lane can go wrong, or would store over predecoded
//! code. If so it says [`Outcome::Unusual`] before anything happened, and the reference interpreter takes the turns. Otherwise
//! memory is read and written in the order of the slots, and registers change row by row.

use crate::code::Operation;
use crate::coefficients::Coefficients;
use crate::context::{Repeat, Worker};
use crate::crew::{WORKERS, members_of};
use crate::fault::Cause;
use crate::lanes;
use crate::memory::{Accessor, BASE, END, REGION_1, TileMemory};
use crate::operation::{Broadcast, Integer, Kind, Matrix, Pace, Test, Transfer};
use crate::pace::{self, Accesses, Paced};
use crate::products::{self, Chains};
use crate::register_file::{ALL, Files, LANES, RegisterFile, Row, Set};
use crate::vector_unit::{self, AuxResult};

/// What became of an instruction.
pub(crate) enum Outcome {
    /// Every worker took it and goes on behind it.
    Done,
    /// Every worker took it and goes on at this address.
    Goes(u32),
    /// Every worker took it and has its next program counter.
    Parts,
    /// Nothing happened: it may fault, changes code, or is rare.
    Unusual,
    /// Workers in front of this one took it, this one failed, those behind it did not come to it.
    Failed(usize, Box<Cause>),
}

/// The workers at an instruction, and what they share.
pub(crate) struct Group<'a> {
    pub(crate) workers: &'a mut [Worker; WORKERS],
    pub(crate) members: u8,
    pub(crate) files: &'a mut Files,
    pub(crate) memory: &'a mut TileMemory,
    pub(crate) coefficients: &'a Coefficients,
    /// Whether all members round to nearest even and raise no exceptions: [`floats_are_plain`].
    pub(crate) is_plain: bool,
    /// Accumulators, while the members' matrix steps are taken together.
    pub(crate) chains: &'a mut Chains,
}

/// Does something for each member in the order of slots. A full set has a loop of its own, which compilers unroll.
macro_rules! for_members {
    ($members:expr, $n:ident => $body:expr) => {
        if $members == 0x3f {
            for $n in 0..WORKERS {
                $body;
            }
        } else {
            for $n in lanes_of($members) {
                $body;
            }
        }
    };
}

/// Loads a pair of registers of one worker.
#[inline(always)]
fn load_pair(accessor: &Accessor<'_>, aux: &mut RegisterFile, place: usize, n: usize, address: u32, missing: &mut Missing) {
    let (value, written) = accessor.double(address);
    aux.put_double(place, n, value);
    missing.note(n, written);
}

/// An instruction under way.
struct Step<'a, 'g> {
    group: &'a mut Group<'g>,
    aux: Option<&'a Operation>,
    /// What the aux lane writes when all is done.
    results: Results,
    failed: Option<(usize, Box<Cause>)>,
}

/// The effective addresses of a load or store, and the pointer afterwards.
struct Places {
    at: Row,
    pointer: Row,
}

/// Executes the instruction at `pc`: a bundle if there is a partner, else a solo instruction of either lane.
#[inline(always)]
pub(crate) fn execute(group: &mut Group<'_>, operation: &Operation, partner: Option<&Operation>, pc: u32) -> Outcome {
    let is_solo_aux = partner.is_none() && operation.is_aux;
    let aux = if is_solo_aux { Some(operation) } else { partner };
    let mut step = Step { group, aux, results: Results::default(), failed: None };
    if is_solo_aux {
        step.aux_lane();
        return step.outcome();
    }
    let next = pc + if partner.is_some() { 8 } else { 4 };
    let is_plain = match operation.kind {
        Kind::Pace(pace) => step.paced(operation, pace),
        Kind::Load { transfer, step: steps } => step.load(operation, transfer, steps),
        Kind::Store { transfer, step: steps } => step.store(operation, transfer, steps),
        Kind::SetMain => step.set_main(operation),
        Kind::Integer(integer) => step.integer(operation, integer),
        Kind::AuxToMain => step.aux_to_main(operation),
        Kind::PackAddresses => step.pack_addresses(operation),
        Kind::MoveIf => step.move_if(operation),
        Kind::Repeat => return step.repeat(operation, next),
        Kind::BranchTo => return step.go(operation.immediate),
        Kind::BranchIf(test) => return step.branch_if(operation, test, next),
        Kind::BranchDecrement => return step.branch_decrement(operation, next),
        _ => false,
    };
    if is_plain { step.outcome() } else { Outcome::Unusual }
}

impl Step<'_, '_> {
    /// Writes the results of the aux lane.
    #[inline(always)]
    fn outcome(self) -> Outcome {
        if self.results.count > 0 {
            let (results, reached) = (&self.results, self.reached());
            let file = &mut self.group.files.aux;
            file.set(results.register, results.rows[0], results.written[0], reached);
            if results.count > 1 {
                file.set(results.register + 1, results.rows[1], results.written[1], reached);
            }
        }
        match self.failed {
            None => Outcome::Done,
            Some((n, cause)) => Outcome::Failed(n, cause),
        }
    }

    /// Lanes of workers that took the instruction, with all that have no worker if none failed.
    #[inline(always)]
    fn reached(&self) -> Set {
        self.failed.as_ref().map_or(ALL, |(n, _)| (1 << n) - 1)
    }

    /// Computes the aux lane, which never touches memory: its results wait for [`Step::outcome`]. Returns the lanes of workers that
    /// did not fail, nor stand behind one that failed; only they take the main lane.
    ///
    /// What follows is written as loops over lanes, not as closures: a closure that is not inlined is compiled for the oldest host.
    #[inline(always)]
    fn aux_lane(&mut self) -> Set {
        let Some(aux) = self.aux else { return ALL };
        if !results(self.group, aux, &mut self.results) {
            self.one_by_one(aux);
        }
        self.reached()
    }

    #[inline(never)]
    fn one_by_one(&mut self, aux: &Operation) {
        self.results = Results::default();
        self.group.chains.give_back(self.group.workers);
        for n in lanes_of(self.group.members) {
            match self.group.alone(aux, n) {
                Ok(result) => self.results.enter(n, result),
                Err(cause) => {
                    self.failed = Some((n, cause));
                    break;
                }
            }
        }
        if aux.kind == Kind::PutUpper {
            self.group.is_plain = floats_are_plain(self.group.workers, self.group.members);
        }
    }

    fn set_main(&mut self, operation: &Operation) -> bool {
        let reached = self.aux_lane();
        self.group.files.main.set(operation.d, [operation.immediate; LANES], ALL, reached);
        true
    }

    #[inline(always)]
    fn integer(&mut self, operation: &Operation, integer: Integer) -> bool {
        let main = &self.group.files.main;
        let (b, b_written) =
            if operation.uses_immediate { ([operation.immediate; LANES], ALL) } else { (main.get(operation.y), main.written(operation.y)) };
        let written = main.written(operation.x) & b_written;
        let values = integer_rows(integer, main.get(operation.x), b);
        let reached = self.aux_lane();
        self.group.files.main.set(operation.d, values, written, reached);
        true
    }

    fn aux_to_main(&mut self, operation: &Operation) -> bool {
        let (values, written) = (self.group.files.aux.get(operation.x), self.group.files.aux.written(operation.x));
        let reached = self.aux_lane();
        self.group.files.main.set(operation.d, values, written, reached);
        true
    }

    fn pack_addresses(&mut self, operation: &Operation) -> bool {
        let main = &self.group.files.main;
        let sources = [operation.x, operation.y, operation.z];
        let [lower, upper] = pace::pack_rows(sources.map(|register| main.get(register)));
        let written = sources.iter().fold(ALL, |lanes, &register| lanes & main.written(register));
        let reached = self.aux_lane();
        let main = &mut self.group.files.main;
        main.set(operation.d, lower, written, reached);
        main.set(operation.d + 1, upper, written, reached);
        true
    }

    fn move_if(&mut self, operation: &Operation) -> bool {
        let main = &self.group.files.main;
        if !main.has(operation.needs_main) {
            return false;
        }
        let (condition, values, written) = (main.get(operation.y), main.get(operation.x), main.written(operation.x));
        let moves = lanes_where(condition, |value| value != 0);
        let reached = self.aux_lane();
        self.group.files.main.set(operation.d, values, written, reached & moves);
        true
    }

    /// Where a load or store goes.
    #[inline(always)]
    fn places(&self, operation: &Operation, size: u32, steps: bool) -> Places {
        let main = &self.group.files.main;
        let (base, pointer) = (main.get(operation.x), main.get(operation.y));
        let count = if operation.uses_immediate { [operation.immediate; LANES] } else { main.get(operation.z) };
        let mut places = Places { at: [0; LANES], pointer: [0; LANES] };
        for lane in 0..LANES {
            let distance = count[lane].wrapping_mul(size);
            let start = base[lane].wrapping_add(pointer[lane]);
            places.at[lane] = if steps { start } else { start.wrapping_add(distance) };
            places.pointer[lane] = pointer[lane].wrapping_add(distance);
        }
        places
    }

    /// Whether all members may access these places, from `first` on.
    #[inline(always)]
    fn may_access(&self, operation: &Operation, at: &Row, size: u32, first: u32) -> bool {
        let mut wrong = [0; LANES];
        for lane in 0..LANES {
            wrong[lane] = at[lane] & (size - 1) | u32::from(at[lane].wrapping_sub(first) >= END - first);
        }
        self.group.files.main.has(operation.needs_main) && self.group.files.is_nowhere(&wrong)
    }

    /// Whether stores of all members leave predecoded code alone.
    #[inline(always)]
    fn spares_code(&self, at: &Row) -> bool {
        let (first, end) = self.group.memory.decoded_span();
        let mut inside = [0; LANES];
        for lane in 0..LANES {
            inside[lane] = u32::from(at[lane].wrapping_sub(first) < end.wrapping_sub(first));
        }
        self.group.files.is_nowhere(&inside) || lanes_of(self.group.members).all(|lane| !self.group.memory.holds_code(at[lane]))
    }

    #[inline(always)]
    fn load(&mut self, operation: &Operation, transfer: Transfer, steps: bool) -> bool {
        let size = transfer.bytes();
        let Places { at, pointer } = self.places(operation, size, steps);
        if !self.may_access(operation, &at, size, if transfer == Transfer::AuxQuad { REGION_1 } else { BASE }) {
            return false;
        }
        let d = operation.d;
        let mut missing = [Missing::default(); 2];
        let reached = self.aux_lane();
        let members = self.group.members & reached as u8;
        let Group { memory, files, .. } = &mut *self.group;
        let accessor = memory.accessor();
        match transfer {
            Transfer::AuxPair => {
                let place = files.aux.pair_place(d, 0);
                for_members!(members, n => load_pair(&accessor, &mut files.aux, place, n, at[n], &mut missing[0]));
                files.aux.note_pair(d, missing[0].written(), reached);
            }
            Transfer::AuxQuad => {
                let places = [files.aux.pair_place(d, 0), files.aux.pair_place(d + 2, 1)];
                for_members!(members, n => {
                    load_pair(&accessor, &mut files.aux, places[0], n, at[n], &mut missing[0]);
                    load_pair(&accessor, &mut files.aux, places[1], n, at[n] + 8, &mut missing[1]);
                });
                files.aux.note_pair(d, missing[0].written(), reached);
                files.aux.note_pair(d + 2, missing[1].written(), reached);
            }
            _ => {
                let mut values = [0; LANES];
                for_members!(members, n => {
                    let (value, known) = part(at[n], transfer, accessor.double(at[n]));
                    values[n] = value;
                    missing[0].note(n, known | 2);
                });
                let is_aux = matches!(transfer, Transfer::AuxWord | Transfer::AuxHalf | Transfer::AuxByte);
                // The pointer moves first: the loaded register may be the pointer itself.
                self.move_pointer(operation, pointer, steps, reached);
                let files = &mut *self.group.files;
                let file = if is_aux { &mut files.aux } else { &mut files.main };
                file.set(d, values, missing[0].written()[0], reached);
                return true;
            }
        }
        self.move_pointer(operation, pointer, steps, reached);
        true
    }

    #[inline(always)]
    fn store(&mut self, operation: &Operation, transfer: Transfer, steps: bool) -> bool {
        let size = transfer.bytes();
        let Places { at, pointer } = self.places(operation, size, steps);
        let d = operation.d;
        let files = &*self.group.files;
        let is_written = match transfer {
            Transfer::AuxPair => files.aux.has_pair(d),
            Transfer::AuxWord => files.aux.has(1 << d),
            _ => files.main.has(1 << d),
        };
        if !is_written || !self.may_access(operation, &at, size, BASE) || !self.spares_code(&at) {
            return false;
        }
        let (low, high) = match transfer {
            Transfer::AuxPair => (files.aux.get(d), files.aux.get(d + 1)),
            Transfer::AuxWord => (files.aux.get(d), [0; LANES]),
            _ => (files.main.get(d), [0; LANES]),
        };
        let reached = self.aux_lane();
        let members = self.group.members & reached as u8;
        let mut accessor = self.group.memory.accessor();
        if transfer == Transfer::AuxPair {
            for_members!(members, n => accessor.put_data(at[n], double(low[n], high[n])));
        } else {
            for_members!(members, n => accessor.put_data_word(at[n], low[n]));
        }
        self.move_pointer(operation, pointer, steps, reached);
        true
    }

    #[inline(always)]
    fn move_pointer(&mut self, operation: &Operation, pointer: Row, steps: bool, reached: Set) {
        if steps {
            self.group.files.main.set(operation.y, pointer, ALL, reached);
        }
    }

    #[inline(always)]
    fn paced(&mut self, operation: &Operation, pace: Pace) -> bool {
        match pace {
            Pace::Load2Store => self.paced_with::<true, true, true>(operation, operation.d + 2),
            Pace::LoadStore => self.paced_with::<true, false, true>(operation, 15),
            Pace::Load2 if operation.d == operation.e && operation.d < 8 => false,
            Pace::Load2 => self.paced_with::<true, true, false>(operation, operation.e),
            Pace::Store => self.paced_with::<false, false, true>(operation, 15),
            Pace::LoadPairWord | Pace::LoadPairHalf => false,
        }
    }

    /// A paced instruction that loads at its first and second address and stores at its third, or leaves some of that out.
    #[inline(always)]
    fn paced_with<const FIRST: bool, const SECOND: bool, const STORE: bool>(&mut self, operation: &Operation, second: u8) -> bool {
        let mut codes = [0; 3];
        for (number, which) in (0..3).filter(|&which| [FIRST, SECOND, STORE][which]).enumerate() {
            codes[which] = operation.immediate >> (2 * number) & 3;
        }
        let Files { main, aux, .. } = &*self.group.files;
        if !main.has(operation.needs_main) || STORE && !aux.has_pair(operation.e) {
            return false;
        }
        let accesses = Accesses { used: [FIRST, SECOND, STORE], codes };
        let Paced { at, next, wrong } = pace::plan(main.get(operation.x), main.get(operation.x + 1), main.get(operation.y), accesses);
        if !self.group.files.is_nowhere(&wrong) || STORE && !self.spares_code(&at[2]) {
            return false;
        }
        let (first, source) = (operation.d, operation.e);
        let mut missing = [Missing::default(); 2];
        let reached = self.aux_lane();
        let Group { memory, files, members, .. } = &mut *self.group;
        let (mut accessor, aux) = (memory.accessor(), &mut files.aux);
        let places = [aux.pair_place(first, 0), aux.pair_place(second, 1)];
        for_members!(*members & reached as u8, n => {
            let value = if STORE { aux.double(source, n) } else { 0 };
            if SECOND {
                load_pair(&accessor, aux, places[1], n, at[1][n], &mut missing[1]);
            }
            if FIRST {
                load_pair(&accessor, aux, places[0], n, at[0][n], &mut missing[0]);
            }
            if STORE {
                accessor.put_data(at[2][n], value);
            }
        });
        let Files { main, aux, .. } = &mut *self.group.files;
        if SECOND {
            aux.note_pair(second, missing[1].written(), reached);
        }
        if FIRST {
            aux.note_pair(first, missing[0].written(), reached);
        }
        main.set(operation.x, next[0], ALL, reached);
        main.set(operation.x + 1, next[1], ALL, reached);
        true
    }

    /// Starts a repeat. Its partner runs once; here it is a no-operation.
    fn repeat(self, operation: &Operation, next: u32) -> Outcome {
        let Group { workers, members, files, .. } = self.group;
        let repeats = members_of(workers, *members).any(|(_, worker)| worker.repeat.is_running());
        if self.aux.is_some() || repeats || !next.is_multiple_of(8) || !files.main.has(operation.needs_main) {
            return Outcome::Unusual;
        }
        let end = next + 8 * (operation.second + 1);
        let counts =
            if operation.uses_immediate { [operation.immediate; LANES] } else { files.main.get(operation.x).map(|count| count & 0xffff) };
        for (n, worker) in members_of(workers, *members) {
            worker.pc = if counts[n] == 0 { end } else { next };
            if counts[n] != 0 {
                worker.repeat = Repeat { first: next, end, count: counts[n] };
            }
        }
        Outcome::Parts
    }

    fn go(&self, target: u32) -> Outcome {
        if self.aux.is_some() { Outcome::Unusual } else { Outcome::Goes(target) }
    }

    fn branch_if(self, operation: &Operation, test: Test, next: u32) -> Outcome {
        let main = &self.group.files.main;
        if self.aux.is_some() || !main.has(operation.needs_main) {
            return Outcome::Unusual;
        }
        let taken = lanes_where(main.get(operation.x), |value| test.passes(value));
        self.split(taken, operation.immediate, next)
    }

    fn branch_decrement(self, operation: &Operation, next: u32) -> Outcome {
        let main = &mut self.group.files.main;
        if self.aux.is_some() || !main.has(operation.needs_main) {
            return Outcome::Unusual;
        }
        let counts = main.get(operation.d);
        let taken = lanes_where(counts, |count| count != 0);
        let written = main.written(operation.d) | taken;
        main.set(operation.d, counts.map(|count| count.saturating_sub(1)), written, ALL);
        self.split(taken, operation.immediate, next)
    }

    /// The lanes of `taken` go to `target`, the others to `next`.
    fn split(self, taken: Set, target: u32, next: u32) -> Outcome {
        let Group { workers, members, .. } = self.group;
        match (taken as u8) & *members {
            0 => Outcome::Goes(next),
            all if all == *members => Outcome::Goes(target),
            some => {
                members_of(workers, *members).for_each(|(n, worker)| worker.pc = if some >> n & 1 == 1 { target } else { next });
                Outcome::Parts
            }
        }
    }
}

/// Which of the registers that lanes of a pair were loaded into got poison: two bits a lane.
#[derive(Clone, Copy, Default)]
struct Missing(u32);

impl Missing {
    /// Notes the two written bits of a lane.
    #[inline(always)]
    fn note(&mut self, lane: usize, written: u32) {
        self.0 |= (written ^ 3) << (2 * lane);
    }

    /// The written lanes of both registers.
    #[inline(always)]
    fn written(self) -> [Set; 2] {
        if self.0 == 0 { [ALL; 2] } else { self.taken_apart() }
    }

    #[cold]
    fn taken_apart(self) -> [Set; 2] {
        [0, 1].map(|half| (0..LANES).fold(0, |lanes, lane| lanes | (!self.0 >> (2 * lane + half) & 1) << lane))
    }
}

/// A word, a half or a byte out of the 64 bits around it, and whether it was written.
#[inline(always)]
fn part(address: u32, transfer: Transfer, (value, written): (u64, u32)) -> (u32, u32) {
    let value = value >> (8 * (address % 8));
    let part = match transfer {
        Transfer::SignedHalf => value as i16 as u32,
        Transfer::ZeroHalf => u32::from(value as u16),
        Transfer::AuxHalf => u32::from(value as u16) * 0x1_0001,
        Transfer::SignedByte => value as i8 as u32,
        Transfer::ZeroByte => u32::from(value as u8),
        Transfer::AuxByte => u32::from(value as u8) * 0x0101_0101,
        _ => value as u32,
    };
    (part, written >> (address / 4 % 2) & 1)
}

/// What an aux instruction writes: up to two rows from a register on. Filled in place, since what is written in parts and
/// copied whole stalls the host.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) register: u8,
    pub(crate) count: u32,
    pub(crate) rows: [Row; 2],
    pub(crate) written: [Set; 2],
}

impl Results {
    /// Takes over the result of one worker.
    fn enter(&mut self, lane: usize, result: AuxResult) {
        (self.register, self.count) = (result.register, result.count.into());
        for half in 0..2 {
            self.rows[half][lane] = (result.value >> (32 * half)) as u32;
            self.written[half] |= (result.written >> half & 1) << lane;
        }
    }
}

impl Group<'_> {
    /// The aux lane of one worker.
    #[inline(never)]
    fn alone(&mut self, aux: &Operation, n: usize) -> crate::fault::Step<AuxResult> {
        self.files.give_aux(n, &mut self.workers[n]);
        vector_unit::execute(&mut self.workers[n], aux, self.coefficients)
    }
}

/// Computes an aux instruction for all members; whether that was possible without faults.
#[inline(always)]
fn results(group: &mut Group<'_>, aux: &Operation, out: &mut Results) -> bool {
    let file = &group.files.aux;
    (out.register, out.count, out.written) = (aux.d, 2, [ALL; 2]);
    match aux.kind {
        Kind::SetAux => {
            out.count = 1;
            out.rows[0] = [aux.immediate; LANES];
            true
        }
        Kind::Matrix(Matrix::HalfHalfHalf16) => products::step(group, aux, out),
        Kind::Matrix(Matrix::HalfSingleSingle8) => products::step_single(group, aux, out),
        Kind::PairBits(bits) => {
            let (a, b) = (aux.x & 14, aux.y & 14);
            out.written = [file.written(a) & file.written(a + 1) & file.written(b) & file.written(b + 1); 2];
            for lane in 0..LANES {
                let value = bits.apply(file.double(a, lane), file.double(b, lane));
                (out.rows[0][lane], out.rows[1][lane]) = (value as u32, (value >> 32) as u32);
            }
            true
        }
        Kind::AuxInteger(integer, broadcast) => {
            let (b, b_written) = if aux.uses_immediate { ([aux.immediate; LANES], ALL) } else { (file.get(aux.y), file.written(aux.y)) };
            out.count = 1;
            out.rows[0] = integer_rows(integer, lanes::spread(file.get(aux.x), broadcast), b);
            out.written[0] = file.written(aux.x) & b_written;
            true
        }
        _ if !group.is_plain || !file.has(aux.needs_aux) => false,
        Kind::HalfAccumulate { kind, eight } => products::accumulate_halves(group, aux, kind, eight, out),
        Kind::SingleAccumulate { kind } => products::accumulate_singles(group, aux, kind, out),
        Kind::HalfDot { four } => products::accumulate_half_products(group, aux, four, out),
        Kind::SingleDot { two } => products::accumulate_single_products(group, aux, two, out),
        Kind::HalfGetAccumulators => products::get_accumulators(group, out),
        Kind::SingleExchangeAccumulators => products::exchange_accumulators(group, aux, out),
        _ => float_results(group, aux, out),
    }
}

/// The part of [`results`] that touches registers alone, which were all written.
#[inline(always)]
fn float_results(group: &Group<'_>, aux: &Operation, out: &mut Results) -> bool {
    let (file, members, rows) = (&group.files.aux, group.members, &mut out.rows);
    let x = |four: bool| [file.get(aux.x), file.get(aux.x | u8::from(four))];
    let y = |four: bool| [file.get(aux.y), file.get(aux.y | u8::from(four))];
    let single = |is_pair: bool| if is_pair { 2 } else { 1 };
    match aux.kind {
        Kind::Half { lane, four, broadcast } => {
            out.count = single(four);
            lanes::half(lane, broadcast, x(four), y(four), members, rows)
        }
        Kind::Single { lane, two, broadcast } => {
            out.count = single(two);
            let is_broadcast = two && broadcast != Broadcast::None;
            let a = if is_broadcast { [file.get(aux.x); 2] } else { x(two) };
            lanes::single(lane, a, y(two), members, rows)
        }
        Kind::HalfToSingle { two } => {
            out.count = single(two);
            lanes::half_to_single(file.get(aux.x), rows);
            true
        }
        Kind::SingleToHalf { lanes: 1 } => {
            out.count = 1;
            lanes::single_to_half([file.get(aux.x); 2], members, &mut rows[0])
        }
        Kind::SingleToHalf { lanes: 2 } => {
            out.count = 1;
            lanes::single_to_half(*file.pair(aux.x), members, &mut rows[0])
        }
        Kind::SingleToHalf { .. } => {
            let [low, high] = rows;
            lanes::single_to_half(*file.pair(aux.x), members, low) && lanes::single_to_half(*file.pair(aux.x + 2), members, high)
        }
        Kind::HalfMaxAcross { four } => {
            out.count = 1;
            lanes::half_max_across(x(four), four, members, &mut rows[0])
        }
        Kind::HalfSum { four } => {
            out.count = single(four);
            lanes::half_sum(x(four), members, rows)
        }
        Kind::HalfClamp { four } => {
            out.count = single(four);
            lanes::half_clamp(x(four), file.get(aux.y), members, rows)
        }
        Kind::SingleClamp { two } => {
            out.count = single(two);
            lanes::single_clamp(x(two), *file.pair(aux.y), rows);
            true
        }
        Kind::HalfFunction(function) => {
            out.count = 1;
            lanes::half_function(function, file.get(aux.x), members, &mut rows[0])
        }
        Kind::SingleFunction(function) => {
            out.count = 1;
            lanes::single_function(function, file.get(aux.x), members, &mut rows[0])
        }
        _ => false,
    }
}

/// Whether all members round to nearest even and raise no exceptions.
pub(crate) fn floats_are_plain(workers: &[Worker; WORKERS], members: u8) -> bool {
    lanes_of(members).all(|n| workers[n].float.is_plain())
}

/// Members in the order of their slots.
#[inline(always)]
pub(crate) fn lanes_of(members: u8) -> impl Iterator<Item = usize> {
    (0..WORKERS).filter(move |n| members >> n & 1 == 1)
}

#[inline(always)]
fn lanes_where(row: Row, holds: impl Fn(u32) -> bool) -> Set {
    row.iter().enumerate().fold(0, |lanes, (lane, &value)| lanes | Set::from(holds(value)) << lane)
}

#[inline(always)]
fn double(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Integer arithmetic on rows; what kernels use most has a loop of its own.
#[inline(always)]
fn integer_rows(integer: Integer, a: Row, b: Row) -> Row {
    #[inline(always)]
    fn rows(a: Row, b: Row, f: impl Fn(u32, u32) -> u32) -> Row {
        let mut row = [0; LANES];
        for lane in 0..LANES {
            row[lane] = f(a[lane], b[lane]);
        }
        row
    }
    match integer {
        Integer::Add => rows(a, b, |a, b| Integer::Add.apply(a, b)),
        Integer::Subtract => rows(a, b, |a, b| Integer::Subtract.apply(a, b)),
        Integer::And => rows(a, b, |a, b| Integer::And.apply(a, b)),
        Integer::Or => rows(a, b, |a, b| Integer::Or.apply(a, b)),
        Integer::ExclusiveOr => rows(a, b, |a, b| Integer::ExclusiveOr.apply(a, b)),
        Integer::Multiply => rows(a, b, |a, b| Integer::Multiply.apply(a, b)),
        Integer::ShiftLeft => rows(a, b, |a, b| Integer::ShiftLeft.apply(a, b)),
        Integer::ShiftRight => rows(a, b, |a, b| Integer::ShiftRight.apply(a, b)),
        other => rows(a, b, |a, b| other.apply(a, b)),
    }
}
