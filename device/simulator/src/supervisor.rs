//! One supervisor instruction: its clocks, and what it does to its tile (isa-notes 3, machine.md c.4, d).

use ipu21::csr;
use ipu21::exchange_word::NEUTRAL;
use ipu21::host;
use ipu21::memory::{FETCH_LOOK_AHEAD, units};

use crate::barrier::SLOT;
use crate::code::Operation;
use crate::fault::{Cause, PairRule, Step, fail};
use crate::load_store;
use crate::memory::{ReadFault, span};
use crate::operation::Kind;
use crate::tile::{Environment, State, Tile};
use crate::worker::{branch, refuse};

/// Exchange select values above the tiles: 0x600..0x63f are host ports (machine.md a.8).
const EXTERNAL: std::ops::RangeInclusive<u32> = host::MUX_BASE..=host::MUX_BASE + 63;
const CR: u32 = 0x02;
const TILE_ID: u32 = 0x03;
const FP_ICTL: u32 = 0x20;
const FP_INFMT: u32 = 0x31;
const FP_ISCL: u32 = 0x33;
const CCCSLOAD: u32 = 0x50;
const ANS_DCOUNT: u32 = 0xaa;
const STRAP: u32 = 0xff;
/// Largest ANS_DCOUNT (19 bits).
const ANNOUNCED_MAX: u64 = (1 << 19) - 1;

/// A field of an exchange word.
fn bits(word: u32, high: u32, low: u32) -> u32 {
    (word >> low) & ((1u64 << (high - low + 1)) - 1) as u32
}

impl Tile {
    /// Executes the supervisor's next instruction.
    pub(crate) fn supervise(&mut self, environment: &Environment) -> Step {
        let (operation, partner) = self.code.fetch(&mut self.memory, &environment.decoder, self.pc)?;
        let operation = *operation;
        if partner.is_some() {
            return fail(Cause::IllegalBundle { word: operation.immediate, rule: "a supervisor has no aux lane" });
        }
        if self.must_pause(&operation) {
            self.state = State::Paused;
            return Ok(());
        }
        self.pass = false;
        let clock = self.issue_clock(&operation);
        if !self.watch.is_empty() && self.watch.contains(&self.pc) {
            self.hits.push((self.pc, clock));
        }
        if self.exchange.open && operation.kind.is_exchange() {
            self.exchange.logging = true;
        }
        if self.exchange.logging {
            self.exchange.fetch(clock, units(self.pc, 4 + FETCH_LOOK_AHEAD));
        }
        self.clock = clock;
        if self.exchange.in_flight {
            self.note_access(&operation);
        }
        self.instructions += 1;
        self.execute(&operation, environment)
    }

    /// Records what a load or store touches, to be compared with the words that arrive at the same clock (machine.md b.2 case 3).
    fn note_access(&mut self, operation: &Operation) {
        let (address, bytes) = match operation.kind {
            Kind::Load { transfer, step } | Kind::Store { transfer, step } => {
                (load_store::peek(&self.main, operation, transfer, step), transfer.bytes())
            }
            Kind::PutCoefficients { two } => (self.csr[CCCSLOAD as usize], if two { 16 } else { 8 }),
            _ => return,
        };
        if span(address, bytes).is_ok() {
            self.exchange.access(self.clock, units(address, bytes));
        }
    }

    /// Whether incoming or outgoing words must be settled before this instruction.
    fn must_pause(&mut self, operation: &Operation) -> bool {
        if self.pass || operation.kind.is_exchange() {
            return false;
        }
        let touches =
            matches!(operation.kind, Kind::Load { .. } | Kind::Store { .. } | Kind::RunAll | Kind::Run | Kind::PutCoefficients { .. });
        if touches && !self.exchange.unresolved && !self.exchange.in_flight {
            self.exchange.logging = false;
        }
        let ends = matches!(operation.kind, Kind::BranchTo) && operation.immediate == self.pc;
        self.exchange.unresolved || (self.exchange.in_flight && (touches || ends))
    }

