//! Runs each scenario under many schedules. `LANEWAY_SCHEDULES` sets the number of schedules.

use laneway_handovers::{explore, scenarios};

#[test]
fn a_memory_budget_is_never_exceeded_and_nobody_waits_for_it_in_vain() {
    explore(scenarios::a_memory_budget);
}

#[test]
fn who_waits_at_a_valve_goes_on_when_it_opens() {
    explore(scenarios::a_valve);
}

#[test]
fn a_wish_for_a_hedge_is_heard() {
    explore(scenarios::a_tracker);
}

#[test]
fn a_request_and_its_hedge_write_each_byte_once_even_if_the_end_moves() {
    explore(scenarios::two_answers_and_a_cut);
}

#[test]
fn the_bytes_of_a_request_and_its_hedge_are_all_checked() {
    explore(scenarios::two_checked_answers_and_a_cut);
}

#[test]
fn an_attempt_that_was_given_up_writes_no_more() {
    explore(scenarios::an_attempt_that_was_given_up_writes_no_more);
}

#[test]
fn a_body_that_is_read_as_it_comes_is_whole_and_neither_end_waits_in_vain() {
    explore(scenarios::a_body);
}

#[test]
fn every_request_has_its_turn_on_a_young_connection() {
    explore(scenarios::a_young_connection);
}

#[test]
fn an_outage_and_its_end_are_reported_once() {
    explore(scenarios::an_outage);
}

#[test]
fn every_file_task_is_done_or_refused_also_while_the_threads_end() {
    explore(scenarios::file_threads);
}

#[test]
fn reports_the_end_of_a_java_call_once_after_its_memory_is_returned() {
    explore(scenarios::calls_of_java);
}

/// The schedulers find a deliberate mistake: a flag that is checked before the waker is registered.
#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_up_that_is_lost_is_found() {
    explore(scenarios::a_wake_up_that_is_lost);
}
