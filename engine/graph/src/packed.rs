//! Tables of many small things in few allocations: texts end to end, lists end to end, digests end to end.
//!
//! A graph of 100,000 targets is read by every build that changes something, so these decode by copying.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use store::Digest;

/// Texts, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Texts {
    text: String,
    ends: Vec<u32>,
}

impl Texts {
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len() as u32);
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text, empty when there is none of this number.
    pub(crate) fn get(&self, index: usize) -> &str {
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(index).copied().unwrap_or(start);
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }
}

impl Texts {
    /// The numbers of `wanted`, in their order, by looking through all texts once.
    pub(crate) fn find(&self, wanted: impl IntoIterator<Item = String>) -> Vec<Option<usize>> {
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        let mut count = 0;
        for text in wanted {
            places.entry(text).or_default().push(count);
            count += 1;
        }
        let mut found = vec![None; count];
        for index in 0..self.len() {
            places.get(self.get(index)).into_iter().flatten().for_each(|place| found[*place] = Some(index));
        }
        found
    }
}

/// Lists of numbers, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lists {
    items: Vec<u32>,
    ends: Vec<u32>,
}

impl Lists {
    pub(crate) fn push(&mut self, items: impl IntoIterator<Item = u32>) {
        self.items.extend(items);
        self.ends.push(self.items.len() as u32);
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The list, empty when there is none of this number.
    pub(crate) fn get(&self, index: usize) -> &[u32] {
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(index).copied().unwrap_or(start);
        self.items.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The lists from the other side: of `count` items, which lists hold each, in order.
    pub(crate) fn reversed(&self, count: usize) -> Lists {
        let mut ends = vec![0_u32; count + 1];
        for item in &self.items {
            ends[*item as usize + 1] += 1;
        }
        for index in 1..ends.len() {
            ends[index] += ends[index - 1];
        }
        let mut next = ends.clone();
        let mut items = vec![0; self.items.len()];
        for list in 0..self.len() {
            for item in self.get(list) {
                let place = &mut next[*item as usize];
                items[*place as usize] = list as u32;
                *place += 1;
            }
        }
        ends.remove(0);
        Lists { items, ends }
    }

    /// Whether all lists end inside the items, in order, and every item is below `count`.
    pub(crate) fn is_sound(&self, count: usize) -> bool {
        self.ends.is_sorted()
            && self.ends.last().map_or(self.items.is_empty(), |end| *end as usize == self.items.len())
            && self.items.iter().all(|item| (*item as usize) < count)
    }
}

/// Digests, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digests(pub(crate) Vec<Digest>);

impl Serialize for Digests {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = self.0.iter().flat_map(Digest::as_bytes).copied().collect();
        serializer.serialize_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for Digests {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digests, D::Error> {
        let bytes = crate::Bytes::deserialize(deserializer)?;
        Ok(Digests(bytes.as_chunks::<32>().0.iter().copied().map(Digest::from_bytes).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_lists_come_back_by_number() {
        let mut texts = Texts::default();
        ["", "one", "zwei", ""].into_iter().for_each(|text| texts.push(text));
        assert_eq!([0, 1, 2, 3, 4].map(|index| texts.get(index)), ["", "one", "zwei", "", ""]);
        let mut lists = Lists::default();
        lists.push([2, 0]);
        lists.push([]);
        lists.push([2, 1]);
        assert_eq!([lists.get(0), lists.get(1), lists.get(2), lists.get(3)], [&[2, 0][..], &[], &[2, 1], &[]]);
        let users = lists.reversed(3);
        assert_eq!([users.get(0), users.get(1), users.get(2)], [&[0][..], &[2], &[0, 2]]);
        assert!(lists.is_sound(3) && !lists.is_sound(2));
    }
}
