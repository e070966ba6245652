//! The number of attempts that the calls of one operation took.
//!
//! An operation may make many calls through layers that don't pass the number on. So it is stored beside the future that they run in.

use std::cell::Cell;

tokio::task_local! {
    static MOST: Cell<u32>;
}

/// Runs a future. Inside it, [`most`] returns the number for the calls made so far, without those of tasks that it spawns.
pub fn counted<F: Future>(future: F) -> impl Future<Output = F::Output> {
    // Not an `async fn`, which would hold the future twice.
    MOST.scope(Cell::new(0), future)
}

/// The most attempts that one call has taken so far inside the surrounding [`counted`]; 0 outside of one.
pub fn most() -> u32 {
    MOST.try_with(Cell::get).unwrap_or(0)
}

/// Records how many attempts a call took, or how many a caller took that continued a broken call with another one.
pub fn note(attempts: u32) {
    // Outside of `counted`, the number isn't needed.
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
