//! Proper edge colouring of the bipartite multigraph of senders and receivers with as many colours as its largest degree (König).

/// Colours of the edges `(sender, receiver)`, fewest possible; dense from 0, by edge.
pub(crate) fn colour(edges: &[(u32, u32)], vertices: usize) -> Vec<u32> {
    let mut graph = Graph::new(edges, vertices);
    for edge in 0..edges.len() {
        graph.add(edge as u32);
    }
    graph.colour_of
}

const NONE: u32 = u32::MAX;

struct Graph<'a> {
    edges: &'a [(u32, u32)],
    colours: usize,
    /// Edge at `[side][vertex * colours + colour]`.
    at: [Vec<u32>; 2],
    colour_of: Vec<u32>,
}

impl<'a> Graph<'a> {
    fn new(edges: &'a [(u32, u32)], vertices: usize) -> Self {
        let mut degrees = [vec![0; vertices], vec![0; vertices]];
        for (sender, receiver) in edges {
            degrees[0][*sender as usize] += 1;
            degrees[1][*receiver as usize] += 1;
        }
        let colours = degrees.iter().flatten().copied().max().unwrap_or(0);
        let table = vec![NONE; vertices * colours];
        Self { edges, colours, at: [table.clone(), table], colour_of: vec![NONE; edges.len()] }
    }

    fn end(&self, edge: u32, side: usize) -> u32 {
        let (sender, receiver) = self.edges[edge as usize];
        if side == 0 { sender } else { receiver }
    }

    fn cell(&self, vertex: u32, colour: u32) -> usize {
        vertex as usize * self.colours + colour as usize
    }

    /// Fewer edges than colours are coloured at a vertex that still gets one, so some colour is free.
    fn free(&self, side: usize, vertex: u32) -> u32 {
        let row = &self.at[side][self.cell(vertex, 0)..][..self.colours];
        row.iter().position(|edge| *edge == NONE).map_or(0, |colour| colour as u32)
    }

    fn set(&mut self, edge: u32, colour: u32) {
        self.colour_of[edge as usize] = colour;
        for side in 0..2 {
            let cell = self.cell(self.end(edge, side), colour);
            self.at[side][cell] = edge;
        }
    }

    fn add(&mut self, edge: u32) {
        let (sender, receiver) = self.edges[edge as usize];
        let (at_sender, at_receiver) = (self.free(0, sender), self.free(1, receiver));
        if self.at[1][self.cell(receiver, at_sender)] != NONE {
            self.swap_path(receiver, at_sender, at_receiver);
        }
        self.set(edge, at_sender);
    }

    /// Exchanges two colours on the path that leaves `receiver` with the first; it never reaches the sender, where that is free.
    fn swap_path(&mut self, receiver: u32, first: u32, second: u32) {
        let mut path = Vec::new();
        let (mut side, mut vertex, mut colour) = (1, receiver, first);
        loop {
            let edge = self.at[side][self.cell(vertex, colour)];
            if edge == NONE {
                break;
            }
            path.push(edge);
            side = 1 - side;
            vertex = self.end(edge, side);
            colour = if colour == first { second } else { first };
        }
        for edge in &path {
            for side in 0..2 {
                let cell = self.cell(self.end(*edge, side), self.colour_of[*edge as usize]);
                self.at[side][cell] = NONE;
            }
        }
        for edge in path {
            let swapped = if self.colour_of[edge as usize] == first { second } else { first };
            self.set(edge, swapped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_vertex_has_a_colour_twice_and_the_largest_degree_suffices() {
        let mut state = 1_u64;
        let edges: Vec<(u32, u32)> = (0..400)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ((state >> 40) as u32 % 20, (state >> 50) as u32 % 20)
            })
            .collect();
        let colours = colour(&edges, 20);
        let mut degree = 0;
        for vertex in 0..20 {
            for side in 0..2 {
                let at = |edge: &(u32, u32)| if side == 0 { edge.0 == vertex } else { edge.1 == vertex };
                let mut seen: Vec<u32> = edges.iter().zip(&colours).filter(|(edge, _)| at(edge)).map(|(_, colour)| *colour).collect();
                degree = degree.max(seen.len());
                let count = seen.len();
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), count);
            }
        }
        assert_eq!(colours.iter().max().map(|colour| *colour as usize + 1), Some(degree));
    }
}
