#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Puts the tables of keys that rtsp-proxy prints (its path is the argument) into
docs/configuration.md."""

import os
import re
import subprocess
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'configuration.md')


def first_key(table):
    return table.split('\n')[2].split('|')[1]


printed = subprocess.check_output([sys.argv[1], '--print-config-docs'], text=True)
tables = {first_key(table): table.strip() + '\n' for table in printed.split('\n\n')}
with open(PAGE, encoding='utf-8') as file:
    page = file.read()
page = re.sub(r'(?m)^\| key .*\n\|[-|]+\n(\|.*\n)+',
              lambda found: tables.get(first_key(found[0]), found[0]), page)
with open(PAGE, 'w', encoding='utf-8') as file:
    file.write(page)