    /// The clock at which an instruction issues: results it needs, and a free slot among the workers.
    pub(crate) fn issue_clock(&self, operation: &Operation) -> u64 {
        let mut clock = self.clock;
        let mut reads = operation.reads_main;
        while reads != 0 {
            let register = reads.trailing_zeros() as usize;
            clock = clock.max(self.ready[register]);
            reads &= reads - 1;
        }
        if self.csr_ready.1 > clock && depends_on_csr(operation, self.csr_ready.0) {
            clock = self.csr_ready.1;
        }
        self.free_slot(clock)
    }

    fn execute(&mut self, operation: &Operation, environment: &Environment) -> Step {
        let timing = &environment.timing;
        let next = self.pc + 4;
        if let Some(target) = branch(&mut self.main, operation, next)? {
            if matches!(operation.kind, Kind::BranchDecrement | Kind::Call) {
                self.ready[operation.d as usize & 15] = self.clock + timing.result_latency;
            }
            let taken = target != next || matches!(operation.kind, Kind::BranchTo | Kind::BranchRegister | Kind::Call);
            if target == self.pc && matches!(operation.kind, Kind::BranchTo) && self.active == 0 {
                self.state = State::Halted;
                return Ok(());
            }
            self.pc = target;
            self.clock += if taken { timing.taken_branch } else { timing.instruction };
            return Ok(());
        }
        if operation.kind.is_exchange() {
            return self.exchange_word(operation);
        }
        let mut took = timing.instruction;
        match operation.kind {
            Kind::SetMain => {
                self.main.set(operation.d, operation.immediate, true);
                self.result(operation, timing.result_latency);
            }
            Kind::Integer(integer) => {
                load_store::integer(&mut self.main, operation, integer);
                self.result(operation, timing.result_latency);
            }
            Kind::MoveIf => {
                self.main.need(operation)?;
                load_store::move_if(&mut self.main, operation);
                self.result(operation, timing.result_latency);
            }
            Kind::Load { transfer, step } if !operation.is_worker_only() => {
                load_store::load_main(&mut self.main, operation, transfer, step, &self.memory)?;
                self.result(operation, timing.result_latency);
                if step {
                    self.ready[operation.y as usize & 15] = self.clock + timing.result_latency;
                }
            }
            Kind::Store { step, .. } if !operation.is_worker_only() => {
                load_store::store_main(&mut self.main, operation, step, &mut self.memory)?;
                if step {
                    self.ready[operation.y as usize & 15] = self.clock + timing.result_latency;
                }
            }
            Kind::PutCoefficients { two } => {
                self.put_coefficients(operation, two)?;
                took = if two { timing.ld128putcs } else { timing.ld64putcs };
            }
            Kind::Get => self.get(operation, timing.result_latency)?,
            Kind::Put => {
                self.main.need(operation)?;
                let value = self.main.get(operation.x);
                self.put(operation.immediate, value)?;
                self.csr_ready = (operation.immediate, self.clock + timing.csr_latency);
            }
            Kind::RunAll => {
                self.run_all(operation, timing.runall)?;
                took = timing.runall;
            }
            Kind::Run => {
                self.run_one(operation, timing.runall)?;
                took = timing.runall;
            }
            Kind::Announce => self.announce(operation.immediate)?,
            Kind::Sync => {
                self.pc = next;
                return self.sync(operation.immediate, timing.instruction);
            }
            Kind::Trap => {
                self.state = State::Trapped { number: operation.immediate };
                return Ok(());
            }
            _ => return refuse(operation, true),
        }
        self.pc = next;
        self.clock += took;
        Ok(())
    }

    fn result(&mut self, operation: &Operation, latency: u64) {
        self.ready[operation.d as usize & 15] = self.clock + latency;
    }

    fn put_coefficients(&mut self, operation: &Operation, two: bool) -> Step {
        let address = self.csr[CCCSLOAD as usize];
        let entry = operation.immediate as usize;
        let last = if two { entry + 1 } else { entry };
        if last >= crate::coefficients::ENTRIES {
            return fail(Cause::NotSimulated { form: operation.name(), value: operation.immediate });
        }
        let coefficients = self.coefficients.get_or_insert_default();
        if two {
            let [low, high] = load_store::load_quad(&self.memory, address)?;
            coefficients.put(entry, low.0, low.1);
            coefficients.put(entry + 1, high.0, high.1);
            self.csr[CCCSLOAD as usize] = address.wrapping_add(16);
        } else {
            let (value, written) = self.memory.load_double(address)?;
            coefficients.put(entry, value, written);
            self.csr[CCCSLOAD as usize] = address.wrapping_add(8);
        }
        Ok(())
    }

