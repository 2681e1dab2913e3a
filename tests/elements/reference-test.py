#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The reference tables of the element pages in docs/."""

import os
import re
import subprocess
import sys

from launch import ROOT
from tap import run, test


@test
def pages_are_up_to_date():
    """the tables of each element page match the built plugin"""
    done = subprocess.run(
        [sys.executable, ROOT / 'docs' / 'write-reference.py', '--check', os.environ['WEIR_ELEMENT_TABLES']],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@test
def every_element_has_tables():
    """each element has reference tables in a page"""
    elements = {name for path in (ROOT / 'plugins').glob('*/*.c*')
                for name in re.findall(r'^GST_ELEMENT_REGISTER_DEFINE \(\s*(\w+)', path.read_text(),
                                       re.M)}
    found = {name or path.stem for path in (ROOT / 'docs' / 'elements').glob('*.md')
             for name in re.findall(r'<!-- reference ?(\w*) ?-->', path.read_text())}
    assert elements == found, elements ^ found


@test
def launch_lines_are_those_that_are_tested():
    """the launch lines of fanoutsink.md run in the tests examples and python"""
    page = (ROOT / 'docs' / 'elements' / 'fanoutsink.md').read_text()
    source = (ROOT / 'plugins' / 'fanout' / 'fanoutsink.c').read_text()
    for line in re.findall(r'^gst-launch-1.0 .*', page, re.M):
        assert line in source or 'tcpclientsrc' in line, line


if __name__ == '__main__':
    run()
