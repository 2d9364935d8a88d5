//! Transfers cut into messages, in the dense form the scheduler works on.
//!
//! In: a checked problem. Out: [`Jobs`]. Every delay between two events of a phase is a constant of the route, so all rules of
//! a schedule become constraints on start events alone.

use ipu21::route::{pair_route, route};
use ipu21::tile::{self, TileId};

use crate::bound::RECEIVER_GUARD;
use crate::message::Width;
use crate::problem::{Place, Problem, Transfer};

/// Longest message (machine.md c.5).
pub(crate) const LONGEST: u32 = 4148;

/// A first piece of so many words ends before its own pointer event at every receiver, which is 52 events or more behind its select.
const UNDER_POINTER: u32 = 50;
/// Words of a second piece at least; shorter ones have controls that do not hide behind their words (exchange-bounds.md).
const SHORT: u32 = 6;

/// Fewest items in pair mode (machine.md c.7).
const FEWEST_PAIRED: u32 = 64;

/// A message to be given a start event.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) transfer: u32,
    pub(crate) first_word: u32,
    /// Items, one an event: 32-bit words, or pairs of them.
    pub(crate) words: i32,
    pub(crate) width: Width,
    /// Dense index of the sender's partner, which rests while pairs are sent, where it takes part.
    pub(crate) partner: Option<u32>,
    /// Dense index of the sending tile.
    pub(crate) sender: u32,
    pub(crate) send_buffer: u32,
    /// Earliest start on an empty fabric.
    pub(crate) natural: i32,
    /// Clock shift of the sender: `start + shift` orders sends of different tiles as their receivers see them.
    pub(crate) shift: i32,
    arrivals: (u32, u32),
    dependencies: (u32, u32),
}

/// A message's way into one of its receivers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Dense index of the receiving tile.
    pub(crate) tile: u32,
    /// Select event minus start event.
    pub(crate) select: i32,
    /// Pointer event minus start event: also first store minus first send.
    pub(crate) pointer: i32,
    pub(crate) buffer: u32,
    /// In pair mode, whether the source is selected here: the member that hears it first.
    pub(crate) selects_pair: Option<bool>,
}

impl Arrival {
    /// Events of source controls and of pointer and format controls of a message that starts at 0 (machine.md c.5, c.7).
    pub(crate) fn controls(&self, items: i32) -> ([Option<i32>; 2], [Option<i32>; 3]) {
        let source = [Some(self.select), Some(self.select + items)];
        match self.selects_pair {
            None => (source, [Some(self.pointer), None, None]),
            Some(selects) => {
                let format = self.pointer - 2;
                (if selects { source } else { [None; 2] }, [Some(format), Some(self.pointer), Some(format + items)])
            }
        }
    }

    /// Events for which the receiver's port is taken by a message that starts at 0. In pair mode the words of both widths must not be
    /// on their way together, from the select of the pair until the format is set back.
    pub(crate) fn port(&self, items: i32) -> (i32, i32) {
        match self.selects_pair {
            None => (self.select, self.select + items),
            Some(_) => (self.select - 1, self.pointer + items - 1),
        }
    }

    /// Events from the first store until the data may be overwritten.
    fn stored(&self, items: i32) -> i32 {
        items + if self.selects_pair.is_some() { 2 } else { 0 }
    }
}

/// A job starts at least `delay` events after the start of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dependency {
    pub(crate) job: u32,
    pub(crate) delay: i32,
}

/// All jobs of a problem.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// By transfer and first word.
    pub(crate) jobs: Vec<Job>,
    /// Participating tiles, ascending.
    pub(crate) tiles: Vec<TileId>,
    /// Per dense tile: pairs of (send buffer, receive buffer) whose windows must not meet; ascending.
    pub(crate) serial: Vec<Vec<(u32, u32)>>,
    /// Fewest items of a job.
    pub(crate) shortest: i32,
    /// Whether any message goes in pair mode.
    pub(crate) has_pairs: bool,
    arrivals: Vec<Arrival>,
    /// Of every arrival, the index among the transfer's destinations.
    destinations: Vec<u32>,
    dependencies: Vec<Dependency>,
}

