"""Forks: what a process has to itself, such as connections, threads and locks, a child that it forks makes anew."""

import os
from functools import cache
from typing import Any, Final, NamedTuple, Protocol
from weakref import WeakKeyDictionary


class Own(Protocol):
    """What a process has to itself."""

    def begin_anew(self) -> object:
        """Forget, in a child, what is the parent's; what this returns is kept there, as its end would reach into the
        parent."""
        ...


class Closable(Own, Protocol):
    """What is better closed before its process forks."""

    def close_before_fork(self) -> None: ...


class _Known(NamedTuple):
    own: "WeakKeyDictionary[Own, None]"
    closable: "WeakKeyDictionary[Closable, None]"


_OF_PARENTS: Final[list[object]] = []
"""What is the parent's, in a child."""


def renew_in_forks(each: Own) -> None:
    """Let it begin anew in each child that this process forks, for as long as it is there."""
    _known().own[each] = None


def close_before_forks(each: Closable) -> None:
    """Let it be closed before each fork as well."""
    renew_in_forks(each)
    _known().closable[each] = None


@cache
def _known() -> _Known:
    known = _Known(WeakKeyDictionary(), WeakKeyDictionary())
    os.register_at_fork(before=lambda: _close(known), after_in_child=lambda: _renew(known))
    return known


def _close(known: _Known) -> None:
    for each in _list(known.closable):
        each.close_before_fork()


def _renew(known: _Known) -> None:
    for each in _list(known.own):
        _OF_PARENTS.append(each.begin_anew())


def _list(known: "WeakKeyDictionary[Any, None]") -> list[Any]:
    return [each for reference in known.keyrefs() if (each := reference()) is not None]
