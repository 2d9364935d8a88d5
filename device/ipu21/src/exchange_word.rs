//! Instruction words of the exchange (machine.md c.4), typed; encoded and decoded through the instruction table.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::isa::{self, FormId, form};

/// XPIC value that selects nothing.
pub const NEUTRAL: u32 = 0x640;
/// `br $m10`: the end of a row.
pub const RETURN: u32 = 0x43a0_0000;

/// An exchange instruction; counts are real counts (encoded minus one), addresses are item addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ExchangeWord {
    /// Waits.
    Delay {
        /// 1..=524288.
        events: u32,
    },
    /// Waits; a PIC control takes effect at the end.
    DelayPic {
        /// 1..=128.
        events: u32,
        /// 0 pointer, 1 format.
        selector: u32,
        /// 18 bits.
        value: u32,
    },
    /// Waits; an XPIC control takes effect at the end.
    DelayXpic {
        /// 1..=4096.
        events: u32,
        /// 0 source, 1 pair source.
        selector: u32,
        /// 13 bits.
        value: u32,
    },
    /// Sends from an absolute item address.
    Send {
        /// 1..=64.
        items: u32,
        /// Byte address / 4, or / 8 in 64-bit mode; 18 bits.
        address: u32,
        /// Bit 0 East, bit 1 West, bit 2 64-bit items.
        control: u32,
    },
    /// Sends on from the running address.
    SendOff {
        /// 1..=4096.
        items: u32,
        /// Advance of the address before sending; 0 in working code.
        offset: u32,
        /// As in `Send`.
        control: u32,
    },
    /// Sends on; one control takes effect 1 event after the start.
    SendPic {
        /// 1..=64.
        items: u32,
        /// 0, 1: XPIC selector 0, 1; 2, 3: PIC selector 0, 1.
        selector: u32,
        /// 18 bits, 13 for XPIC.
        value: u32,
    },
    /// Two words, 8-byte aligned: sends from an absolute address; two controls take effect 1 event after the start.
    SendPicP {
        /// 1..=64.
        items: u32,
        /// Item address.
        address: u32,
        /// As in `Send`; 0 in bits 1:0 sends nothing.
        control: u32,
        /// PIC selector.
        pic_selector: u32,
        /// PIC value, 18 bits.
        pic: u32,
        /// XPIC selector.
        xpic_selector: u32,
        /// XPIC value, 13 bits.
        xpic: u32,
    },
}

/// A field that does not fit its word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFault {
    /// Which instruction and field.
    pub message: String,
}

impl fmt::Display for FieldFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.message)
    }
}

impl std::error::Error for FieldFault {}

impl ExchangeWord {
    /// The instruction's words, one or two.
    ///
    /// # Errors
    /// [`FieldFault`] when a field does not fit.
    pub fn encode(self) -> Result<isa::Encoded, FieldFault> {
        let (id, operands, count) = self.operands()?;
        isa::encode(id, &operands[..count], false).map_err(|fault| FieldFault { message: fault.to_string() })
    }

    fn operands(self) -> Result<(FormId, [u32; 6], usize), FieldFault> {
        let less_one = |count: u32| {
            count.checked_sub(1).ok_or_else(|| FieldFault { message: format!("{self:?}: expected a count of at least 1, found 0") })
        };
        Ok(match self {
            Self::Delay { events } => (form::DELAY_ZI19, [less_one(events)?, 0, 0, 0, 0, 0], 1),
            Self::DelayPic { events, selector, value } => (form::DELAYPIC_ZI7_ZI1_ZI18, [less_one(events)?, selector, value, 0, 0, 0], 3),
            Self::DelayXpic { events, selector, value } => {
                (form::DELAYXPIC_ZI12_ZI1_ZI13, [less_one(events)?, selector, value, 0, 0, 0], 3)
            }
            Self::Send { items, address, control } => (form::SEND_ZI6_ZI18_ZI3, [less_one(items)?, address, control, 0, 0, 0], 3),
            Self::SendOff { items, offset, control } => (form::SENDOFF_ZI12_ZI11_ZI3, [less_one(items)?, offset, control, 0, 0, 0], 3),
            Self::SendPic { items, selector, value } => (form::SENDPIC_ZI6_ZI2_ZI18, [less_one(items)?, selector, value, 0, 0, 0], 3),
            Self::SendPicP { items, address, control, pic_selector, pic, xpic_selector, xpic } => {
                if xpic >= 1 << 13 || xpic_selector > 1 {
                    return Err(FieldFault { message: format!("{self:?}: expected an XPIC selector of 1 bit and a value of 13") });
                }
                (
                    form::SENDPICP_ZI6_ZI18_ZI3_ZI1_ZI18_ZI14,
                    [less_one(items)?, address, control, pic_selector, pic, xpic_selector << 13 | xpic],
                    6,
                )
            }
        })
    }

    /// The exchange instruction at the start of `words`, if there is one.
    #[must_use]
    pub fn decode(words: &[u32]) -> Option<Self> {
        let decoded = isa::decode(words)?;
        let fields = decoded.operands();
        Some(match decoded.form {
            form::DELAY_ZI19 => Self::Delay { events: fields[0] + 1 },
            form::DELAYPIC_ZI7_ZI1_ZI18 => Self::DelayPic { events: fields[0] + 1, selector: fields[1], value: fields[2] },
            form::DELAYXPIC_ZI12_ZI1_ZI13 => Self::DelayXpic { events: fields[0] + 1, selector: fields[1], value: fields[2] },
            form::SEND_ZI6_ZI18_ZI3 => Self::Send { items: fields[0] + 1, address: fields[1], control: fields[2] },
            form::SENDOFF_ZI12_ZI11_ZI3 => Self::SendOff { items: fields[0] + 1, offset: fields[1], control: fields[2] },
            form::SENDPIC_ZI6_ZI2_ZI18 => Self::SendPic { items: fields[0] + 1, selector: fields[1], value: fields[2] },
            form::SENDPICP_ZI6_ZI18_ZI3_ZI1_ZI18_ZI14 => Self::SendPicP {
                items: fields[0] + 1,
                address: fields[1],
                control: fields[2],
                pic_selector: fields[3],
                pic: fields[4],
                xpic_selector: fields[5] >> 13,
                xpic: fields[5] & 0x1fff,
            },
            _ => return None,
        })
    }

    /// Events the instruction takes.
    #[must_use]
    pub const fn events(self) -> u32 {
        match self {
            Self::Delay { events } | Self::DelayPic { events, .. } | Self::DelayXpic { events, .. } => events,
            Self::Send { items, .. } | Self::SendOff { items, .. } | Self::SendPic { items, .. } | Self::SendPicP { items, .. } => items,
        }
    }

    /// Words of its encoding.
    #[must_use]
    pub const fn words(self) -> u32 {
        if matches!(self, Self::SendPicP { .. }) { 2 } else { 1 }
    }
}
