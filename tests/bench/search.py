# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds the largest number that still works."""

GROWTH = 1.5


def most(trial, start, limit, near):
    """Tries numbers from `start` on, to `limit`. trial(n) returns figures, or None if n is too many.
    Returns the largest number that works, to a factor of `near`, its figures, and the smallest that
    did not, which is None at the limit. The number is 0 if 1 is too many."""
    best, figures, worst = 0, None, None
    number = min(start, limit)
    while True:
        values = trial(number)
        if values is None:
            worst = number
        else:
            best, figures = number, values
        if worst is None and best == limit or worst is not None and worst <= max(best * near, best + 1):
            return best, figures, worst
        number = min(limit, int(best * GROWTH) + 1) if worst is None else (best + worst) // 2