impl Jobs {
    /// The messages of a problem; with `pairs` in pair mode where that is legal.
    pub(crate) fn new(problem: &Problem, pairs: bool) -> Self {
        let tiles = participants(problem);
        let mut index = [u32::MAX; tile::COUNT];
        for (tile, number) in tiles.iter().zip(0..) {
            index[tile.index()] = number;
        }
        let mut jobs = Self { serial: serial_pairs(problem, &tiles), tiles, shortest: i32::MAX, ..Self::default() };
        for (number, transfer) in (0..).zip(&problem.transfers) {
            let (paired, single) = if pairs { split(transfer) } else { (Vec::new(), all(transfer)) };
            for (width, destinations) in [(Width::Pair, paired), (Width::Word, single)] {
                if !destinations.is_empty() {
                    jobs.cut(number, transfer, (width, &destinations), &index);
                }
            }
        }
        jobs.find_dependencies(problem);
        jobs
    }

    pub(crate) fn arrivals(&self, job: &Job) -> &[Arrival] {
        &self.arrivals[job.arrivals.0 as usize..job.arrivals.1 as usize]
    }

    /// Of every arrival of a job, the index among the transfer's destinations.
    pub(crate) fn destinations(&self, job: &Job) -> &[u32] {
        &self.destinations[job.arrivals.0 as usize..job.arrivals.1 as usize]
    }

    pub(crate) fn dependencies(&self, job: &Job) -> &[Dependency] {
        &self.dependencies[job.dependencies.0 as usize..job.dependencies.1 as usize]
    }

    /// Whether every message has one receiver.
    pub(crate) fn is_point_to_point(&self) -> bool {
        self.jobs.iter().all(|job| job.arrivals.1 - job.arrivals.0 == 1)
    }

    pub(crate) fn has_dependencies(&self) -> bool {
        !self.dependencies.is_empty()
    }

    fn cut(&mut self, number: u32, transfer: &Transfer, (width, destinations): (Width, &[u32]), index: &[u32; tile::COUNT]) {
        let source = transfer.source.tile.physical();
        let first = self.arrivals.len() as u32;
        let mut natural = 0;
        for destination in destinations {
            let place = &transfer.destinations[*destination as usize];
            let receiver = place.tile.physical();
            let depth = 52 + 2 * i32::from(receiver.row());
            let own = route(source, receiver).offset;
            let (select, pointer, selects_pair) = match width {
                Width::Word => (own + 1, own + 1 + depth, None),
                Width::Pair => {
                    let pair = pair_route(source, receiver);
                    (pair.offset, pair.offset + depth + 1, Some(pair.early == receiver))
                }
            };
            natural = natural.max(-own).max(1 - select);
            let (tile, buffer) = (index[place.tile.index()], place.buffer.0);
            self.arrivals.push(Arrival { tile, select, pointer, buffer, selects_pair });
            self.destinations.push(*destination);
        }
        let arrivals = (first, self.arrivals.len() as u32);
        let places = || destinations.iter().map(|destination| &transfer.destinations[*destination as usize]);
        let shift = slope(places()) * i32::from(source.folded_column()) / 2 + 2 * i32::from(source.row());
        let partner = Some(index[transfer.source.tile.partner().index()]).filter(|tile| width == Width::Pair && *tile != u32::MAX);
        self.has_pairs |= width == Width::Pair;
        let mut first_word = 0;
        for items in pieces(transfer.words * 4 / width.bytes(), width, places) {
            self.shortest = self.shortest.min(items as i32);
            self.jobs.push(Job {
                transfer: number,
                first_word,
                words: items as i32,
                width,
                partner,
                sender: index[transfer.source.tile.index()],
                send_buffer: transfer.source.buffer.0,
                natural,
                shift,
                arrivals,
                dependencies: (0, 0),
            });
            first_word += items * width.bytes() / 4;
        }
    }

