//! Times and amounts in words.

/// A length of time with three significant digits and its unit.
///
/// ```
/// use zswap_view::in_words_ns;
/// assert_eq!(in_words_ns(950), "950 ns");
/// assert_eq!(in_words_ns(9_459), "9.46 µs");
/// assert_eq!(in_words_ns(21_884_004), "21.9 ms");
/// assert_eq!(in_words_ns(12_000_000_000), "12.0 s");
/// ```
#[must_use]
pub fn in_words_ns(ns: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    for (unit_ns, unit) in UNITS {
        // Rounded to three digits it may reach the next unit: 999.9 µs is 1 ms.
        if ns + unit_ns / 2_000 >= unit_ns {
            return format!("{} {unit}", three_digits(ns, unit_ns));
        }
    }
    format!("{ns} ns")
}

/// A signed length of time; a minus sign where it is negative.
#[must_use]
pub fn in_words_signed_ns(ns: i64) -> String {
    let sign = if ns < 0 { "−" } else { "" };
    format!("{sign}{}", in_words_ns(ns.unsigned_abs()))
}

/// `ns / unit_ns`, rounded to three significant digits, with the decimals that
/// are left of them.
fn three_digits(ns: u64, unit_ns: u64) -> String {
    for decimals in [2_u32, 1] {
        let scale = 10_u64.pow(decimals);
        let scaled = (ns * scale + unit_ns / 2) / unit_ns;
        if scaled < 1000 {
            let (whole, part) = (scaled / scale, scaled % scale);
            let width = decimals as usize;
            return format!("{whole}.{part:0width$}");
        }
    }
    ((ns + unit_ns / 2) / unit_ns).to_string()
}

/// A nice value with its sign, as people write it.
#[must_use]
pub fn nice_in_words(nice: i8) -> String {
    match nice {
        0 => "0".to_owned(),
        1.. => format!("+{nice}"),
        _ => format!("−{}", nice.unsigned_abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_the_right_unit() {
        for (ns, words) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (12_345, "12.3 µs"),
            (123_456, "123 µs"),
            (999_400, "999 µs"),
            (999_600, "1.00 ms"),
            (99_960_000, "100 ms"),
            (3_600_000_000_000, "3600 s"),
        ] {
            assert_eq!(in_words_ns(ns), words, "{ns}");
        }
        assert_eq!(in_words_signed_ns(-4_100_000), "−4.10 ms");
        assert_eq!(nice_in_words(-19), "−19");
        assert_eq!(nice_in_words(10), "+10");
    }
}
