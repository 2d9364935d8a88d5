//! Phases and schedules as tables of text, for looking at the scheduler alone.
//!
//! A phase: lines that begin with `#`, the header `index source_tile words width source_addresses destinations`, then a transfer a line,
//! fields separated by tabs or blanks. `words` is 1 to 4148, `width` 32 or 64, addresses are bytes of tile memory, `destinations` a comma list of
//! `tile:address`. A schedule: `index` and `start`, the event on the sender's counter on which the first word leaves; where a transfer goes in
//! several messages or in another width also `first_word`, `words` and `width`.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use ipu21::memory;
use ipu21::tile::TileId;

use crate::events::lower;
use crate::job::LONGEST;
use crate::message::{Spot, TimedMessage, Width, control};
use crate::problem::{BufferId, Place, Problem, Transfer};
use crate::row::{RowFault, timed_rows};
use crate::schedule::{Message, Schedule};
use crate::violation::{Findings, Invariant, Violation};

/// What is wrong with a text, and where: line and column from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFault {
    /// The line.
    pub line: usize,
    /// The column of the field.
    pub column: usize,
    /// What was expected and found.
    pub message: String,
}

impl fmt::Display for TextFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for TextFault {}

/// A transfer with addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedTransfer {
    /// Words of 32 bits.
    pub words: u32,
    /// Whether it goes in 64-bit pair mode.
    pub is_paired: bool,
    /// Tile and byte address of the first word.
    pub source: (TileId, u32),
    /// Where it goes.
    pub destinations: Vec<(TileId, u32)>,
}

/// A field of a line.
struct Field<'a> {
    line: usize,
    column: usize,
    text: &'a str,
}

impl Field<'_> {
    fn fault(&self, expected: &str) -> TextFault {
        let found = if self.text.is_empty() { "nothing".to_owned() } else { format!("`{}`", self.text) };
        TextFault { line: self.line, column: self.column, message: format!("expected {expected}, found {found}") }
    }

    fn number(&self, expected: &str, range: std::ops::RangeInclusive<u32>) -> Result<u32, TextFault> {
        self.text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| self.fault(expected))
    }

    fn width(&self) -> Result<Width, TextFault> {
        match self.text {
            "32" => Ok(Width::Word),
            "64" => Ok(Width::Pair),
            _ => Err(self.fault("32 or 64")),
        }
    }

    fn tile(&self) -> Result<TileId, TextFault> {
        self.text.parse().ok().and_then(TileId::new).ok_or_else(|| self.fault("a tile, 0 to 1471"))
    }

    fn address(&self) -> Result<u32, TextFault> {
        let number = match self.text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => self.text.parse().ok(),
        };
        let inside = number.filter(|address| (memory::BASE..memory::END).contains(address) && address.is_multiple_of(4));
        inside.ok_or_else(|| self.fault("a multiple of 4 from 0x4c000 to 0xe7ffc"))
    }

    /// The parts between separators, with their places.
    fn split(&self, separator: char) -> impl Iterator<Item = Field<'_>> {
        let mut column = self.column;
        self.text.split(separator).map(move |text| {
            let field = Field { line: self.line, column, text };
            column += text.len() + 1;
            field
        })
    }
}

/// The lines of a table behind its header, cut at tabs and blanks.
fn rows<'a>(text: &'a str, header: &'a [&'a str]) -> impl Iterator<Item = Result<Vec<Field<'a>>, TextFault>> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty());
    lines.enumerate().filter_map(move |(number, (line, text))| {
        let places = text.split_ascii_whitespace().map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word));
        let fields: Vec<Field<'_>> = places.map(|(at, text)| Field { line, column: at + 1, text }).collect();
        let is_header = fields.iter().map(|field| field.text).eq(header.iter().copied());
        let whole = Field { line, column: 1, text };
        match (number == 0, is_header, fields.len() == header.len()) {
            (true, true, _) => None,
            (true, false, _) => Some(Err(whole.fault(&format!("the fields {} separated by tabs or blanks", header.join(", "))))),
            (false, _, true) => Some(Ok(fields)),
            (false, ..) => Some(Err(whole.fault(&format!("{} fields separated by tabs or blanks", header.len())))),
        }
    })
}

