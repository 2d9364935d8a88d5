//! Where commands come from.

use std::collections::VecDeque;
use std::io::{BufRead, IsTerminal, Write};

/// Commands in order: given ones, or lines of standard input.
pub(crate) struct Prompt {
    given: Option<VecDeque<String>>,
    is_interactive: bool,
}

impl Prompt {
    /// These commands alone, or standard input when there are none.
    pub(crate) fn new(given: Option<Vec<String>>) -> Prompt {
        let is_interactive = given.is_none() && std::io::stdin().is_terminal();
        Prompt { given: given.map(VecDeque::from), is_interactive }
    }

    /// Whether a person types.
    pub(crate) fn is_interactive(&self) -> bool {
        self.is_interactive
    }

    /// The next line; `None` at the end. What is no UTF-8 is replaced.
    pub(crate) fn next(&mut self) -> Option<String> {
        if let Some(given) = &mut self.given {
            return given.pop_front();
        }
        if self.is_interactive {
            let mut error = std::io::stderr().lock();
            let _ = write!(error, "(debug) ");
            let _ = error.flush();
        }
        let mut line = Vec::new();
        match std::io::stdin().lock().read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(String::from_utf8_lossy(&line).into_owned()),
        }
    }
}