    fn get(&mut self, operation: &Operation, latency: u64) -> Step {
        let value = match operation.immediate {
            0 => self.pc,
            csr::SSR => u32::from(self.consensus),
            CR => 0,
            TILE_ID => u32::from(self.id.get()),
            csr::COUNT_L => self.clock as u32,
            0x61 => (self.clock >> 32) as u32,
            csr::INCOMING_MUX => self.exchange.mux,
            ANS_DCOUNT => self.credits,
            STRAP.. => return fail(Cause::NotSimulated { form: operation.name(), value: operation.immediate }),
            number => self.csr[number as usize],
        };
        self.main.set(operation.d, value, true);
        self.result(operation, latency);
        Ok(())
    }

    fn put(&mut self, number: u32, value: u32) -> Step {
        match number {
            CR => {
                self.consensus = (self.consensus || value & 2 != 0) && value & 1 == 0;
                if value & 4 != 0 {
                    self.coefficients.get_or_insert_default().clear();
                }
            }
            FP_INFMT => self.coefficients.get_or_insert_default().byte_formats = value & 3,
            FP_ISCL => self.coefficients.get_or_insert_default().byte_scale = ((value << 26) as i32) >> 26,
            csr::INCOMING_MUX => {
                self.check_mux(value)?;
                self.exchange.select(self.clock, value);
            }
            csr::INCOMING_MUXPAIR => self.select_control(0, 1, value)?,
            csr::INCOMING_FORMAT => self.pointer_control(0, 1, value)?,
            csr::INCOMING_DCOUNT => self.arrived = 0,
            0 | STRAP.. => return fail(Cause::NotSimulated { form: "control register of the supervisor", value: number }),
            _ => {}
        }
        self.csr[number as usize] = value;
        Ok(())
    }

    fn check_mux(&self, value: u32) -> Step {
        let expected = self.host_port();
        if EXTERNAL.contains(&value) && value != expected {
            return fail(Cause::ExternalMuxOutOfRange { mux: value, expected });
        }
        if value != NEUTRAL && !EXTERNAL.contains(&value) && value >= ipu21::tile::COUNT as u32 {
            return fail(Cause::InvalidMux { value });
        }
        Ok(())
    }

    /// The select value of this tile's host port (machine.md a.8).
    pub(crate) fn host_port(&self) -> u32 {
        0x600 + u32::from(self.id.group_owner().get())
    }

    fn launch_address(&self, operation: &Operation, entry: u32) -> Step {
        self.main.need(operation)?;
        if !entry.is_multiple_of(4) || !(crate::memory::BASE..crate::memory::REGION_1).contains(&entry) {
            return fail(Cause::BadProgramCounter { address: entry });
        }
        Ok(())
    }

    fn run_all(&mut self, operation: &Operation, cost: u64) -> Step {
        let (entry, base) = (self.main.get(operation.x), self.main.get(operation.y));
        self.launch_address(operation, entry)?;
        if self.active != 0 {
            return fail(Cause::WorkersBusy);
        }
        let first = self.clock + cost;
        self.slot_base = first;
        self.launched = self.clock;
        let control = self.csr[FP_ICTL as usize];
        let bases: [u32; 6] = std::array::from_fn(|n| self.csr[csr::WORKER0_BASE as usize + n]);
        for (n, worker) in self.workers().iter_mut().enumerate() {
            let vertex = base.wrapping_add(4 * operation.immediate * n as u32);
            worker.launch(entry, vertex, bases[n], control, first + n as u64);
        }
        self.active = 0x3f;
        Ok(())
    }

