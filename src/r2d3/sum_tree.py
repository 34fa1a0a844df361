"""A binary tree whose inner nodes hold the sums of their children: O(log n) sampling by weight."""

from __future__ import annotations

import numpy as np


class SumTree:
    """Weights of `capacity` leaves. All operations work on arrays of leaves at once."""

    def __init__(self, capacity: int):
        self.leaves = 1 << max(capacity - 1, 1).bit_length()
        # Node 1 is the root, node i has the children 2i and 2i + 1, leaf j is node leaves + j.
        self.sums = np.zeros(2 * self.leaves)

    @property
    def total(self) -> float:
        return float(self.sums[1])

    def get(self, leaf: np.ndarray) -> np.ndarray:
        return self.sums[self.leaves + leaf]

    def set(self, leaf: np.ndarray, weight: np.ndarray) -> None:
        """Where a leaf is named twice, the last weight counts."""
        nodes = np.asarray(leaf) + self.leaves
        if len(nodes) == 0:
            return
        self.sums[nodes] = weight
        while nodes[0] > 1:
            # Parents are recomputed from both children, so rounding errors never pile up.
            nodes = nodes >> 1
            self.sums[nodes] = self.sums[2 * nodes] + self.sums[2 * nodes + 1]

    def set_one(self, leaf: int, weight: float) -> None:
        """`set` for a single leaf, without the cost of arrays."""
        sums, node = self.sums, leaf + self.leaves
        sums[node] = weight
        while node > 1:
            node >>= 1
            sums[node] = sums[2 * node] + sums[2 * node + 1]

    def find(self, points: np.ndarray) -> np.ndarray:
        """The leaf in whose share of [0, total) each point lies."""
        remaining = np.array(points, np.float64)
        node = np.ones(len(remaining), np.int64)
        while len(node) and node[0] < self.leaves:
            left = 2 * node
            left_sum = self.sums[left]
            # Rounding must never lead into a subtree that weighs nothing.
            go_right = (remaining >= left_sum) & (self.sums[left + 1] > 0)
            remaining = np.where(go_right, remaining - left_sum, remaining)
            node = left + go_right
        return node - self.leaves
