"""For how long a server has seen runs without a driver."""

from engine_shim.service.orphans import Orphans


def test_run_is_an_orphan_since_it_was_seen_first_until_it_is_seen_no_more() -> None:
    now = 0.0
    orphans = Orphans(lambda: now)
    ages = []
    for now, seen in enumerate([[], ["a"], ["a", "b"], ["b"], ["b"], [], ["a"]]):  # noqa: B007
        orphans.note(seen)
        ages.append((len(orphans), orphans.oldest_seconds))
    assert ages == [(0, 0), (1, 0), (2, 1), (1, 1), (1, 2), (0, 0), (1, 0)]
