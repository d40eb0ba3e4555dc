"""When a run is tried again that could not be driven on."""

from engine_shim.service.backoff import LONGEST_S, Backoff


def test_each_failure_of_a_run_lets_it_wait_longer_and_no_longer_than_that() -> None:
    now = 0.0
    backoff = Backoff(lambda: now)
    waited = []
    for _ in range(6):
        assert backoff.is_due("run")
        backoff.note_failure("run")
        begun = now
        while not backoff.is_due("run"):
            now += 0.5
        waited.append(now - begun)
        assert backoff.is_due("other")
    assert waited == [2, 4, 8, LONGEST_S, LONGEST_S, LONGEST_S]
    backoff.note_failure("run")
    backoff.forget("run")
    assert backoff.is_due("run")
