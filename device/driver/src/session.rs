//! A session with the simulated chip.
//!
//! The host's part of machine.md e.6 and f.8: every host barrier is one mark; a batch has two, the first behind its page is
//! filled, the second when it has been read. An output batch is taken from the page when its second barrier is past; that of the
//! last batch is the closing one.

use std::{collections::BTreeMap, fmt, sync::Arc};

use ipu21::parameters::Parameters;
use package::{Call, CallKind, CallSlice, Checkpoint, Package};
use simulator::{Chip, ChipOptions, Counters, Segment, Stop};

use crate::{
    clocks::{self, Clocks},
    fault::{Named, SessionFault},
};

/// Host files by binding name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Choices of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Device parameters.
    pub parameters: Arc<Parameters>,
    /// Seed of the poison, threads and clock limit.
    pub chip: ChipOptions,
}

/// Tensors read at a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Number of the checkpoint.
    pub checkpoint: usize,
    /// Number of the operation it stands behind.
    pub operation: u32,
    /// Name of that operation.
    pub name: String,
    /// Host files of the tensors, by the checkpoint's order.
    pub tensors: Vec<(String, Vec<u8>)>,
}

/// What a run gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Host files of the outputs.
    pub outputs: Files,
    /// Clocks of the program and its steps.
    pub clocks: Clocks,
    /// Figures of the simulation.
    pub counters: Counters,
    /// Parameters that the simulation read.
    pub parameters_read: Vec<String>,
}

/// Where the tiles stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Barrier,
    Trap(u32),
    End,
}

impl At {
    fn words(self) -> &'static str {
        match self {
            Self::Barrier => "at a host barrier",
            Self::Trap(_) => "at a trap",
            Self::End => "at their end",
        }
    }
}

/// Lets a chip run until nobody can move, as [`Chip::run`] does.
pub type Runner<'a> = Box<dyn FnMut(&mut Chip) -> Stop + 'a>;

/// A loaded package on a simulated chip.
pub struct Session<'a> {
    package: &'a Package,
    chip: Chip,
    runner: Runner<'a>,
    clock_limit: u64,
    at: At,
    /// Checkpoints passed.
    passed: usize,
    /// Calls made.
    made: Vec<&'a str>,
}

impl fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("chip", &self.chip).field("at", &self.at).field("made", &self.made).finish_non_exhaustive()
    }
}

impl<'a> Session<'a> {
    /// Checks the package, loads all tiles, starts them and meets their greeting.
    ///
    /// # Errors
    /// [`SessionFault::Package`] before anything is loaded; otherwise what keeps the tiles from their first host phase.
    pub fn open(package: &'a Package, options: &SessionOptions) -> Result<Self, SessionFault> {
        Self::open_with(package, options, Box::new(Chip::run))
    }

    /// The same with somebody else, as a debugger, in charge of the chip whenever it runs.
    ///
    /// # Errors
    /// Those of [`Session::open`], and [`SessionFault::GivenUp`] when `runner` gives up.
    pub fn open_with(package: &'a Package, options: &SessionOptions, runner: Runner<'a>) -> Result<Self, SessionFault> {
        package.check().map_err(|faults| SessionFault::Package { faults })?;
        let mut chip = Chip::new(options.parameters.clone(), options.chip);
        load(package, &mut chip)?;
        for page in &package.pages {
            chip.attach_page(page.index as usize, vec![0; page.bytes as usize]);
        }
        clocks::watch(package, &mut chip);
        chip.start();
        let clock_limit = options.chip.clock_limit;
        let mut session = Self { package, chip, runner, clock_limit, at: At::Barrier, passed: 0, made: Vec::new() };
        session.advance()?;
        session.expect("start", At::Barrier)?;
        session.mark()?;
        Ok(session)
    }

    /// The call `initialize`: sends the weights.
    ///
    /// # Errors
    /// Wrong files, or what stops the tiles.
    pub fn initialize(&mut self, weights: &Files) -> Result<(), SessionFault> {
        let call = self.begin("initialize", weights)?;
        self.send(call, weights)
    }

