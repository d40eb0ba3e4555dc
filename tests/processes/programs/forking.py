"""Runs, forks four times, runs in each child, and in the parent again."""

import os

from asking import ask

print(ask(), flush=True)
for _ in range(4):
    child = os.fork()
    if not child:
        print(ask(), flush=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(ask(), flush=True)
