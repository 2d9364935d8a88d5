//! How the artifact of a stage is turned into a [`Document`]: the door between `show` and those who know what the bytes mean.
//!
//! A renderer reads artifacts and never a query, so nothing executes.

use std::fmt;

use serde::de::DeserializeOwned;

use crate::{Digest, Document, Label, StageEntry, StageFacts, StageName};

/// A part of an artifact to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// One tile.
    pub tile: Option<u32>,
    /// What happens from this cycle on.
    pub from: Option<u64>,
}

/// Which fields of a [`Selection`] mean something for an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selects {
    /// The artifact is shown whole.
    Nothing,
    /// One tile of it.
    Tile,
    /// One tile, and what happens from a cycle on.
    TileAndCycle,
}

/// Turns the artifacts of a stage into documents.
#[derive(Clone, Copy)]
pub struct Renderer {
    /// The stage.
    pub stage: &'static str,
    /// What its artifact is, in a few words.
    pub what: &'static str,
    /// How it can be cut.
    pub selects: Selects,
    /// The document, without the facts that every artifact has.
    pub render: fn(&Shown<'_>) -> Result<Document, ShowFault>,
}

/// Why an artifact cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShowFault {
    /// The bytes are not what the stage writes.
    Malformed {
        /// What the decoder said.
        message: String,
    },
    /// The artifact has no such tile.
    NoSuchTile {
        /// The tile asked for.
        tile: u32,
        /// Which there are.
        expected: String,
    },
    /// An option that means nothing here.
    NotSelectable {
        /// The option.
        option: &'static str,
        /// The artifact.
        what: &'static str,
    },
}

/// Another name for the artifacts of a stage that are made for several choices: `NAME/I` is `STAGE/C.I` with the choice C that was made.
#[derive(Clone, Copy, Debug)]
pub struct ChosenName {
    /// The name.
    pub name: &'static str,
    /// The stage.
    pub stage: &'static str,
    /// The stage that chose, and the figure of its artifact that says what.
    pub choice: (&'static str, &'static str),
}

impl fmt::Display for ShowFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShowFault::Malformed { message } => write!(formatter, "the artifact has another form than expected: {message}"),
            ShowFault::NoSuchTile { tile, expected } => write!(formatter, "there is no tile {tile} in it; expected {expected}"),
            ShowFault::NotSelectable { option, what } => write!(formatter, "`{option}` means nothing for {what}"),
        }
    }
}

impl std::error::Error for ShowFault {}

/// An artifact to show, with what is around it.
pub struct Shown<'a> {
    /// The target it belongs to.
    pub label: &'a Label,
    /// Which artifact.
    pub entry: &'a StageEntry,
    /// Its bytes.
    pub body: &'a [u8],
    /// How it was made; stages that are never kept have none.
    pub facts: Option<&'a StageFacts>,
    /// All artifacts of the target.
    pub entries: &'a [StageEntry],
    /// The part asked for.
    pub selection: Selection,
    /// Reads a blob of the store.
    pub blob: &'a dyn Fn(&Digest) -> Option<Vec<u8>>,
    /// Reads how an artifact was made, by its key.
    pub facts_of: &'a dyn Fn(&Digest) -> Option<StageFacts>,
}

impl Shown<'_> {
    /// The artifact itself.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, ShowFault> {
        postcard::from_bytes(self.body).map_err(|error| ShowFault::Malformed { message: error.to_string() })
    }

    /// Another artifact that was read to make this one, under the name it has in the key.
    pub fn input<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let (_, digest) = self.facts?.inputs.iter().find(|(known, _)| known == name)?;
        self.read(digest)
    }

    /// The artifact of another stage of the target.
    pub fn other<T: DeserializeOwned>(&self, stage: &str, index: Option<&str>) -> Option<T> {
        self.read(&self.others(stage).find(|entry| entry.name.index.as_deref() == index)?.digest)
    }

    /// The artifacts of another stage of the target.
    pub fn others<'a>(&'a self, stage: &'a str) -> impl Iterator<Item = &'a StageEntry> {
        self.entries.iter().filter(move |entry| entry.name.stage == stage)
    }

    /// An artifact by its digest.
    pub fn read<T: DeserializeOwned>(&self, digest: &Digest) -> Option<T> {
        postcard::from_bytes(&(self.blob)(digest)?).ok()
    }

    /// The artifact's index, or the empty text.
    pub fn index(&self) -> &str {
        self.entry.name.index.as_deref().unwrap_or_default()
    }
}

impl Renderer {
    /// The whole document: what every artifact has, then what this one is.
    pub fn show(&self, shown: &Shown<'_>) -> Result<Document, ShowFault> {
        self.check(shown.selection)?;
        let StageName { stage, index } = &shown.entry.name;
        let mut document = Document::new(shown.label.with_stage(stage, index.as_deref()).to_string())
            .fact("what", self.what)
            .fact("digest", shown.entry.digest)
            .fact("artifact bytes", shown.body.len());
        let figures = shown.facts.iter().flat_map(|facts| &facts.figures);
        document.facts.extend(figures.map(|(name, value)| (name.replace('_', " "), value.into())));
        let rendered = (self.render)(shown)?;
        for (name, value) in rendered.facts {
            match document.facts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => document.facts.push((name, value)),
            }
        }
        Ok(Document { title: document.title, facts: document.facts, ..rendered })
    }

    fn check(&self, selection: Selection) -> Result<(), ShowFault> {
        let refuse = |option| Err(ShowFault::NotSelectable { option, what: self.what });
        match (self.selects, selection) {
            (Selects::Nothing, Selection { tile: Some(_), .. }) => refuse("--tile"),
            (Selects::Nothing | Selects::Tile, Selection { from: Some(_), .. }) => refuse("--from"),
            _ => Ok(()),
        }
    }
}
