//! Sorting of what is few: tasks, locks, lanes.

/// Sorts by a key and keeps the order of equals, with as many steps as there are
/// pairs in the wrong order. The standard library's sort is made for thousands
/// and takes kilobytes of code for each type that it is used with.
///
/// ```
/// let mut words = ["of", "a", "is"];
/// zswap_view::sort_few(&mut words, |word| word.len());
/// assert_eq!(words, ["a", "of", "is"]);
/// ```
pub fn sort_few<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    for next in 1..items.len() {
        let mut place = next;
        while place > 0 && key(&items[place - 1]) > key(&items[place]) {
            items.swap(place - 1, place);
            place -= 1;
        }
    }
}