    fn run_one(&mut self, operation: &Operation, cost: u64) -> Step {
        let entry = self.main.get(operation.x);
        let vertex = self.main.get(operation.y).wrapping_add(4 * operation.immediate).wrapping_add(crate::memory::BASE);
        self.launch_address(operation, entry)?;
        let number = (!self.active).trailing_zeros() as usize;
        if number > 5 {
            return fail(Cause::WorkersBusy);
        }
        let earliest = self.clock + cost;
        if self.active == 0 {
            self.slot_base = earliest;
            self.launched = self.clock;
        }
        let slot = u64::from(SLOT);
        let phase = (earliest - self.slot_base) % slot;
        let clock = earliest + (number as u64 + slot - phase) % slot;
        let (control, base) = (self.csr[FP_ICTL as usize], self.csr[csr::WORKER0_BASE as usize + number]);
        self.workers()[number].launch(entry, vertex, base, control, clock);
        self.active |= 1 << number;
        Ok(())
    }

    fn announce(&mut self, operand: u32) -> Step {
        let credits = u64::from(self.credits) + u64::from(operand) + 1;
        if credits > ANNOUNCED_MAX {
            return fail(Cause::AnnounceOverflow { credits });
        }
        if self.credits == 0 {
            self.arrival = self.clock;
        }
        self.credits = credits as u32;
        Ok(())
    }

    fn sync(&mut self, zone: u32, instruction: u64) -> Step {
        match zone {
            0 => self.state = State::Receiving,
            1 if self.credits == 0 => self.clock += instruction,
            1 => self.state = State::Announced,
            2 => self.joining = true,
            3..=7 | 12..=15 => {
                if self.credits != 0 {
                    return fail(Cause::SyncWhileAnnounced { credits: self.credits });
                }
                self.check_zone(zone)?;
                self.arrival = self.clock;
                self.master = zone >= 12;
                self.state = State::Barrier { zone };
            }
            _ => return fail(Cause::InvalidSyncZone { zone }),
        }
        Ok(())
    }

    fn check_zone(&self, zone: u32) -> Step {
        let mux = self.exchange.mux;
        match (zone, EXTERNAL.contains(&mux)) {
            (3, true) => fail(Cause::InternalSyncWithExternalMux { mux }),
            (5 | 7 | 13 | 15, false) => fail(Cause::ExternalSyncWithInternalMux { mux }),
            _ => Ok(()),
        }
    }

    /// An instruction of a row: it counts events, sends, and sets controls (machine.md c.4).
    fn exchange_word(&mut self, operation: &Operation) -> Step {
        let word = operation.immediate;
        let outgoing_base = self.csr[csr::OUTGOING_BASE as usize];
        let mut length = 4;
        let events = match operation.kind {
            Kind::Delay => bits(word, 18, 0) + 1,
            Kind::DelayPointer => {
                let events = bits(word, 25, 19) + 1;
                self.pointer_control(u64::from(events), bits(word, 18, 18), bits(word, 17, 0))?;
                events
            }
            Kind::DelaySelect => {
                let events = bits(word, 25, 14) + 1;
                self.select_control(u64::from(events), bits(word, 13, 13), bits(word, 12, 0))?;
                events
            }
            Kind::Send => {
                let items = bits(word, 26, 21) + 1;
                self.exchange.control = bits(word, 2, 0);
                self.exchange.outgoing = outgoing_base.wrapping_add(self.exchange.width() * bits(word, 20, 3));
                self.send(items)?;
                items
            }
            Kind::SendOffset => {
                let items = (bits(word, 26, 21) | bits(word, 19, 14) << 6) + 1;
                self.exchange.control = bits(word, 2, 0);
                self.exchange.outgoing = self.exchange.outgoing.wrapping_add(self.exchange.width() * bits(word, 13, 3));
                self.send(items)?;
                items
            }
            Kind::SendControl => {
                let items = bits(word, 26, 21) + 1;
                let (which, value) = (bits(word, 19, 18), bits(word, 17, 0));
                if which < 2 {
                    self.select_control(1, which, value & 0x1fff)?;
                } else {
                    self.pointer_control(1, which - 2, value)?;
                }
                self.send(items)?;
                items
            }
            _ => {
                let items = bits(word, 26, 21) + 1;
                let second = operation.second;
                self.exchange.control = bits(word, 2, 0);
                self.exchange.outgoing = outgoing_base.wrapping_add(self.exchange.width() * bits(word, 20, 3));
                if bits(second, 31, 31) == 1 {
                    return fail(self.pair_misuse(1, PairRule::Coincident));
                }
                self.select_control(1, bits(second, 31, 31), bits(second, 30, 18))?;
                self.pointer_control(1, bits(word, 27, 27), bits(second, 17, 0))?;
                self.send(items)?;
                length = 8;
                items
            }
        };
        self.pc += length;
        self.clock += u64::from(events);
        Ok(())
    }

