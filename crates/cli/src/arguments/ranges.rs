//! Several byte ranges, as `cat --range` takes them.

use std::str::FromStr;

use laneway::ByteRange;

/// One or more ranges in the order of the command line. They may overlap or repeat, and each is written as
/// often as it is named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ranges(Vec<ByteRange>);

impl Ranges {
    /// Returns the ranges. There is at least one.
    pub(crate) fn as_slice(&self) -> &[ByteRange] {
        &self.0
    }
}

impl FromStr for Ranges {
    type Err = String;

    /// Parses `A-B,C-D`. Each may also be `A-` or `-N`, with spaces after commas (RFC 9110, section 14.1.1).
    fn from_str(text: &str) -> Result<Self, String> {
        let one = |part: &str| match part.trim() {
            "" => Err("a range is missing: ranges are A-B, A- or -N, with commas between them".to_owned()),
            part => part.parse().map_err(|error: laneway::Error| error.to_string()),
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        text.parse::<Ranges>().map(|ranges| ranges.as_slice().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn ranges_stay_as_and_in_the_order_they_were_written() {
        for (text, expected) in [
            ("0-9", &["0-9"][..]),
            ("0-0,5-,-7", &["0-0", "5-", "-7"]),
            ("90-99, 0-9", &["90-99", "0-9"]),
            // One twice, one inside another, one that overlaps.
            ("0-9,0-9,3-4,5-20", &["0-9", "0-9", "3-4", "5-20"]),
        ] {
            assert_eq!(read(text).expect(text), expected);
        }
    }

    #[test]
    fn what_is_missing_reversed_or_no_range_is_refused() {
        for text in ["", ",", "0-9,", ",0-9", "0-9,,5-6"] {
            assert!(read(text).is_err_and(|why| why.contains("missing")), "{text:?}");
        }
        assert!(read("0-9,9-5").is_err_and(|why| why.contains("9-5") && why.contains("before it begins")));
        for text in ["5", "-", "0-9;3-4", "a-b", "0-9,x"] {
            assert!(read(text).is_err_and(|why| why.contains("A-B, A- or -N")), "{text:?}");
        }
    }
}
