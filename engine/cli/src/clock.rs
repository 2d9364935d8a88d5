//! Times for people.

/// `2026-01-31 23:59:58` of milliseconds since 1970, UTC. The calendar is the proleptic Gregorian one.
pub(crate) fn utc(milliseconds: i64) -> String {
    let seconds = milliseconds.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// Year, month and day of a number of days since 1970-01-01.
fn date(days: i64) -> (i64, u32, i64) {
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    // The 400 years before 1970 have as many days as any.
    let (cycles, mut rest) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let mut year = 1970 + 400 * cycles;
    while rest >= if is_leap(year) { 366 } else { 365 } {
        rest -= if is_leap(year) { 366 } else { 365 };
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    (year, month, rest + 1)
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn known_instants_have_their_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00");
        assert_eq!(utc(1_709_210_096_789), "2024-02-29 12:34:56");
        assert_eq!(utc(4_107_542_399_000), "2100-02-28 23:59:59");
        assert_eq!(utc(-1), "1969-12-31 23:59:59");
    }
}
