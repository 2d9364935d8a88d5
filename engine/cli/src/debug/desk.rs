//! In charge of a chip: runs it, stops it, and answers what is asked while it stands.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use camino::Utf8PathBuf;
use ipu21::tile::PhysTile;
use package::Package;
use simulator::debug::{Debugger, Executed, Halt, Hit, Observer, StepRequest, TileSelection, TraceFilter, Trigger, Why, Writer};
use simulator::{Chip, Context, Fault, Stop};

use crate::console::Console;
use crate::debug::prompt::Prompt;
use crate::debug::request::{Address, COMMANDS, Form, Misread, Request, Trace, Whose, parse};
use crate::debug::{listing, places, profile, tile_trace};
use crate::exit::Exit;
use crate::show::table::table;

/// How the program stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was executed.
    Begins,
    /// It can go on.
    Stands,
    /// Runs, until something stops it.
    Runs,
    /// A tile failed.
    Failed(Fault),
    /// It is over.
    Ended,
}

/// What becomes of a run that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// It runs again from the start.
    Restart,
    /// That was all.
    End,
}

/// What an answered request leads to.
enum Turn {
    Asks,
    Goes,
    Leaves(Wish),
}

/// A debugger with the one who asks.
pub(crate) struct Desk<'a> {
    package: &'a Package,
    console: &'a Arc<Console>,
    directory: Utf8PathBuf,
    prompt: Prompt,
    debugger: Debugger,
    state: State,
    tile: PhysTile,
    context: Context,
    /// What is to become of the run.
    pub(crate) wish: Wish,
    /// Commands that could not be done.
    refused: usize,
}

/// Prints traced instructions.
struct Printer<'a>(&'a Package, &'a Console);

impl Observer for Printer<'_> {
    fn executed(&mut self, instruction: &Executed) {
        self.1.result(&listing::traced(self.0, instruction));
    }
}