    /// Program order where byte ranges of one tile and buffer meet and one of them is written (machine.md I16).
    fn find_dependencies(&mut self, problem: &Problem) {
        let mut found = Vec::new();
        for range in meeting_ranges(self, problem) {
            let (earlier, later) = range;
            found.push((later.job, Dependency { job: earlier.job, delay: self.delay(&earlier, &later) }));
        }
        found.sort_unstable_by_key(|(later, dependency)| (*later, dependency.job, -dependency.delay));
        found.dedup_by_key(|(later, dependency)| (*later, dependency.job));
        let mut at = 0;
        for (index, job) in self.jobs.iter_mut().enumerate() {
            let end = at + found[at..].partition_point(|(later, _)| *later as usize == index);
            job.dependencies = (at as u32, end as u32);
            at = end;
        }
        self.dependencies = found.into_iter().map(|(_, dependency)| dependency).collect();
    }

    fn delay(&self, earlier: &Access, later: &Access) -> i32 {
        let items = self.jobs[earlier.job as usize].words;
        let at = |arrival: u32| &self.arrivals[arrival as usize];
        match (earlier.arrival, later.arrival) {
            (Some(written), None) => at(written).pointer + at(written).stored(items) + RECEIVER_GUARD,
            (Some(written), Some(again)) => at(written).pointer + at(written).stored(items) - at(again).pointer,
            (None, Some(overwritten)) => items - at(overwritten).pointer,
            (None, None) => i32::MIN / 2,
        }
    }
}

/// All destinations of a transfer, by index.
fn all(transfer: &Transfer) -> Vec<u32> {
    (0..transfer.destinations.len() as u32).collect()
}

/// The destinations that are sent 64-bit items, and the others, by index: whole pairs but the source's, which gets a copy of its own, if
/// all of them can be (machine.md c.7, I2, I3, I23).
fn split(transfer: &Transfer) -> (Vec<u32>, Vec<u32>) {
    let items = transfer.words / 2;
    let count = items.div_ceil(LONGEST).max(1);
    let sizes = [items / count, items.div_ceil(count)];
    let source = transfer.source.tile;
    let has_partner =
        |place: &Place| place.tile.partner() != source && transfer.destinations.iter().any(|other| other.tile == place.tile.partner());
    let (paired, single): (Vec<u32>, Vec<u32>) =
        all(transfer).into_iter().partition(|index| has_partner(&transfer.destinations[*index as usize]));
    let is_legal = |index: &u32| {
        let place = &transfer.destinations[*index as usize];
        let twin = Place { tile: place.tile.partner(), ..*place };
        // The teardown must not meet format or pointer on the member that hears the source first.
        let depth = 51 + 2 * u32::from(place.tile.physical().row());
        place.offset.is_multiple_of(8)
            && transfer.destinations.contains(&twin)
            && !sizes.iter().any(|size| [depth, depth + 2].contains(size))
    };
    let is_whole = transfer.words.is_multiple_of(2) && sizes[0] >= FEWEST_PAIRED && transfer.source.offset.is_multiple_of(8);
    if is_whole && paired.iter().all(is_legal) { (paired, single) } else { (Vec::new(), all(transfer)) }
}

/// Twice the events per folded column between sender and receiver (machine.md c.3): the mean of both sides for a mixed multicast.
fn slope<'a>(destinations: impl Iterator<Item = &'a Place>) -> i32 {
    let sides = destinations.fold([false; 2], |mut sides, place| {
        sides[usize::from(place.tile.physical().side())] = true;
        sides
    });
    match sides {
        [true, false] => 10,
        [false, true] => 6,
        _ => 8,
    }
}

/// Items of the messages of a transfer. A message as long as the distance from select to pointer of a receiver would put its
/// neutral on its own pointer event; it goes in two pieces instead, so that no event ever needs a two-word control. The second one is short:
/// of two halves each has its neutral among the pointers of the other at receivers of many rows (a gather of 72 words a message to 18
/// receivers took 8,503 events in halves, 6,551 so, the route bound is 6,033).
fn pieces<'a, Places: Iterator<Item = &'a Place>>(items: u32, width: Width, places: impl Fn() -> Places) -> Vec<u32> {
    let count = items.div_ceil(LONGEST);
    let coincides = |words: u32| width == Width::Word && places().any(|place| words == 52 + 2 * u32::from(place.tile.physical().row()));
    let mut sizes = Vec::new();
    for piece in 0..count {
        let words = items / count + u32::from(piece < items % count);
        if coincides(words) {
            let rest = words.saturating_sub(UNDER_POINTER).max(SHORT);
            sizes.extend([words - rest, rest]);
        } else {
            sizes.push(words);
        }
    }
    sizes
}

