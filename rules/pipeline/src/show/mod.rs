//! Artifacts of stages for reading, one stage a file named like the stage's: a typed artifact in, a [`Document`] out.
//!
//! What is shown is no part of a stage: the fingerprints leave this folder out. Bytes are not trusted, and what a document is
//! completed with (names of buffers, clocks) is left out when it is not in the store.

// What several of them use.
mod block_name;
mod chip_grid;
mod selected_tile;
mod statistics;
mod tile_bytes;
mod words;

mod expanded;
mod finalists;
mod host_file;
mod images;
mod kernel_bound;
mod kernel_object;
mod mapping;
mod measured;
mod model;
mod package;
mod placement;
mod planned;
mod reference;
mod refined;
mod rows;
mod schedule;
mod selected;
mod simulation;
mod tensor;
mod tile_code;
mod verdict;

use graph::{Document, Renderer, Selects, ShowFault, Shown};

/// A renderer of artifacts that are shown whole.
const fn whole(stage: &'static str, what: &'static str, render: Render) -> Renderer {
    Renderer { stage, what, selects: Selects::Nothing, render }
}

/// A renderer of artifacts that can be shown for one tile.
const fn by_tile(stage: &'static str, what: &'static str, render: Render) -> Renderer {
    Renderer { stage, what, selects: Selects::Tile, render }
}

/// A renderer of artifacts that can be shown for one tile and from a cycle on.
const fn in_time(stage: &'static str, what: &'static str, render: Render) -> Renderer {
    Renderer { stage, what, selects: Selects::TileAndCycle, render }
}

type Render = fn(&Shown<'_>) -> Result<Document, ShowFault>;

/// One for each stage; a test holds the list against the stages.
#[rustfmt::skip]
pub(crate) const RENDERERS: &[Renderer] = &[
    by_tile("expanded",      "an expanded program",                   expanded::show),
    whole(  "finalists",     "the best operator plans",               finalists::show),
    whole(  "host_file",     "a tensor as the host sends it",         host_file::show),
    by_tile("images",        "the images of all tiles",               images::show),
    whole(  "kernel_bound",  "what a kernel takes by the manifest",   kernel_bound::show),
    whole(  "kernel_object", "an assembled kernel",                   kernel_object::show),
    by_tile("mapping",       "the tiles of a plan's positions",       mapping::show),
    whole(  "measured",      "measured clocks of a kernel",           measured::show),
    whole(  "model",         "a checked operator graph",              model::show),
    whole(  "package",       "an application package",                package::show),
    by_tile("placement",     "addresses of buffers, rows and code",   placement::show),
    whole(  "planned",       "clocks of a finalist before scheduling", planned::show),
    whole(  "reference",     "float64 values of results",             reference::show),
    whole(  "refined",       "clocks of a finalist",                  refined::show),
    by_tile("rows",          "exchange rows at their addresses",      rows::show),
    in_time("schedule",      "the schedule of an exchange phase",     schedule::show),
    whole(  "selected",      "the finalist that was chosen",          selected::show),
    whole(  "simulation",    "a run on the simulator",                simulation::show),
    whole(  "tensor",        "a tensor",                              tensor::show),
    by_tile("tile_code",     "tile programs without addresses",       tile_code::show),
    whole(  "verdict",       "results against their expectations",    verdict::show),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::RENDERERS;

    #[test]
    fn every_stage_has_a_renderer() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/stage");
        let mut stages = BTreeSet::new();
        for entry in std::fs::read_dir(folder).expect("the folder of stages") {
            let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a source");
            stages.extend(text.split("spec(\"").skip(1).filter_map(|rest| Some(rest.split('"').next()?.to_owned())));
        }
        let shown: BTreeSet<String> = RENDERERS.iter().map(|renderer| renderer.stage.to_owned()).collect();
        assert_eq!(shown, stages);
    }
}
