//! Checks the order of a listing.

use std::cmp::Ordering;

/// Checks that names come in order. If a listing goes backwards or repeats names, a missing name doesn't
/// prove that the object is missing.
#[derive(Debug, Default)]
pub(crate) struct OrderCheck {
    last: Option<String>,
}

impl OrderCheck {
    /// Checks the next name.
    ///
    /// # Errors
    /// A message that says how the order is wrong.
    pub(crate) fn admit(&mut self, name: &str) -> Result<(), String> {
        let Some(last) = &mut self.last else {
            self.last = Some(name.to_owned());
            return Ok(());
        };
        match name.cmp(last.as_str()) {
            Ordering::Greater => {
                last.clear();
                last.push_str(name);
                Ok(())
            }
            Ordering::Equal => Err(format!("the listing names {name:?} twice")),
            Ordering::Less => Err(format!("the listing is unsorted: {name:?} comes after {last:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_comes_back_or_goes_back_is_an_error() {
        let mut order = OrderCheck::default();
        assert!(["a", "a-b", "a/b", "ab", "é"].iter().all(|name| order.admit(name).is_ok()));
        assert!(order.admit("é").unwrap_err().contains("twice"));
        assert!(order.admit("b").unwrap_err().contains("unsorted"));
    }
}