fn participants(problem: &Problem) -> Vec<TileId> {
    let mut takes_part = [false; tile::COUNT];
    for transfer in &problem.transfers {
        for place in transfer.destinations.iter().chain([&transfer.source]) {
            takes_part[place.tile.index()] = true;
        }
    }
    TileId::all().filter(|tile| takes_part[tile.index()]).collect()
}

/// Pairs that may not overlap in time: those given, in both directions, and every buffer that is sent from and received into.
fn serial_pairs(problem: &Problem, tiles: &[TileId]) -> Vec<Vec<(u32, u32)>> {
    let mut pairs = vec![Vec::new(); tiles.len()];
    for (one, other, tile) in &problem.serial {
        if let Ok(index) = tiles.binary_search(tile) {
            pairs[index].extend([(one.0, other.0), (other.0, one.0)]);
        }
    }
    let mut sent: Vec<(TileId, u32)> = problem.transfers.iter().map(|transfer| (transfer.source.tile, transfer.source.buffer.0)).collect();
    sent.sort_unstable();
    sent.dedup();
    for place in problem.transfers.iter().flat_map(|transfer| &transfer.destinations) {
        if sent.binary_search(&(place.tile, place.buffer.0)).is_ok()
            && let Ok(index) = tiles.binary_search(&place.tile)
        {
            pairs[index].push((place.buffer.0, place.buffer.0));
        }
    }
    for list in &mut pairs {
        list.sort_unstable();
        list.dedup();
    }
    pairs
}

/// A job's read or write of a byte range.
#[derive(Clone, Copy)]
struct Access {
    place: (TileId, u32),
    range: (u32, u32),
    job: u32,
    /// Index of the arrival that writes; `None` for a read.
    arrival: Option<u32>,
}

/// Pairs of accesses of different transfers that meet, the earlier transfer first, at least one a write.
fn meeting_ranges(jobs: &Jobs, problem: &Problem) -> Vec<(Access, Access)> {
    let mut accesses = accesses(jobs, problem);
    accesses.sort_by_key(|access| (access.place, access.range, access.job));
    let mut meeting = Vec::new();
    let mut open: Vec<Access> = Vec::new();
    for access in accesses {
        open.retain(|other| other.place == access.place && other.range.1 > access.range.0);
        for other in open.iter().filter(|other| other.arrival.is_some() || access.arrival.is_some()) {
            let (first, second) = if other.job < access.job { (*other, access) } else { (access, *other) };
            if jobs.jobs[first.job as usize].transfer != jobs.jobs[second.job as usize].transfer {
                meeting.push((first, second));
            }
        }
        open.push(access);
    }
    meeting
}

fn accesses(jobs: &Jobs, problem: &Problem) -> Vec<Access> {
    let mut accesses = Vec::with_capacity(jobs.jobs.len() + jobs.arrivals.len());
    for (number, job) in (0..).zip(&jobs.jobs) {
        let transfer = &problem.transfers[job.transfer as usize];
        let range = |offset: u32| (offset + 4 * job.first_word, offset + 4 * job.first_word + job.width.bytes() * job.words as u32);
        let source = &transfer.source;
        accesses.push(Access { place: (source.tile, source.buffer.0), range: range(source.offset), job: number, arrival: None });
        for (arrival, destination) in (job.arrivals.0..).zip(jobs.destinations(job)) {
            let place = &transfer.destinations[*destination as usize];
            let place_key = (place.tile, place.buffer.0);
            accesses.push(Access { place: place_key, range: range(place.offset), job: number, arrival: Some(arrival) });
        }
    }
    accesses
}