    /// The call `run`: sends the inputs, reads tensors at checkpoints, takes the outputs.
    ///
    /// # Errors
    /// Wrong files, or what stops the tiles.
    pub fn run(&mut self, inputs: &Files, on_checkpoint: &mut dyn FnMut(Reading)) -> Result<Outcome, SessionFault> {
        let call = self.begin("run", inputs)?;
        self.pass_checkpoints(on_checkpoint)?;
        self.send(call, inputs)?;
        self.pass_checkpoints(on_checkpoint)?;
        let outputs = self.receive(call)?;
        self.expect(&call.name, At::End)?;
        self.completed()?;
        Ok(Outcome {
            outputs,
            clocks: clocks::clocks(self.package, &self.chip.watched()),
            counters: self.chip.counters(),
            parameters_read: self.chip.parameters_read(),
        })
    }

    /// Lets the simulator take every turn of a worker by its reference interpreter from now on: slower, same results.
    pub fn use_reference_interpreter(&mut self) {
        self.chip.use_reference_interpreter();
    }

    /// The chip, to look at.
    #[must_use]
    pub fn chip(&self) -> &Chip {
        &self.chip
    }

    /// Checks call and files and writes the command word.
    fn begin(&mut self, name: &str, files: &Files) -> Result<&'a Call, SessionFault> {
        let call = self.package.call(name).ok_or_else(|| SessionFault::NoCall { call: name.to_owned() })?;
        let made = self.made.iter().filter(|made| **made == call.name).count();
        if call.invocations.is_some_and(|limit| made >= limit as usize) {
            return Err(SessionFault::CallSpent { call: call.name.clone() });
        }
        check_files(self.package, call, files)?;
        self.made.push(&call.name);
        let command = self.package.command;
        let word = self.chip.page_mut(command.page as usize).get_mut(command.offset as usize..command.offset as usize + 4);
        word.expect("a checked package has its command word inside its page").copy_from_slice(&call.command.to_le_bytes());
        Ok(call)
    }

    fn send(&mut self, call: &Call, files: &Files) -> Result<(), SessionFault> {
        for batch in call.inputs.batches() {
            self.expect(&call.name, At::Barrier)?;
            for slice in batch {
                let (from, to) = ranges(slice);
                let file = &files[&self.package.bindings[slice.binding as usize].name];
                self.chip.page_mut(slice.page as usize)[to].copy_from_slice(&file[from]);
            }
            self.mark()?;
            self.expect(&call.name, At::Barrier)?;
            self.mark()?;
        }
        Ok(())
    }

    fn receive(&mut self, call: &Call) -> Result<Files, SessionFault> {
        let bindings = self.package.bindings.iter().filter(|binding| binding.group == package::Group::Output);
        let mut files: Files = bindings.map(|binding| (binding.name.clone(), vec![0; binding.file_bytes as usize])).collect();
        for batch in call.outputs.batches() {
            for _ in 0..2 {
                self.expect(&call.name, At::Barrier)?;
                self.mark()?;
            }
            for slice in batch {
                let (to, from) = ranges(slice);
                let file = files.get_mut(&self.package.bindings[slice.binding as usize].name);
                let bytes = &self.chip.page(slice.page as usize)[from];
                file.expect("a checked call takes outputs only")[to].copy_from_slice(bytes);
            }
        }
        Ok(files)
    }

    fn pass_checkpoints(&mut self, on_checkpoint: &mut dyn FnMut(Reading)) -> Result<(), SessionFault> {
        while let At::Trap(found) = self.at {
            let checkpoint = self.package.checkpoints.get(self.passed).filter(|checkpoint| checkpoint.trap == found);
            let Some(checkpoint) = checkpoint else {
                let next = self.package.checkpoints.get(self.passed);
                let expected = next.map(|checkpoint| (checkpoint.name.clone(), checkpoint.trap));
                return Err(SessionFault::WrongTrap { found, expected });
            };
            on_checkpoint(self.read(self.passed, checkpoint)?);
            self.passed += 1;
            self.chip.resume_traps();
            self.advance()?;
        }
        Ok(())
    }

    fn read(&self, number: usize, checkpoint: &Checkpoint) -> Result<Reading, SessionFault> {
        let mut tensors = Vec::new();
        for tensor in &checkpoint.tensors {
            let mut file = vec![0; tensor.file_bytes as usize];
            for slice in &tensor.slices {
                let bytes = self.chip.read_memory(slice.tile, slice.address, slice.bytes).map_err(|cause| SessionFault::Read {
                    checkpoint: checkpoint.name.clone(),
                    tensor: tensor.name.clone(),
                    tile: slice.tile,
                    cause,
                })?;
                file[slice.file_offset as usize..][..bytes.len()].copy_from_slice(&bytes);
            }
            tensors.push((tensor.name.clone(), file));
        }
        Ok(Reading { checkpoint: number, operation: checkpoint.operation, name: checkpoint.name.clone(), tensors })
    }

    /// Permits one host barrier and lets the tiles run.
    fn mark(&mut self) -> Result<(), SessionFault> {
        self.chip.grant(1);
        self.advance()
    }

    fn advance(&mut self) -> Result<(), SessionFault> {
        self.at = match (self.runner)(&mut self.chip) {
            Stop::HostBarrier => At::Barrier,
            Stop::Trap { number } => At::Trap(number),
            Stop::Finished => At::End,
            Stop::Fault(fault) => {
                let place = Named::find(self.package, fault.tile, fault.pc);
                return Err(SessionFault::Tile { fault: Box::new(fault), place });
            }
            Stop::Stuck(waiting) => {
                let named = |waiting: simulator::Waiting| {
                    let place = Named::find(self.package, waiting.tile, waiting.pc);
                    (waiting, place)
                };
                return Err(SessionFault::Stuck { waiting: waiting.into_iter().map(named).collect() });
            }
            Stop::GivenUp => return Err(SessionFault::GivenUp),
            Stop::ClockLimit { tile } => return Err(SessionFault::ClockLimit { tile, clocks: self.clock_limit }),
        };
        tracing::debug!(at = self.at.words(), "tiles stand");
        Ok(())
    }

    fn expect(&self, call: &str, at: At) -> Result<(), SessionFault> {
        if self.at == at {
            return Ok(());
        }
        let weights = self.package.calls.iter().filter(|call| call.kind == CallKind::Initialize && call.phases > 0);
        let initialized = weights.into_iter().all(|call| self.made.contains(&call.name.as_str()));
        Err(SessionFault::OutOfStep { call: call.to_owned(), expected: at.words(), found: self.at.words(), initialized })
    }

    fn completed(&self) -> Result<(), SessionFault> {
        let open = self.package.tiles.iter().find(|tile| {
            let word = |address| self.chip.read_memory(tile.tile, address, 4);
            tile.completion.is_some_and(|address| word(address).ok().as_deref() != Some(&[1, 0, 0, 0]))
        });
        open.map_or(Ok(()), |tile| Err(SessionFault::Incomplete { tile: tile.tile }))
    }
}

