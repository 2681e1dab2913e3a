#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The reference tables of the element pages in docs/."""

import os
import subprocess
import sys

from launch import ROOT
from tap import run, test


@test
def pages_are_up_to_date():
    """the tables of each element page are those of the built plugin"""
    done = subprocess.run(
        [sys.executable, ROOT / 'docs' / 'write-reference.py', '--check', os.environ['WEIR_ELEMENT_TABLES']],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == '__main__':
    run()