fn check_index(field: &Field<'_>, expected: usize) -> Result<(), TextFault> {
    match field.text.parse() == Ok(expected) {
        true => Ok(()),
        false => Err(field.fault(&format!("{expected}, indices count from 0"))),
    }
}

/// Reads a phase.
///
/// # Errors
/// The first fault of the text.
pub fn read_phase(text: &str) -> Result<Vec<PlacedTransfer>, TextFault> {
    const HEADER: [&str; 6] = ["index", "source_tile", "words", "width", "source_addresses", "destinations"];
    let mut transfers = Vec::new();
    for fields in rows(text, &HEADER) {
        let fields = fields?;
        let [index, tile, words, width, address, to] = &fields[..] else { continue };
        check_index(index, transfers.len())?;
        let destinations = to.split(',').map(|destination| {
            let mut parts = destination.split(':');
            let (Some(tile), Some(address), None) = (parts.next(), parts.next(), parts.next()) else {
                return Err(destination.fault("tile:address"));
            };
            Ok((tile.tile()?, address.address()?))
        });
        let transfer = PlacedTransfer {
            words: words.number(&format!("1 to {LONGEST} words"), 1..=LONGEST)?,
            is_paired: width.width()? == Width::Pair,
            source: (tile.tile()?, address.address()?),
            destinations: destinations.collect::<Result<_, _>>()?,
        };
        if transfer.is_paired && !transfer.words.is_multiple_of(2) {
            return Err(words.fault("an even number of words in 64-bit mode"));
        }
        let places = std::iter::once(&transfer.source).chain(&transfer.destinations);
        if places.into_iter().any(|(_, address)| address + 4 * transfer.words > memory::END) {
            return Err(address.fault("words that end inside tile memory"));
        }
        transfers.push(transfer);
    }
    Ok(transfers)
}

/// Writes a phase that [`read_phase`] reads.
#[must_use]
pub fn phase_text(transfers: &[PlacedTransfer]) -> String {
    let mut text = format!("# transfers={}\nindex\tsource_tile\twords\twidth\tsource_addresses\tdestinations\n", transfers.len());
    for (index, PlacedTransfer { words, is_paired, source, destinations }) in transfers.iter().enumerate() {
        let width = if *is_paired { 64 } else { 32 };
        let to: Vec<String> = destinations.iter().map(|(tile, address)| format!("{tile}:{address:#x}")).collect();
        let _ = writeln!(text, "{index}\t{}\t{words}\t{width}\t{:#x}\t{}", source.0, source.1, to.join(","));
    }
    text
}

/// A message of a transfer with its start event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Index of the transfer.
    pub transfer: u32,
    /// Event of the first word on the sender's counter.
    pub start: u32,
    /// First word of the transfer.
    pub first_word: u32,
    /// 32-bit words.
    pub words: u32,
    /// Size of its items: pairs go to the whole pairs among the destinations, words to the others, or to all where no piece is a pair.
    pub width: Width,
}

/// Columns of a schedule whose messages are whole transfers, and what others have besides.
const STARTS: [&str; 2] = ["index", "start"];
const PIECES: [&str; 5] = ["index", "start", "first_word", "words", "width"];

