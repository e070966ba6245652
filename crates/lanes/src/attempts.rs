//! Counts the attempts of an operation's calls.
//!
//! An operation may make many calls, through layers that don't return the number of attempts. So a task-local variable holds the number.

use std::cell::Cell;

tokio::task_local! {
    static MOST: Cell<u32>;
}

/// Runs a future in which [`most`] returns the number of attempts. Calls in tasks that the future spawns aren't included.
pub fn counted<F: Future>(future: F) -> impl Future<Output = F::Output> {
    // This isn't an `async fn`, because its state would contain the future twice.
    MOST.scope(Cell::new(0), future)
}

/// Returns the largest number of attempts of a single call so far, among the calls inside the surrounding [`counted`]. Returns 0 outside of
/// [`counted`].
pub fn most() -> u32 {
    MOST.try_with(Cell::get).unwrap_or(0)
}

/// Records the number of attempts of a call. A caller that continues a broken call with another call records the sum of both calls'
/// attempts.
pub fn note(attempts: u32) {
    // This fails outside of `counted`, where the number isn't needed.
    let _ = MOST.try_with(|most| most.set(most.get().max(attempts)));
}

/// Records that a call is made again because its answer was complete but not acceptable.
pub fn note_another() {
    note(most() + 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_most_of_each_operation_is_its_own() {
        let attempt = |calls: &'static [u32]| {
            counted(async move {
                for call in calls {
                    note(*call);
                    tokio::task::yield_now().await;
                }
                most()
            })
        };
        assert_eq!(tokio::join!(attempt(&[1, 3, 2]), attempt(&[1]), attempt(&[])), (3, 1, 0));
        let again = async {
            note(2);
            note_another();
            note(1);
            most()
        };
        assert_eq!(counted(again).await, 3);
        assert_eq!(most(), 0);
    }
}
