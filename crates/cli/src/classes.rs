//! `zswap-sim classes`: the size classes of zsmalloc, and what many pools
//! waste.

use std::fmt::Write as _;
use zswap_mm::waste::{WasteError, WasteRow, compare, standard_loads, table};
use zswap_mm::zsmalloc::{ChainSizeError, SizeClasses};
use zswap_mm::{Algorithm, ChainRule};

/// The class table for a chain size, as aligned columns with a summary, or as
/// comma-separated values.
///
/// # Errors
///
/// [`ChainSizeError`] unless the chain size is 4 to 16 pages.
pub fn classes(chain_size: u8, legacy: bool, csv: bool) -> Result<String, ChainSizeError> {
    let rule = if legacy {
        ChainRule::Legacy
    } else {
        ChainRule::Current
    };
    let table = SizeClasses::new(chain_size, rule)?;
    Ok(if csv { table.to_csv() } else { aligned(&table) })
}

fn aligned(table: &SizeClasses) -> String {
    let mut text = String::from("class   size  objects  pages  wasted  requests\n");
    for class in table.classes() {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>5} {:>6} {:>8} {:>6} {:>7}  {}-{}{}",
            class.index,
            class.size,
            class.objs_per_zspage,
            class.pages_per_zspage,
            class.waste_bytes_per_zspage(),
            class.smallest_request_bytes(),
            class.largest_request_bytes(),
            if class.is_huge() { "  huge" } else { "" },
        );
    }
    let rule = match table.rule() {
        ChainRule::Current => "fewest bytes left over (since 6.3)",
        ChainRule::Legacy => "largest percentage used (until 6.2)",
    };
    let _ = writeln!(
        text,
        "\n{} classes; chains of up to {} pages, chosen by the {rule}.\n\
         Objects and wasted bytes are those of one zspage. The largest class that is not huge \
         has {} bytes:\nrequests of {} bytes or more become huge.",
        table.classes().len(),
        table.chain_size(),
        table.huge_watermark(),
        table.huge_class_size(),
    );
    text
}

/// Pages that thirty-two pools waste against one, for several loads.
///
/// # Errors
///
/// [`WasteError`]; with the allocators as they are, none happens.
pub fn pools(algorithm: Algorithm, seed: u64) -> Result<String, WasteError> {
    let rows: Vec<WasteRow> = standard_loads(algorithm, seed)
        .into_iter()
        .map(compare)
        .collect::<Result<_, _>>()?;
    Ok(format!(
        "Pages of program memory compressed with {algorithm}, in one zsmalloc pool and in 32.\n\
         Wasted: whole pages that the free objects of partly filled zspages amount to.\n\n{}",
        table(&rows)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_how_many_classes_there_are() -> Result<(), ChainSizeError> {
        let (current, legacy) = (classes(8, false, false)?, classes(8, true, false)?);
        assert!(
            current.contains("\n119 classes; chains of up to 8 pages"),
            "{current}"
        );
        assert!(
            legacy.contains("\n123 classes; chains of up to 8 pages"),
            "{legacy}"
        );
        assert!(
            current.contains("has 3632 bytes:\nrequests of 3625 bytes or more"),
            "{current}"
        );
        assert!(
            current.contains("   96   1568       13      5      96  1545-1560\n"),
            "{current}"
        );
        Ok(())
    }

    #[test]
    fn comma_separated_values_have_a_line_per_class() -> Result<(), ChainSizeError> {
        let csv = classes(4, false, true)?;
        assert_eq!(csv.lines().count(), 70);
        assert!(csv.ends_with("254,4096,1,1,0,203,3257,4096,1\n"), "{csv}");
        Ok(())
    }

    #[test]
    fn an_impossible_chain_size_says_what_is_possible() {
        let error = classes(3, false, true).map_err(|error| error.to_string());
        assert_eq!(
            error,
            Err("a chain size of 3 pages: 4 to 16 are possible".to_owned())
        );
    }
}
