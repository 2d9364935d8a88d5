//! The names a mistyped one was probably meant to be.

/// At most three of `known` that are a few edits away from `found`, nearest first.
pub fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let limit = (found.chars().count() / 3).max(2);
    let mut candidates: Vec<(usize, &str)> = known
        .into_iter()
        .map(|name| (distance(found, name), name))
        .filter(|(distance, name)| *distance <= limit && *distance < name.chars().count().max(2))
        .collect();
    candidates.sort_unstable();
    candidates.dedup();
    candidates.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// Levenshtein distance in characters, over at most the first 64 of each.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(64).collect();
    let right: Vec<char> = right.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[right.len()]
}
