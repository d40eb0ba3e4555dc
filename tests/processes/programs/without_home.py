"""A function as a Lambda runs it: no HOME, a directory that cannot be written to, once cold and once warm."""

import os

from asking import ask

assert "HOME" not in os.environ
for _ in ("cold", "warm"):
    print(ask())