impl<'a> Desk<'a> {
    /// Nothing was run yet.
    pub(crate) fn new(package: &'a Package, console: &'a Arc<Console>, directory: Utf8PathBuf, prompt: Prompt) -> Desk<'a> {
        let tile = package.tiles.first().map(|tile| tile.tile).or_else(|| PhysTile::all().next());
        Desk {
            package,
            console,
            directory,
            prompt,
            debugger: Debugger::default(),
            state: State::Begins,
            tile: tile.unwrap_or_else(|| unreachable!("there are tiles")),
            context: Context::Supervisor,
            wish: Wish::End,
            refused: 0,
        }
    }

    /// Counts all instructions from the start.
    pub(crate) fn count_all(&mut self) {
        self.debugger.profiled = TileSelection::all();
    }

    /// The run begins again, with another chip.
    pub(crate) fn restart(&mut self) {
        self.debugger.restart();
        self.state = State::Runs;
    }

    /// How the command ends: what a script asked for in vain is bad input.
    pub(crate) fn exit(&self) -> Exit {
        match self.state {
            State::Failed(_) => Exit::Failed,
            _ if self.refused > 0 && !self.prompt.is_interactive() => Exit::BadInput,
            _ => Exit::Success,
        }
    }

    /// The counts so far: by instruction, and by kernel.
    pub(crate) fn profiles(&self, chip: &Chip, rows: usize) -> Option<(String, String)> {
        let instructions = profile::instructions(self.package, chip, &self.debugger, rows)?;
        Some((instructions, profile::hot_spots(self.package, &self.debugger, rows)?))
    }

    /// Takes the chip in charge whenever it is to run.
    pub(crate) fn run(&mut self, chip: &mut Chip) -> Stop {
        loop {
            if self.state != State::Runs
                && let Some(wish) = self.attend(chip)
            {
                self.wish = wish;
                return Stop::GivenUp;
            }
            if let State::Failed(fault) = &self.state {
                let place = places::words(self.package, fault.tile, fault.pc);
                if !self.debugger.resume_worker_trap(chip) {
                    self.refuse(&format!("{fault}: {place}: it cannot go on; `run` runs it again"));
                    continue;
                }
            }
            self.state = State::Runs;
            match self.debugger.run(chip, &mut Printer(self.package, self.console)) {
                Halt::Hit(hit) => self.stopped(chip, &hit),
                Halt::Stopped(Stop::Fault(fault)) => self.failed(chip, fault),
                Halt::Stopped(stop) => return stop,
            }
        }
    }

    /// The program is over; what can be asked of it still is.
    pub(crate) fn ended(&mut self, chip: &Chip) -> Wish {
        self.state = State::Ended;
        loop {
            if let Some(wish) = self.attend(chip) {
                return wish;
            }
            self.refuse("the program has ended; `run` runs it again");
        }
    }

    /// Answers until the program is to go on; what is wished for when it is not.
    fn attend(&mut self, chip: &Chip) -> Option<Wish> {
        loop {
            let Some(line) = self.prompt.next() else { return Some(Wish::End) };
            match parse(&line) {
                Ok(None) => {}
                Err(Misread(fault)) => self.refuse(&fault),
                Ok(Some(request)) => match self.answer(chip, request) {
                    Ok(Turn::Asks) => {}
                    Ok(Turn::Goes) => return None,
                    Ok(Turn::Leaves(wish)) => return Some(wish),
                    Err(fault) => self.refuse(&fault),
                },
            }
        }
    }

    /// Tells why something is not done.
    pub(crate) fn refuse(&mut self, fault: &str) {
        self.refused += 1;
        self.console.tell(&format!("error: {fault}"));
    }

    fn say(&self, text: &str) {
        text.trim_end().lines().for_each(|line| self.console.result(line));
    }

    fn stopped(&mut self, chip: &Chip, hit: &Hit) {
        self.state = State::Stands;
        (self.tile, self.context) = (hit.tile, hit.context);
        let place = places::words(self.package, hit.tile, hit.pc);
        match hit.why {
            Why::Breakpoint { id } => self.say(&format!("breakpoint {id}")),
            Why::Write { id, address, bytes, writer } => {
                let by = match writer {
                    Writer::Instruction => format!("by {} at {:#x} {place}", listing::name(hit.tile, hit.context), hit.pc),
                    Writer::Exchange { source } => format!("by the exchange, from tile {source}"),
                    Writer::Host => "by the host".to_owned(),
                };
                self.say(&format!("watchpoint {id}: {bytes} bytes at {address:#x} of tile {} written {by}, clock {}", hit.tile, hit.clock));
            }
            Why::Stepped => {}
        }
        self.show_place(chip);
    }

    fn failed(&mut self, chip: &Chip, fault: Fault) {
        (self.tile, self.context) = (fault.tile, fault.context);
        self.say(&format!("{fault}, in {}", places::words(self.package, fault.tile, fault.pc)));
        self.state = State::Failed(fault);
        if let Some(registers) = chip.registers(self.tile, self.context) {
            self.say(&listing::registers(self.tile, self.context, &registers));
        }
    }

    fn show_place(&self, chip: &Chip) {
        match chip.registers(self.tile, self.context) {
            Some(registers) if registers.is_running => {
                self.say(&listing::place(self.package, chip, self.tile, self.context, &registers));
            }
            _ => self.say(&format!("{} does not run", listing::name(self.tile, self.context))),
        }
    }

    fn address(&self, address: &Address) -> Result<u32, String> {
        places::address(self.package, self.tile, address)
    }

    fn answer(&mut self, chip: &Chip, request: Request) -> Result<Turn, String> {
        match request {
            Request::Run if self.state == State::Begins => return Ok(Turn::Goes),
            Request::Run => return Ok(Turn::Leaves(Wish::Restart)),
            Request::Continue => return Ok(Turn::Goes),
            Request::Quit => return Ok(Turn::Leaves(Wish::End)),
            Request::Step { count, whose } => return self.step(count, whose),
            Request::Next => return self.next(chip),
            Request::Break { place, whose, once } => self.set_break(&place, whose, once)?,
            Request::Watch { at, bytes, whose } => {
                let address = self.address(&at)?;
                chip.read_raw(self.tile, address, bytes).map_err(|fault| fault.to_string())?;
                let breakpoint = self.debugger.add(Trigger::Write { address, bytes }, whose.tiles, whose.context, false);
                let line = listing::breakpoint(self.package, breakpoint);
                self.say(&line);
            }
            Request::Delete(None) => {
                let all: Vec<u32> = self.debugger.breakpoints().iter().map(|breakpoint| breakpoint.id).collect();
                all.into_iter().for_each(|id| _ = self.debugger.delete(id));
            }
            Request::Delete(Some(id)) if self.debugger.delete(id) => {}
            Request::Delete(Some(id)) => return Err(format!("there is no breakpoint {id}; `info breaks` lists them")),
            Request::Breaks => {
                let lines: Vec<String> =
                    self.debugger.breakpoints().iter().map(|breakpoint| listing::breakpoint(self.package, breakpoint)).collect();
                self.say(&if lines.is_empty() { "no breakpoints".to_owned() } else { lines.join("\n") });
            }
            Request::Trace(Trace { whose, mnemonic, addresses }) => {
                let Whose { tiles, context } = whose;
                self.debugger.traces.push(TraceFilter { tiles, context, mnemonic, addresses });
            }
            Request::TraceOff => self.debugger.traces.clear(),
            Request::Count { on: true, tiles } => self.debugger.profiled = tiles,
            Request::Count { on: false, .. } => self.debugger.profiled = TileSelection::none(),
            Request::Tile(tile) => {
                self.tile = tile;
                self.say(&listing::whereabouts(self.package, chip, self.tile, self.context));
            }
            Request::Context(context) => {
                self.context = context;
                self.show_place(chip);
            }
            request => self.show(chip, request)?,
        }
        Ok(Turn::Asks)
    }

    /// What changes nothing.
    fn show(&self, chip: &Chip, request: Request) -> Result<(), String> {
        let (package, tile, context) = (self.package, self.tile, self.context);
        let text = match request {
            Request::Tiles => listing::tiles(chip),
            Request::Symbols(text) => self.symbols(text.as_deref().unwrap_or_default()),
            Request::Registers => {
                let registers = chip.registers(tile, context);
                let registers = registers.ok_or_else(|| format!("{} was never launched", listing::name(tile, context)))?;
                listing::registers(tile, context, &registers)
            }
            Request::Memory { at, count, form } => self.memory(chip, &at, count, form)?,
            Request::Listing { at, count } => {
                let pc = || chip.registers(tile, context).map(|registers| registers.pc);
                let from = at.as_ref().map(|at| self.address(at)).transpose()?.or_else(pc);
                let from = from.ok_or_else(|| format!("{} was never launched", listing::name(tile, context)))?;
                listing::disassembly(package, chip, (tile, context), from, count)
            }
            Request::Where => listing::whereabouts(package, chip, tile, context),
            Request::Exchange(phase) => listing::messages(package, chip, tile, chip.barriers(), phase)?,
            Request::Profile(rows) => profile::instructions(package, chip, &self.debugger, rows).ok_or(NOTHING_COUNTED)?,
            Request::Hot(rows) => profile::hot_spots(package, &self.debugger, rows).ok_or(NOTHING_COUNTED)?,
            Request::ExportTrace(file) => {
                self.export(chip, &file).map_err(|error| format!("cannot write {file}: {error}"))?;
                format!("wrote {file}")
            }
            _ => help(),
        };
        self.say(&text);
        Ok(())
    }

    fn memory(&self, chip: &Chip, at: &Address, count: u32, form: Form) -> Result<String, String> {
        listing::memory(chip, self.tile, self.address(at)?, count, form)
    }

    fn symbols(&self, text: &str) -> String {
        let map = self.package.memory_map(self.tile);
        let rows = map
            .iter()
            .filter(|symbol| symbol.name.contains(text))
            .map(|symbol| vec![format!("{:#x}", symbol.address), symbol.bytes.to_string(), symbol.name.clone()]);
        table(&["address", "bytes", "name"], &rows.collect::<Vec<_>>())
    }

    /// Writes the trace of all tiles; the file is whole or an error is told.
    pub(crate) fn export(&self, chip: &Chip, file: &str) -> io::Result<()> {
        let mut out = BufWriter::new(File::create(self.directory.join(file))?);
        tile_trace::write(&mut out, self.package, chip, chip.barriers())?;
        out.flush()
    }

    fn set_break(&mut self, place: &crate::debug::request::Place, whose: Whose, once: bool) -> Result<(), String> {
        let mut found = places::find(self.package, place)?;
        if let Trigger::Address(places) = &mut found.trigger {
            let tiles = places.iter().fold(TileSelection::none(), |sum, (_, tiles)| sum.union(tiles));
            places.iter_mut().for_each(|(_, tiles)| *tiles = tiles.intersection(&whose.tiles));
            places.retain(|(_, tiles)| tiles.count() > 0);
            if places.is_empty() {
                return Err(format!("it is on none of these tiles; expected some of {}", listing::ranges(&tiles)));
            }
        }
        if let Some(remark) = found.remark {
            self.say(&remark);
        }
        let breakpoint = self.debugger.add(found.trigger, whose.tiles, whose.context, once);
        let line = listing::breakpoint(self.package, breakpoint);
        self.say(&line);
        Ok(())
    }

    fn step(&mut self, count: u64, whose: Option<(Option<PhysTile>, Option<Context>)>) -> Result<Turn, String> {
        self.can_go()?;
        let (tile, context) = whose.map_or((self.tile, Some(self.context)), |(tile, context)| (tile.unwrap_or(self.tile), context));
        self.debugger.step(Some(StepRequest { tile, context, left: count }));
        Ok(Turn::Goes)
    }

    /// A step; a call is executed up to its return, and a launch of workers up to their end.
    fn next(&mut self, chip: &Chip) -> Result<Turn, String> {
        self.can_go()?;
        let pc = chip.registers(self.tile, self.context).map(|registers| registers.pc);
        let text = pc.map_or_else(String::new, |pc| listing::instruction(chip, self.tile, pc));
        let Some(pc) = pc.filter(|_| text.starts_with("call ")) else { return self.step(1, None) };
        let tiles: TileSelection = [self.tile].into_iter().collect();
        self.debugger.add(Trigger::Address(vec![(pc + 4, tiles.clone())]), tiles, Some(self.context), true);
        Ok(Turn::Goes)
    }

    fn can_go(&self) -> Result<(), String> {
        match &self.state {
            State::Ended => Err("the program has ended; `run` runs it again".to_owned()),
            State::Failed(_) => Err("a tile failed, the program cannot go on; `run` runs it again".to_owned()),
            _ => Ok(()),
        }
    }
}

const NOTHING_COUNTED: &str = "nothing was counted; `count on` before the run, or the option `--profile`, counts instructions";

fn help() -> String {
    let rows = COMMANDS.iter().map(|(name, short, operands, what)| {
        vec![format!("{name} {operands}").trim_end().to_owned(), (*short).to_owned(), (*what).to_owned()]
    });
    let table = table(&["command", "short", ""], &rows.collect::<Vec<_>>());
    format!("{table}ADDRESS is a number or NAME[+OFFSET]; TILES are all, or numbers and ranges as 3,8-15; CONTEXT is 0..5 or supervisor\n")
}
