"""What a run keeps takes the room that it needs, so that many runs fit into one process."""

import tracemalloc
from collections.abc import Callable

from agent_core.journal.record import chain_row
from agent_core.loop.transcript import Transcript
from agent_core.protocol.dialect import Entry


def room(make: Callable[[], object]) -> int:
    """Bytes that what was made holds on to."""
    tracemalloc.start()
    try:
        kept = make()
        size = tracemalloc.get_traced_memory()[0]
        del kept
        return size
    finally:
        tracemalloc.stop()


def test_a_row_keeps_little_more_than_its_bytes() -> None:
    record = {"kind": "answered", "text": "x" * 1000}
    assert room(lambda: [chain_row("agent", n, bytes(32), record) for n in range(100)]) < 100 * 1500


def test_a_message_is_kept_twice_and_no_more() -> None:
    def conversation() -> Transcript:
        transcript = Transcript([], [], None)
        for n in range(100):
            transcript.append([Entry("user", str(n) * 500)], [], step=n)
            assert len([*transcript.messages()]) == n + 1
        return transcript

    assert room(conversation) < 2.5 * sum(len(str(n) * 500) for n in range(100))


def test_a_question_keeps_the_messages_that_it_was_asked_with() -> None:
    transcript = Transcript([Entry("user", "Look it up.")], [], 200)
    transcript.append([Entry("user", "a" * 400, observation=True)], [], step=1)
    asked = transcript.messages()
    transcript.append([Entry("user", "b" * 800, observation=True)], [], step=2)
    assert transcript.fit() is not None
    assert [len(each) > 400 for each in asked] == [False, True]
    assert asked[1] != transcript.messages()[1]