/// Reads a schedule of these transfers.
///
/// # Errors
/// The first fault of the text; a transfer without a line.
pub fn read_starts(text: &str, transfers: &[PlacedTransfer]) -> Result<Vec<Piece>, TextFault> {
    let has_pieces = text.lines().find(|line| !line.starts_with('#')).is_some_and(|line| line.split_ascii_whitespace().eq(PIECES));
    let mut pieces: Vec<Piece> = Vec::new();
    for fields in rows(text, if has_pieces { &PIECES } else { &STARTS }) {
        let fields = fields?;
        let (index, start) = (&fields[0], &fields[1]);
        if !has_pieces {
            check_index(index, pieces.len())?;
        }
        let last = pieces.last().map_or(0, |piece| piece.transfer);
        let transfer = index.number("a transfer of the phase, in order", last..=(transfers.len() as u32).saturating_sub(1))?;
        let Some(PlacedTransfer { words, is_paired, .. }) = transfers.get(transfer as usize) else {
            return Err(index.fault("no line, as the phase has no transfers"));
        };
        let width = if *is_paired { Width::Pair } else { Width::Word };
        let start = start.number("an event, 0 to 1073741824", 0..=1 << 30)?;
        let mut piece = Piece { transfer, start, first_word: 0, words: *words, width };
        if let [_, _, first, length, width] = &fields[..] {
            piece.first_word = first.number("a word of the transfer", 0..=words - 1)?;
            piece.words = length.number("words up to the end of the transfer", 1..=words - piece.first_word)?;
            piece.width = width.width()?;
            if piece.width == Width::Pair && !piece.words.is_multiple_of(2) {
                return Err(length.fault("an even number of words in 64-bit mode"));
            }
        }
        pieces.push(piece);
    }
    let missing = (0..transfers.len() as u32).find(|index| pieces.binary_search_by_key(index, |piece| piece.transfer).is_err());
    match missing {
        None => Ok(pieces),
        Some(index) => {
            let message = format!("expected a start for each of {} transfers, found none for {index}", transfers.len());
            Err(TextFault { line: text.lines().count() + 1, column: 1, message })
        }
    }
}

/// Writes the schedule of a phase.
#[must_use]
pub fn starts_text(schedule: &Schedule, transfers: &[PlacedTransfer]) -> String {
    let pieces = pieces_of(schedule);
    let is_whole =
        |(piece, transfer): (&Piece, &PlacedTransfer)| piece.words == transfer.words && (piece.width == Width::Pair) == transfer.is_paired;
    let is_short = pieces.len() == transfers.len() && pieces.iter().zip(transfers).all(is_whole);
    let mut text = if is_short { STARTS.join("\t") } else { PIECES.join("\t") } + "\n";
    for Piece { transfer, start, first_word, words, width } in pieces {
        let _ = match is_short {
            true => writeln!(text, "{transfer}\t{start}"),
            false => writeln!(text, "{transfer}\t{start}\t{first_word}\t{words}\t{}", 8 * width.bytes()),
        };
    }
    text
}

/// The messages of a schedule as they are written.
#[must_use]
pub fn pieces_of(schedule: &Schedule) -> Vec<Piece> {
    let piece = |message: &Message| Piece {
        transfer: message.transfer,
        start: message.start,
        first_word: message.first_word,
        words: message.words,
        width: message.width,
    };
    schedule.messages.iter().map(piece).collect()
}

/// The problem of placed transfers: what touches one conflict unit of a tile is one buffer, so that sends and receives that meet there
/// keep apart in time, and program order where bytes meet.
#[must_use]
pub fn problem_of(transfers: &[PlacedTransfer]) -> Problem {
    let mut units = BTreeMap::<TileId, [u32; memory::UNITS as usize]>::new();
    let spots = |transfer: &PlacedTransfer| std::iter::once(transfer.source).chain(transfer.destinations.clone()).collect::<Vec<_>>();
    for transfer in transfers {
        for (tile, address) in spots(transfer) {
            let names = units.entry(tile).or_insert_with(|| std::array::from_fn(|unit| unit as u32));
            let touched = memory::units(address, 4 * transfer.words).bits();
            let members: Vec<u32> = (0..memory::UNITS).filter(|unit| touched >> unit & 1 == 1).map(|unit| names[unit as usize]).collect();
            let lowest = members.iter().copied().min().unwrap_or(0);
            names.iter_mut().filter(|name| members.contains(name)).for_each(|name| *name = lowest);
        }
    }
    let place = |(tile, address): (TileId, u32)| {
        let unit = memory::unit(address).unwrap_or(0) as usize;
        let buffer = BufferId(units.get(&tile).map_or(0, |names| names[unit]));
        Place { tile, buffer, offset: address - memory::BASE }
    };
    let transfer = |transfer: &PlacedTransfer| Transfer {
        source: place(transfer.source),
        words: transfer.words,
        destinations: transfer.destinations.iter().copied().map(place).collect(),
    };
    Problem { transfers: transfers.iter().map(transfer).collect(), serial: Vec::new() }
}

