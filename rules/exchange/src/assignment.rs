//! The cheapest permutation of a square table of costs (the Hungarian method by shortest augmenting paths).

/// Never part of a cheapest permutation while another one exists.
pub(crate) const FORBIDDEN: i64 = 1 << 40;

/// Least sum of one entry of each row and each column of `costs`, which is `size` by `size`, row by row.
pub(crate) fn cheapest(costs: &[i64], size: usize) -> i64 {
    // Row and column 0 are sentinels; `row_of[column]` is the row that has the column.
    let (mut rows, mut columns) = (vec![0_i64; size + 1], vec![0_i64; size + 1]);
    let mut row_of = vec![0_usize; size + 1];
    for row in 1..=size {
        row_of[0] = row;
        augment(costs, size, (&mut rows, &mut columns), &mut row_of);
    }
    (1..=size).map(|column| costs[(row_of[column] - 1) * size + column - 1]).sum()
}

/// Gives the row at column 0 a column, along the path with the least reduced costs.
fn augment(costs: &[i64], size: usize, (rows, columns): (&mut [i64], &mut [i64]), row_of: &mut [usize]) {
    let (mut least, mut way, mut seen) = (vec![i64::MAX; size + 1], vec![0; size + 1], vec![false; size + 1]);
    let mut at = 0;
    while row_of[at] != 0 {
        seen[at] = true;
        let row = row_of[at];
        let (mut step, mut next) = (i64::MAX, 0);
        for column in (1..=size).filter(|column| !seen[*column]) {
            let reduced = costs[(row - 1) * size + column - 1] - rows[row] - columns[column];
            if reduced < least[column] {
                (least[column], way[column]) = (reduced, at);
            }
            if least[column] < step {
                (step, next) = (least[column], column);
            }
        }
        for column in 0..=size {
            if seen[column] {
                rows[row_of[column]] += step;
                columns[column] -= step;
            } else {
                least[column] = least[column].saturating_sub(step);
            }
        }
        at = next;
    }
    while at != 0 {
        row_of[at] = row_of[way[at]];
        at = way[at];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least sum by trying every permutation.
    fn tried(costs: &[i64], size: usize, row: usize, taken: u32) -> i64 {
        let rest = |column: usize| costs[row * size + column] + tried(costs, size, row + 1, taken | 1 << column);
        if row == size { 0 } else { (0..size).filter(|column| taken >> column & 1 == 0).map(rest).min().unwrap_or(FORBIDDEN) }
    }

    #[test]
    fn no_permutation_is_cheaper_than_the_one_found() {
        let mut state = 7_u64;
        for size in 1..7 {
            let mut draw = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as i64 % 41 - 20
            };
            let costs: Vec<i64> = (0..size * size).map(|_| draw()).collect();
            assert_eq!(cheapest(&costs, size), tried(&costs, size, 0, 0), "{costs:?}");
        }
    }
}
