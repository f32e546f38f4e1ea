//! `zswap-sim layout`: sizes of zswap's structures, and how many requests
//! each design needs.

use std::fmt::Write as _;
use zswap_mm::Algorithm;
use zswap_mm::layout::{ContextDesign, ContextEra, EntryEra, Layout, acomp_req, crypto_wait};

/// The report: per-CPU contexts by era, the growth that separating store and
/// load costs, requests by design and compressor, entries by era.
pub fn layout() -> String {
    let mut text = String::from(
        "Sizes in bytes, computed from the fields for x86-64 without lock debugging.\n\n",
    );
    contexts(&mut text);
    requests(&mut text);
    entries(&mut text);
    text
}

// Writing to a string cannot fail, so the results of `write!` are dropped
// throughout.

fn contexts(text: &mut String) {
    text.push_str("struct crypto_acomp_ctx, one per CPU and pool\n");
    for era in ContextEra::ALL {
        structure(text, era.label(), &era.layout());
    }
    let (before, after) = (ContextEra::Shared24.layout(), ContextEra::Split.layout());
    let request = 8;
    let wait = crypto_wait().size();
    let mutex = zswap_mm::layout::MUTEX_BYTES_24;
    let _ = writeln!(
        text,
        "  separating store and load: {} - {} = +{} bytes = a pointer to a request {request} \
         + a crypto_wait {wait} + a mutex {mutex}\n",
        after.size(),
        before.size(),
        after.size() - before.size(),
    );
}

fn structure(text: &mut String, label: &str, layout: &Layout) {
    let _ = write!(text, "  {label:<22}{:>5}  ", layout.size());
    for (at, field) in layout.fields.iter().enumerate() {
        let separator = if at == 0 { "" } else { ", " };
        let _ = write!(text, "{separator}{} {}", field.name, field.size);
    }
    text.push('\n');
}

fn requests(text: &mut String) {
    text.push_str(
        "requests allocated per CPU and pool, the zswap mutex of a load, bytes on a load's stack, \
         bytes per CPU\n",
    );
    let _ = writeln!(
        text,
        "  {:<10}{:<13}{:<13}{:>8}  {:<6}{:>6}{:>14}",
        "design", "compressor", "", "requests", "mutex", "stack", "bytes per CPU"
    );
    for design in ContextDesign::ALL {
        for algorithm in Algorithm::ALL {
            let _ = writeln!(
                text,
                "  {:<10}{:<13}{:<13}{:>8}  {:<6}{:>6}{:>14}",
                design.name(),
                algorithm.name(),
                if algorithm.is_async() {
                    "asynchronous"
                } else {
                    "synchronous"
                },
                design.requests(algorithm),
                if design.load_takes_mutex(algorithm) {
                    "yes"
                } else {
                    "no"
                },
                design.stack_bytes(algorithm),
                design.bytes_per_cpu(algorithm),
            );
        }
    }
    let _ = writeln!(
        text,
        "  a request (struct acomp_req) has {} bytes, and behind it what its algorithm keeps there\n",
        acomp_req().size()
    );
}

fn entries(text: &mut String) {
    text.push_str("struct zswap_entry, one per stored page\n");
    for era in EntryEra::ALL {
        structure(text, era.label(), &era.layout());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line<'a>(report: &'a str, words: &[&str]) -> Vec<&'a str> {
        report
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .find(|line| line.starts_with(words))
            .unwrap_or_default()
    }

    #[test]
    fn the_published_growth_is_in_the_report() {
        let report = layout();
        assert!(report.contains("160 - 88 = +72 bytes"), "{report}");
        assert!(report.contains("acomp_req) has 176 bytes"), "{report}");
        for (label, size) in [
            ("6.7 ", 72),
            ("6.9 to 6.18", 104),
            ("split store and load", 160),
        ] {
            let found = report.lines().any(|line| {
                line.trim_start().starts_with(label) && line.contains(&format!(" {size}  acomp"))
            });
            assert!(found, "{label} {size}\n{report}");
        }
    }

    #[test]
    fn request_counts_depend_on_design_and_compressor() {
        let report = layout();
        let requests = |design, compressor| line(&report, &[design, compressor])[3].to_owned();
        assert_eq!(requests("shared", "zstd"), "1");
        assert_eq!(requests("split", "zstd"), "2");
        assert_eq!(requests("on-stack", "zstd"), "1");
        assert_eq!(requests("on-stack", "deflate-iaa"), "2");
        assert_eq!(line(&report, &["on-stack", "zstd"])[4..6], ["no", "176"]);
        assert_eq!(
            line(&report, &["on-stack", "deflate-iaa"])[4..6],
            ["yes", "0"]
        );
    }
}
