//! A picture of a phase: what every tile sends and receives when, and the bound.
//!
//! A tile has a lane, its sends in the upper half and its receives in the lower, on its own event counter. A receive stands where its
//! words are stored (machine.md c.5). Every message has a title, which browsers show under the pointer.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ipu21::tile::TileId;

use crate::message::TimedMessage;
use crate::schedule::Schedule;

/// Width of the picture's events.
const WIDTH: u32 = 1200;
/// Height of a tile's lane.
const LANE: u32 = 12;
/// Room for the tiles' numbers.
const LEFT: u32 = 60;
/// Room for the legend.
const TOP: u32 = 30;

/// A schedule as an SVG picture that needs no other file.
#[must_use]
pub fn timeline(schedule: &Schedule) -> String {
    let figures = schedule.figures;
    let tiles: Vec<TileId> = schedule.tiles.iter().map(|plan| plan.tile).collect::<BTreeSet<_>>().into_iter().collect();
    let scale = |event: i32| f64::from(LEFT) + f64::from(event) * f64::from(WIDTH) / f64::from(figures.horizon.max(1));
    let bottom = TOP + LANE * tiles.len() as u32;
    let mut svg = opening(bottom, (figures.horizon, figures.lower_bound));
    for (lane, tile) in (0..).zip(&tiles) {
        let _ = writeln!(svg, "<text x=\"4\" y=\"{}\">{tile}</text>", TOP + LANE * lane + 10);
    }
    for message in schedule.timed(|_, _| 0) {
        for bar in bars(&message) {
            let lane = tiles.partition_point(|tile| *tile < bar.tile) as u32;
            let (class, shift) = if bar.is_send { ("s", 1) } else { ("r", 6) };
            let (x, y) = (scale(bar.from), TOP + LANE * lane + shift);
            let width = scale(bar.from + message.items as i32) - x;
            let _ = writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"5\"><title>{}</title></rect>",
                bar.title(&message)
            );
        }
    }
    for (class, event) in [("b", figures.lower_bound), ("h", figures.horizon)] {
        let x = scale(event as i32);
        let _ = writeln!(svg, "<line class=\"{class}\" x1=\"{x:.2}\" x2=\"{x:.2}\" y1=\"{TOP}\" y2=\"{bottom}\"/>");
    }
    svg + "</svg>\n"
}

fn opening(bottom: u32, (horizon, bound): (u32, u32)) -> String {
    let (width, height) = (LEFT + WIDTH + 20, bottom + 10);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         <style>text{{font:10px sans-serif}}.s{{fill:#27c}}.r{{fill:#e80}}.b{{stroke:#c00}}.h{{stroke:#333}}</style>\n\
         <text x=\"{LEFT}\" y=\"18\">sends blue, receives orange; bound {bound} red, horizon {horizon} grey; events of each tile's own counter</text>\n"
    )
}

/// A message at one of its tiles.
struct Bar {
    tile: TileId,
    is_send: bool,
    from: i32,
}

impl Bar {
    fn title(&self, message: &TimedMessage) -> String {
        let to: Vec<String> = message.destinations.iter().map(|spot| spot.tile.to_string()).collect();
        let end = self.from + message.items as i32;
        let does = if self.is_send { "sent" } else { "stored" };
        format!("{} words {} to {}, {does} {}..{end}", message.bytes() / 4, message.source.tile, to.join(","), self.from)
    }
}

fn bars(message: &TimedMessage) -> impl Iterator<Item = Bar> + '_ {
    let received = message.destinations.iter().map(|spot| Bar { tile: spot.tile, is_send: false, from: message.first_store(spot.tile) });
    received.chain([Bar { tile: message.source.tile, is_send: true, from: message.start as i32 }])
}

#[cfg(test)]
mod tests {
    use super::timeline;
    use crate::{problem_of, read_phase, schedule};

    #[test]
    fn every_message_is_drawn_at_its_sender_and_at_each_receiver() {
        let text = "index source_tile words width source_addresses destinations\n\
                    0 0 256 32 0x60000 1:0x64000,2:0x64000\n\
                    1 2 128 32 0x70000 0:0x68000\n";
        let schedule = schedule(&problem_of(&read_phase(text).unwrap())).unwrap();
        let svg = timeline(&schedule);
        let count = |part: &str| svg.matches(part).count();
        assert_eq!((count("class=\"s\""), count("class=\"r\""), count("class=\"b\"")), (2, 3, 1));
        let start = schedule.messages[1].start;
        assert!(svg.contains(&format!("<title>128 words 2 to 0, sent {start}..{}</title>", start + 128)), "{svg}");
    }
}
