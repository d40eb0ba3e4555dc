"""Seen: the latest visit of each node among those that a visit comes after. Pure.

It is a binary tree over the nodes' numbers. Two of them share what they have in common, so a visit adds a few branches
to what the visits before it have seen, however many those are.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_Tree = Any
"""None, at the bottom the number of a visit, above it a pair of trees."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The latest visit of each node, by the node's number, which has at most `bits` bits."""

    bits: int
    tree: _Tree = None

    def get(self, node: int) -> int | None:
        """Return the number of the node's latest visit; None when there is none."""
        tree = self.tree
        for bit in reversed(range(self.bits)):
            if tree is None:
                return None
            tree = tree[node >> bit & 1]
        found: int | None = tree
        return found

    def add(self, node: int, n: int) -> "Seen":
        """This, and visit `n` of a node."""
        tree: _Tree = n
        for bit in range(self.bits):
            tree = (None, tree) if node >> bit & 1 else (tree, None)
        return Seen(self.bits, _merge(self.tree, tree))


def merge(seen: Iterable[Seen], bits: int) -> Seen:
    """Return the latest visit of each node that any of these has seen."""
    trees = [each.tree for each in seen]
    while len(trees) > 1:
        odd = trees[-1:] if len(trees) % 2 else []
        trees = [_merge(one, other) for one, other in zip(trees[::2], trees[1::2], strict=False)] + odd
    return Seen(bits, trees[0] if trees else None)


def _merge(one: _Tree, other: _Tree) -> _Tree:
    if one is other or other is None:
        return one
    if one is None:
        return other
    if isinstance(one, int):
        return max(one, other)
    left, right = _merge(one[0], other[0]), _merge(one[1], other[1])
    for known in (one, other):
        if left is known[0] and right is known[1]:
            return known
    return (left, right)
