//! Requests of the kernel driver (machine.md f.2).
//!
//! A request is direction, argument size, type and number packed as Linux does. Arguments marked as values are passed as the
//! third parameter itself although the request names a size of eight bytes.

/// How a request takes its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The parameter is the value.
    Value,
    /// The parameter points to a structure.
    Pointer,
    /// No argument; 0 is passed.
    None,
}

/// A request of the kernel driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Name, as in the recorded table.
    pub name: &'static str,
    /// Number inside the driver's type.
    pub number: u8,
    /// 0 none, 1 write, 2 read.
    pub direction: u8,
    /// Size field.
    pub size: u16,
    /// How the argument is passed.
    pub argument: Argument,
}

/// Type of all requests.
const TYPE: u32 = 0xed;

impl Request {
    /// The request code.
    pub const fn code(&self) -> u32 {
        (self.direction as u32) << 30 | (self.size as u32) << 16 | TYPE << 8 | self.number as u32
    }
}

use Argument::{None, Pointer, Value};

/// Every request whose layout is known.
#[rustfmt::skip]
pub const REQUESTS: [Request; 12] = [
    Request { name: "ATTACH",                    number: 10, direction: 3, size: 8, argument: Value },
    Request { name: "BUFFER_ATTACH",             number: 11, direction: 3, size: 8, argument: Pointer },
    Request { name: "BUFFER_DETACH",             number: 12, direction: 3, size: 8, argument: Value },
    Request { name: "SET_IPU_ID",                number: 14, direction: 3, size: 8, argument: Value },
    Request { name: "BUFFER_DETACH_ALL",         number: 18, direction: 0, size: 0, argument: None },
    Request { name: "MAILBOX_WRITE_READ",        number: 31, direction: 3, size: 8, argument: Pointer },
    Request { name: "STOP_MONITORING",           number: 34, direction: 0, size: 0, argument: None },
    Request { name: "START_MONITORING",          number: 35, direction: 0, size: 0, argument: None },
    Request { name: "ACCUMULATE_ERRORS",         number: 36, direction: 0, size: 0, argument: None },
    Request { name: "SET_HEXOPT_IDENTITY_TABLE", number: 44, direction: 0, size: 0, argument: None },
    Request { name: "RESET_NOTIFY",              number: 45, direction: 1, size: 4, argument: Value },
    Request { name: "SET_SECONDARY_IPU_ID",      number: 47, direction: 1, size: 8, argument: Pointer },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_recorded_codes() {
        let recorded: Vec<(&str, u32)> = include_str!("../tests/data/ioctls.tsv")
            .lines()
            .filter(|line| !line.starts_with('#') && !line.starts_with("name"))
            .map(|line| {
                let fields: Vec<&str> = line.split('\t').collect();
                (fields[0], u32::from_str_radix(fields[4].trim_start_matches("0x"), 16).expect("a code"))
            })
            .collect();
        let ours: Vec<(&str, u32)> = REQUESTS.iter().map(|request| (request.name, request.code())).collect();
        assert_eq!(ours, recorded);
    }
}
