//! Packs: small blobs end to end in one file, listed in the database.

use crate::records::PackedRow;
use crate::{Digest, KeyBuilder, Store, StoreFault, blob_file};

/// Writes a pack and gives its name and rows. The caller lists them; a pack that is not listed goes with the next eviction.
///
/// A pack is named by the digests in it, so that two processes with the same blobs write the same file.
pub(crate) fn write(store: &Store, blobs: &[(Digest, &[u8])]) -> Result<(Digest, Vec<PackedRow>), StoreFault> {
    let mut name = KeyBuilder::new("pack");
    let mut rows = Vec::with_capacity(blobs.len());
    let mut offset = 0;
    for (digest, bytes) in blobs {
        name.digest(digest);
        rows.push(PackedRow { digest: *digest, offset, length: bytes.len() });
        offset += bytes.len() as u64;
    }
    let pack = name.finish();
    let chunks: Vec<&[u8]> = blobs.iter().map(|(_, bytes)| *bytes).collect();
    blob_file::write_whole(&store.pack_place(&pack), &[&chunks.concat()])?;
    Ok((pack, rows))
}

/// Bytes of packs that nothing listed needs, but of packs that are not listed at all.
pub(crate) fn dead_bytes(store: &Store) -> Result<u64, StoreFault> {
    Ok(store.records().packs()?.iter().map(|(pack, needed)| size(store, pack).saturating_sub(*needed)).sum())
}

fn size(store: &Store, pack: &Digest) -> u64 {
    store.pack_place(pack).metadata().map_or(0, |metadata| metadata.len())
}

/// Writes packs anew of which less than half is needed, or, with `when_any`, less than all. What cannot be read or written at
/// the moment stays as it is. The caller holds the lock `sweep` alone.
pub(crate) fn compact_all(store: &Store, when_any: bool) -> Result<(), StoreFault> {
    for (pack, needed) in store.records().packs()? {
        let size = size(store, &pack);
        let is_worth = if when_any { needed < size } else { needed < size / 2 };
        if is_worth && let Err(fault) = compact(store, &pack) {
            tracing::debug!(%fault, "a pack stays larger than what is needed of it");
        }
    }
    Ok(())
}

/// Blobs that are damaged in the old pack are in the new one no more. The old one goes when the new one is listed; who was about
/// to read the old one looks again.
fn compact(store: &Store, pack: &Digest) -> Result<(), StoreFault> {
    let place = store.pack_place(pack);
    let bytes = blob_file::read_whole(&place)?.unwrap_or_default();
    let sound = store.records().rows_of_pack(pack)?.into_iter().filter_map(|row| {
        let start = usize::try_from(row.offset).ok()?;
        let blob = bytes.get(start..start.checked_add(row.length)?)?;
        (Digest::of(blob) == row.digest).then_some((row.digest, blob))
    });
    let (name, rows) = write(store, &sound.collect::<Vec<_>>())?;
    store.records().replace_pack(pack, (name, rows))?;
    if name != *pack {
        blob_file::discard(&place);
    }
    Ok(())
}
