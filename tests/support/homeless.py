"""A user without a home directory, as a container has that runs under any number."""

import pwd
from typing import NoReturn

import pytest


def forget_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a user that the machine does not know, without HOME."""

    def find_nobody(uid: int) -> NoReturn:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", find_nobody)
