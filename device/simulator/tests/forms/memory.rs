//! Loads and stores: addresses by offset and by moving pointers, triple-packed addresses, packed deltas.

use crate::Entry;
use crate::machine::{Case, Rule, WINDOWS};

/// What a form moves: bytes of an element, and whether it stores.
fn element(mnemonic: &str) -> Option<(u32, bool)> {
    Some(match mnemonic.trim_end_matches("step") {
        "ld32" => (4, false),
        "ld64" => (8, false),
        "ld128" => (16, false),
        "ldb16" | "lds16" | "ldz16" => (2, false),
        "ldb8" | "lds8" | "ldz8" => (1, false),
        "st32" | "stm32" => (4, true),
        "st64" => (8, true),
        _ => return None,
    })
}

/// How the pieces of an address are named: base, what is added to it, and the count of elements with its sign.
fn pieces(case: &Case<'_>) -> (u32, i64) {
    let base = case.field("base").map_or(0, |_| case.read("base") as u32);
    let added = ["delta", "ptr"].iter().find(|name| case.field(name).is_some()).map_or(0, |name| case.read(name) as u32);
    let count = ["off", "stride"].iter().find(|name| case.field(name).is_some()).map_or(0, |name| case.read(name) as u32);
    (base.wrapping_add(added), count.cast_signed().into())
}

/// Lets the address fall into a window: 128-bit loads into region 1, others into either.
fn place(case: &mut Case<'_>, number: u64) {
    let (bytes, _) = element(case.entry.mnemonic).unwrap();
    let steps = case.entry.mnemonic.ends_with("step");
    // Strides and offsets in registers are small and of either sign.
    for name in ["off", "stride"] {
        if let Some(register) = case.field(name).filter(|_| !case.entry.variant.ends_with("imm") && !case.entry.variant.ends_with("rri")) {
            case.machine.main[register as usize] = if name == "off" { number as u32 % 7 } else { (number as u32 % 9).wrapping_sub(4) };
        }
    }
    let inside = number as u32 * 16 % 256 + bytes * (number as u32 % 2);
    let target = if bytes == 16 { WINDOWS[1] + number as u32 * 16 % 256 } else { WINDOWS[number as usize % 2] + inside };
    let register = |name: &str| case.field(name).map(|register| register as usize);
    let (base, delta, pointer) = (register("base"), register("delta"), register("ptr"));
    let small = 8 * (number as u32 % 5);
    if let Some(added) = delta.or(pointer).filter(|_| base.is_some()) {
        case.machine.main[added] = small;
    }
    // Same registers in two roles: solve for what is left.
    let (_, count) = pieces(case);
    let distance = if steps { 0 } else { (count * i64::from(bytes)) as u32 };
    let last = base.or(pointer).unwrap();
    let others = pieces(case).0.wrapping_sub(case.machine.main[last]);
    case.machine.main[last] = target.wrapping_sub(distance).wrapping_sub(others);
    assert_eq!(pieces(case).0.wrapping_add(distance), target, "{} uses a register twice", case.entry.id);
}

fn transfer(case: &mut Case<'_>) {
    let (bytes, stores) = element(case.entry.mnemonic).unwrap();
    let steps = case.entry.mnemonic.ends_with("step");
    let (start, count) = pieces(case);
    let distance = (count * i64::from(bytes)) as u32;
    let address = if steps { start } else { start.wrapping_add(distance) };
    if stores {
        let value = case.read("src0");
        case.machine.store(address, bytes, value);
    }
    if steps {
        let moved = (case.read("ptr") as u32).wrapping_add(distance);
        case.write("ptr", moved.into());
    }
    if !stores {
        load(case, address, bytes);
    }
}

fn load(case: &mut Case<'_>, address: u32, bytes: u32) {
    if bytes == 16 {
        let (first, halves) = (case.field("dst").unwrap() as usize, [address, address + 8].map(|at| case.machine.load(at, 8)));
        for (i, half) in halves.into_iter().enumerate() {
            case.machine.aux[first + 2 * i] = half as u32;
            case.machine.aux[first + 2 * i + 1] = (half >> 32) as u32;
        }
        return;
    }
    let raw = case.machine.load(address, bytes);
    let value = match case.entry.mnemonic.trim_end_matches("step") {
        "ldb16" => raw * 0x1_0001,
        "ldb8" => raw * 0x0101_0101,
        "lds16" => (raw as u16).cast_signed() as u32 as u64,
        "lds8" => (raw as u8).cast_signed() as u32 as u64,
        _ => raw,
    };
    case.write("dst", value);
}

/// Byte addresses of a packed triple, as parameters.toml `tapack_addr2_split` says.
fn unpacked(pair: u64) -> [u32; 3] {
    let (low, high) = (pair as u32, (pair >> 32) as u32);
    [low & 0x1f_ffff, high & 0x1f_ffff, low >> 21 | (high >> 21 & 0x3ff) << 11]
}

fn packed([first, second, third]: [u32; 3]) -> u64 {
    u64::from(first | (third & 0x7ff) << 21) | u64::from(second | third >> 11 << 21) << 32
}

fn pack(case: &mut Case<'_>) {
    let addresses = ["addr0", "addr1", "addr2"].map(|name| case.read(name) as u32 & 0x1f_ffff);
    case.write("dst", packed(addresses));
}