fn load(package: &Package, chip: &mut Chip) -> Result<(), SessionFault> {
    for tile in &package.tiles {
        let segments: Vec<Segment> = tile
            .segments
            .iter()
            .filter_map(|segment| {
                let data = package.blobs.get(segment.data)?.clone();
                Some(Segment { address: segment.address, data, memory_bytes: segment.memory_bytes })
            })
            .collect();
        chip.load(tile.tile, &segments).map_err(|cause| SessionFault::Load { tile: tile.tile, cause })?;
    }
    Ok(())
}

/// Every tensor the call sends is there with its size, and no other.
fn check_files(package: &Package, call: &Call, files: &Files) -> Result<(), SessionFault> {
    let mut sent: Vec<u32> = call.inputs.slices.iter().map(|slice| slice.binding).collect();
    sent.sort_unstable();
    sent.dedup();
    let sent: Vec<_> = sent.into_iter().filter_map(|binding| package.bindings.get(binding as usize)).collect();
    for binding in &sent {
        let missing = || SessionFault::NoFile { call: call.name.clone(), binding: binding.name.clone() };
        let found = files.get(&binding.name).ok_or_else(missing)?.len() as u64;
        if found != binding.file_bytes {
            return Err(SessionFault::FileSize { binding: binding.name.clone(), expected: binding.file_bytes, found });
        }
    }
    match files.keys().find(|name| sent.iter().all(|binding| binding.name != **name)) {
        Some(name) => Err(SessionFault::UnknownFile { call: call.name.clone(), binding: name.clone() }),
        None => Ok(()),
    }
}

/// Of a slice: bytes of the file, bytes of the page.
fn ranges(slice: &CallSlice) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
    let (file, page, bytes) = (slice.file_offset as usize, slice.page_offset as usize, slice.bytes as usize);
    (file..file + bytes, page..page + bytes)
}
