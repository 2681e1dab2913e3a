#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes docs/papers.md, and the tables of other pages, from the results in docs/papers.

The test "bench-papers" fails if a page is out of date.
"""

import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1] / 'tests'
sys.path += [str(TESTS / 'bench'), str(TESTS / 'support')]

import papers  # pylint: disable=wrong-import-position

papers.write_pages()
