//! `ipubuild query`: labels of the target graph, one a line.

use graph::Query;

use crate::arguments::Options;
use crate::console::Console;
use crate::exit::{Exit, Fault};
use crate::opened::Surroundings;

pub(crate) fn query(text: &str, options: &Options, console: &Console) -> Result<Exit, Fault> {
    let surroundings = Surroundings::find(options)?;
    let query = Query::parse(text, surroundings.package()).map_err(Fault::input)?;
    let workspace = surroundings.load(&query.patterns())?;
    query.answer(&workspace).iter().for_each(|label| console.result(&label.to_string()));
    Ok(Exit::Success)
}
