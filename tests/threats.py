#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tests and the files that docs/threats.md names exist."""

import os
import re

from tap import run, test

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(*path):
    with open(os.path.join(ROOT, *path), encoding='utf-8') as file:
        return file.read()


@test
def each_test_that_is_named_exists():
    cases = re.findall(r'`([a-z]+/[a-z-]+\.(?:py|c)): (\w+)`', read('docs', 'threats.md'))
    assert len(cases) > 50, cases
    lacking = []
    for path, name in cases:
        test_case = rf'^@test.*\ndef {name}\(' if path.endswith('.py') else rf'\bRUN \({name}\)'
        file = os.path.join(ROOT, 'tests', path)
        if not os.path.exists(file) or not re.search(test_case, read(file), re.M):
            lacking.append(f'{path}: {name}')
    assert not lacking, lacking


@test
def each_file_that_is_named_exists():
    lacking = []
    for row in re.findall(r'^\|(.*)\|', read('docs', 'threats.md'), re.M):
        guards = row.split('|')[1] if row.count('|') == 2 else ''
        folder = ''
        for name in re.findall(r'`([\w/]+(?:\.c)?)`', guards):
            if '/' not in name and not name.endswith('.c'):
                continue
            folder = os.path.dirname(name) or folder
            path = os.path.join(folder, os.path.basename(name))
            root = '' if path.startswith('plugins/') else 'apps/rtsp-proxy'
            if not os.path.exists(os.path.join(ROOT, root, path)):
                lacking.append(path)
    assert not lacking, lacking


if __name__ == '__main__':
    run()