/// Three places in three memory elements, and strides of either sign.
fn place_triple(case: &mut Case<'_>, number: u64) {
    let step = 16 * (number as u32 % 8);
    let triple = packed([WINDOWS[1] + 64 + step, WINDOWS[1] + 200 + step, WINDOWS[0] + 128 + step]);
    case.write("addr", triple);
    let field = |i: u32| (number as u32 * (i + 3) % 21).wrapping_sub(10) & 0x3ff;
    case.write("stride", u64::from(field(0) | field(1) << 10 | field(2) << 20));
}

/// Bytes that a stride code moves an address: 8, or eight times a signed field of the stride register.
fn stride(case: &Case<'_>, code: u32) -> u32 {
    match code & 3 {
        0 => 8,
        k => (((case.read("stride") as u32) << (32 - 10 * k)).cast_signed() >> 22 << 3) as u32,
    }
}

fn paced(case: &mut Case<'_>) {
    let mut addresses = unpacked(case.read("addr"));
    let codes = case.read("imm") as u32;
    let [first, second, third] = addresses;
    // The accesses in the order of the stride codes.
    let accesses: &[usize] = match case.entry.mnemonic {
        "ldst64pace" => &[0, 2],
        "ld2xst64pace" => &[0, 1, 2],
        "st64pace" => &[2],
        _ => &[0, 1],
    };
    for (i, &which) in accesses.iter().enumerate() {
        addresses[which] = addresses[which].wrapping_add(stride(case, codes >> (2 * i))) & 0x1f_ffff;
    }
    let narrow = if case.entry.mnemonic == "ld64a32pace" { 4 } else { 2 };
    let (load0, load1, word1) = (case.machine.load(first, 8), case.machine.load(second, 8), case.machine.load(second, narrow));
    if let Some(source) = case.field("src0").map(|_| case.read("src0")) {
        case.machine.store(third, 8, source);
    }
    case.write("addr", packed(addresses));
    match case.entry.mnemonic {
        "st64pace" => {}
        "ld2xst64pace" => {
            let quad = case.field("dst0").unwrap() as usize;
            let words = [load0 as u32, (load0 >> 32) as u32, load1 as u32, (load1 >> 32) as u32];
            case.machine.aux[quad..quad + 4].copy_from_slice(&words);
        }
        name => {
            case.write("dst0", load0);
            match name {
                "ld2x64pace" => case.write("dst1", load1),
                "ld64a32pace" => case.write("dst1", word1),
                "ld64b16pace" => case.write("dst1", word1 * 0x1_0001),
                _ => {}
            }
        }
    }
}

/// Pointer in region 0, data in region 1, deltas that stay in the window and keep alignments.
fn place_delta(case: &mut Case<'_>, number: u64) {
    let step = 8 * (number as u32 % 16);
    if case.field("ptr").is_some() {
        case.write("ptr", (WINDOWS[0] + step).into());
    }
    case.write("base", u64::from(WINDOWS[1] + 64 - 8));
    let (low, high) = (8 + step, 16 + 8 * (number as u32 % 11));
    // The two loads of `ldb16b16` differ in bit 3 of their addresses.
    let high = if case.entry.mnemonic == "ldb16b16" { low + 8 + 16 * (number as u32 % 5) } else { high };
    case.write("delta", u64::from(low | high << 16));
}

fn through_delta(case: &mut Case<'_>) {
    let (base, delta) = (case.read("base") as u32, case.read("delta") as u32);
    if case.entry.mnemonic == "ldb16b16" {
        let [low, high] = [delta & 0xffff, delta >> 16].map(|half| case.machine.load(base + half, 2) * 0x1_0001);
        let mini = case.read("mini") as u32;
        // parameters.toml `ldb16b16_counted_half`, `ldb16b16_mini_bytes`.
        case.write("delta", u64::from((delta + 2) & 0xffff | ((delta >> 16) + 2 * (mini & 15)) << 16));
        case.write("mini", u64::from(mini >> 4));
        return case.write("dst0", low | high << 32);
    }
    let pointer = case.read("ptr") as u32;
    let offset = if case.entry.mnemonic == "ldd16v2a32" { delta >> 16 } else { delta & 0xffff };
    let target = base + offset;
    let (next, moved) = match case.entry.mnemonic {
        "ldd16v2a32" => (case.machine.load(pointer, 4), 4),
        "ld64a32" => (delta.into(), 8),
        _ => (case.machine.load(pointer, 2), 2),
    };
    case.write("ptr", (pointer + moved).into());
    match case.entry.mnemonic {
        "ld64a32" => {
            let (quad, pair) = (case.field("dst0").unwrap() as usize, case.machine.load(pointer, 8));
            let word = case.machine.load(target, 4) as u32;
            case.machine.aux[quad + 1..quad + 4].copy_from_slice(&[word, pair as u32, (pair >> 32) as u32]);
            return;
        }
        "ldd16a64" => case.write("dst0", case.machine.load(target, 8)),
        "ldd16b16" => case.write("dst0", case.machine.load(target, 2) * 0x1_0001),
        _ => case.write("dst0", case.machine.load(target, 4)),
    }
    case.write("delta", next);
}

fn nothing(_: &mut Case<'_>, _: u64) {}

pub(crate) fn rule(entry: &Entry) -> Option<Rule> {
    let rule = |prepare, effect| Some(Rule { prepare, effect, edges: &[], halves: false });
    match entry.mnemonic {
        "tapack" => rule(nothing, pack),
        "ld64a32" | "ldd16a32" | "ldd16a64" | "ldd16b16" | "ldd16v2a32" | "ldb16b16" => rule(place_delta, through_delta),
        name if name.ends_with("pace") => rule(place_triple, paced),
        name if element(name).is_some() => rule(place, transfer),
        _ => None,
    }
}
