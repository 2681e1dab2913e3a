#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the tables of configuration keys, variables and upstream URIs into docs/configuration.md.

    write-tables.py RTSP-PROXY

RTSP-PROXY is the path of the program, which prints the tables. Each table replaces the table of the
page that begins with the same key, variable or URI. The test "app-config" fails if the page is stale.
"""

import os
import re
import subprocess
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'configuration.md')


def first_cell(table):
    return table.split('\n')[2].split('|')[1]


printed = subprocess.check_output([sys.argv[1], '--print-config-docs'], text=True)
tables = {first_cell(table): table.strip() + '\n' for table in printed.split('\n\n')}
with open(PAGE, encoding='utf-8') as file:
    page = file.read()
page = re.sub(r'(?m)^\| (?:key|URI|variable) .*\n\|[-|]+\n(\|.*\n)+',
              lambda found: tables.get(first_cell(found[0]), found[0]), page)
with open(PAGE, 'w', encoding='utf-8') as file:
    file.write(page)