/// Whether a destination of a transfer is one of a whole pair, and no partner of the source.
fn is_in_pair(transfer: &PlacedTransfer, tile: TileId) -> bool {
    tile != transfer.source.0.partner() && transfer.destinations.iter().any(|(other, _)| *other == tile.partner())
}

fn message(transfer: &PlacedTransfer, piece: &Piece, destinations: &[&(TileId, u32)]) -> TimedMessage {
    let spot =
        |(tile, address): &(TileId, u32)| Spot { tile: *tile, buffer: BufferId(0), address: address.saturating_add(4 * piece.first_word) };
    TimedMessage {
        source: spot(&transfer.source),
        width: piece.width,
        items: 4 * piece.words / piece.width.bytes(),
        start: piece.start,
        control: control(transfer.source.0, piece.width, destinations.iter().map(|(tile, _)| *tile)),
        destinations: destinations.iter().map(|place| spot(place)).collect(),
    }
}

/// Figures of a schedule that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Event at which the last tile's row ends.
    pub horizon: u32,
    /// Words of the largest row.
    pub row_words: u32,
}

/// Judges a schedule against all rules of a phase, rows included.
///
/// # Errors
/// Every violation found.
pub fn judge(transfers: &[PlacedTransfer], pieces: &[Piece]) -> Result<Judged, Vec<Violation>> {
    let mut findings = Findings::default();
    let mut timed = Vec::with_capacity(pieces.len());
    for (index, transfer) in (0..).zip(transfers) {
        let first = pieces.partition_point(|piece| piece.transfer < index);
        let own = &pieces[first..first + pieces[first..].partition_point(|piece| piece.transfer == index)];
        let has_pairs = own.iter().any(|piece| piece.width == Width::Pair);
        for width in [Width::Pair, Width::Word] {
            let of_width = || own.iter().filter(|piece| piece.width == width);
            let destinations: Vec<_> = transfer
                .destinations
                .iter()
                .filter(|(tile, _)| !has_pairs || is_in_pair(transfer, *tile) == (width == Width::Pair))
                .collect();
            let mut covered = 0;
            for piece in of_width() {
                let whole = piece.first_word == covered && !destinations.is_empty();
                findings.expect(whole, Invariant::Coverage, Some(transfer.source.0), Some(index), Some(i64::from(piece.first_word)));
                covered = piece.first_word + piece.words;
                timed.push(message(transfer, piece, &destinations));
            }
            let is_needed = !destinations.is_empty() && (width == Width::Word || has_pairs);
            let whole = !is_needed || covered == transfer.words;
            findings.expect(whole, Invariant::Coverage, Some(transfer.source.0), Some(index), Some(i64::from(covered)));
        }
    }
    findings.result()?;
    let events = lower(&timed);
    crate::validate_messages(&timed, &events)?;
    let no_row =
        |fault: RowFault| Violation { invariant: Invariant::I17, tile: Some(fault.tile), message: None, at: Some(fault.event.into()) };
    let rows = timed_rows(&timed).map_err(|faults| faults.into_iter().map(no_row).collect::<Vec<_>>())?;
    let horizon = events.iter().map(|events| events.horizon).max().unwrap_or(0);
    let row_words = rows.iter().map(|row| row.words.len() as u32).max().unwrap_or(0);
    Ok(Judged { horizon: horizon.max(0) as u32, row_words })
}
