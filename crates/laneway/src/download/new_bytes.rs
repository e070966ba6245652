//! Two answers that bring the same bytes at once.

/// What of an answer's next bytes has not come by another one yet. `at` is where they begin, and moves behind them;
/// everything before `come` has come.
pub(super) fn new_bytes<'b>(at: &mut u64, come: u64, bytes: &'b [u8]) -> &'b [u8] {
    let known = come.saturating_sub(*at).min(bytes.len() as u64);
    *at += bytes.len() as u64;
    &bytes[known as usize..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_has_brought_is_left_out() {
        let mut at = 10;
        assert_eq!(new_bytes(&mut at, 10, b"ab"), b"ab");
        assert_eq!(new_bytes(&mut at, 13, b"cd"), b"d");
        assert_eq!(new_bytes(&mut at, 20, b"ef"), b"");
        assert_eq!(at, 16);
    }
}
