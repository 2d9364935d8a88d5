//! The key that a label has below targets, found in what these were made from.

use std::collections::BTreeMap;

use store::{Digest, RecordKind, Store, StoreFault};

use crate::TargetInputs;

/// Where one label is; what was searched is not searched again.
pub(crate) struct KeysBelow<'a> {
    label: &'a str,
    found: BTreeMap<Digest, Option<Digest>>,
}

/// Of a walk that comes back to a target when all below it were visited.
enum Step {
    Enter(Digest),
    Leave(Digest, Vec<Digest>),
}

impl<'a> KeysBelow<'a> {
    /// Nothing searched yet.
    pub(crate) fn of(label: &'a str) -> KeysBelow<'a> {
        KeysBelow { label, found: BTreeMap::new() }
    }

    /// The label's key below the first of the targets with these keys that has it below itself.
    pub(crate) fn first(&mut self, store: &Store, tops: impl Iterator<Item = Digest>) -> Result<Option<Digest>, StoreFault> {
        for top in tops {
            if let Some(key) = self.below(store, top)? {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// The label's key anywhere below the target with the key `top`; there is one, since all below it were keyed together.
    pub(crate) fn below(&mut self, store: &Store, top: Digest) -> Result<Option<Digest>, StoreFault> {
        let mut queue = vec![Step::Enter(top)];
        while let Some(step) = queue.pop() {
            match step {
                Step::Enter(key) if self.found.contains_key(&key) => {}
                Step::Enter(key) => {
                    let inputs = store.record::<TargetInputs>(RecordKind::Inputs, &key)?;
                    let used = inputs.map_or(Vec::new(), |inputs| inputs.dependencies);
                    let direct = used.iter().find(|(_, label, _)| label == self.label).map(|(.., key)| *key);
                    self.found.insert(key, direct);
                    let below: Vec<Digest> = used.into_iter().map(|(.., key)| key).collect();
                    queue.push(Step::Leave(key, below.clone()));
                    queue.extend(below.into_iter().map(Step::Enter));
                }
                Step::Leave(key, below) => {
                    let found = below.iter().find_map(|key| self.found.get(key).copied().flatten());
                    let own = self.found.entry(key).or_default();
                    *own = own.or(found);
                }
            }
        }
        Ok(self.found.get(&top).copied().flatten())
    }
}
