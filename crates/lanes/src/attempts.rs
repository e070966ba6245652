//! The number of attempts that the calls of one operation took.
//!
//! An operation may make many calls through layers that have no use for the number. So it is noted beside the future that they run in.

use std::cell::Cell;

tokio::task_local! {
    static MOST: Cell<u32>;
}

/// Runs a future; inside it [`most`] tells of the calls that it has made. Calls made by tasks that it spawns are not
/// seen.
pub fn counted<F: Future>(future: F) -> impl Future<Output = F::Output> {
    // No `async fn`: that would hold the future twice.
    MOST.scope(Cell::new(0), future)
}

/// The most attempts that one call has taken so far inside the surrounding [`counted`]; 0 outside of one.
pub fn most() -> u32 {
    MOST.try_with(Cell::get).unwrap_or(0)
}

/// Notes how many attempts a call has taken, or a caller that has gone on with another where one broke off.
pub fn note(attempts: u32) {
    // Outside of `counted` nobody asks.
    let _ = MOST.try_with(|most| most.set(most.get().max(attempts)));
}

/// Notes that a call is made once more whose answer was whole and not what it must be.
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