    fn pair_misuse(&self, after: u64, rule: PairRule) -> Cause {
        Cause::PairMisuse { event: self.exchange.event(self.clock + after), rule }
    }

    fn pointer_control(&mut self, after: u64, selector: u32, value: u32) -> Step {
        if selector == 1 {
            if value > 2 {
                return fail(self.pair_misuse(after, PairRule::Format));
            }
            self.exchange.format(self.clock + after, value);
            return Ok(());
        }
        let address = self.csr[csr::INCOMING_BASE as usize].wrapping_add(4 * value);
        self.exchange.point(self.clock + after, address);
        Ok(())
    }

    fn select_control(&mut self, after: u64, selector: u32, value: u32) -> Step {
        if selector == 1 {
            if value != NEUTRAL && value >= ipu21::tile::COUNT as u32 {
                return fail(Cause::InvalidMux { value });
            }
            self.exchange.select_pair(self.clock + after, value);
            return Ok(());
        }
        self.check_mux(value)?;
        self.exchange.select(self.clock + after, value);
        Ok(())
    }

    /// Sends items: to the fabric, or to the host port while it is selected.
    fn send(&mut self, items: u32) -> Step {
        let (control, width) = (self.exchange.control, self.exchange.width());
        if control & 3 == 0 {
            return Ok(());
        }
        let address = self.exchange.outgoing;
        if span(address, width * items).is_err() {
            return fail(Cause::AddressOutside { address, access: crate::fault::Access::Send });
        }
        if !address.is_multiple_of(width) {
            return fail(self.pair_misuse(0, PairRule::Unaligned));
        }
        if !EXTERNAL.contains(&self.exchange.mux) {
            self.exchange.send(self.clock, items);
            return Ok(());
        }
        self.exchange.outgoing = address + 4 * items;
        self.send_to_host(address, items, control)
    }

    fn send_to_host(&mut self, address: u32, items: u32, control: u32) -> Step {
        if control != 3 {
            return fail(Cause::NotSimulated { form: "host packet in one direction", value: control });
        }
        let fetched = units(self.pc, 4 + FETCH_LOOK_AHEAD);
        if fetched.intersects(units(address, 4 * items)) {
            let event = self.exchange.event(self.clock);
            return fail(Cause::SendFetchConflict { address, event });
        }
        let mut words = Vec::with_capacity(items as usize);
        match self.memory.read_words(address, items, &mut words) {
            Ok(()) => {}
            Err(ReadFault::Poison { address }) => return fail(Cause::PoisonSent { address }),
            Err(ReadFault::Outside { address, .. }) => {
                return fail(Cause::AddressOutside { address, access: crate::fault::Access::Send });
            }
        }
        if self.host_payload_until > self.clock {
            return fail(Cause::HostPacket { word0: words[0], word1: 0, rule: "a payload part takes at least 18 events" });
        }
        if self.host_words.payload_expected() {
            self.host_payload_until = self.clock + u64::from(host::PAYLOAD_EVENTS_MIN);
        }
        self.host_words.push(&words, self.master);
        Ok(())
    }
}

/// Whether an instruction reads a control register that was just written.
fn depends_on_csr(operation: &Operation, number: u32) -> bool {
    match operation.kind {
        Kind::Get => operation.immediate == number,
        Kind::PutCoefficients { .. } => number == CCCSLOAD,
        Kind::RunAll | Kind::Run => number == FP_ICTL || (csr::WORKER0_BASE..csr::WORKER0_BASE + 6).contains(&number),
        Kind::Send | Kind::SendOffset | Kind::SendControl | Kind::SendBoth => number == csr::OUTGOING_BASE,
        _ => false,
    }
}
