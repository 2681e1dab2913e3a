#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the options and numbers that rtsp-load --help prints into docs/rtsp-load.md.

    write-options.py [--check] PATH-OF-RTSP-LOAD

With --check, the page stays as it is, and the exit status is 1 if the page is out of date.
"""

import os
import re
import subprocess
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'rtsp-load.md')
BEGIN, END = '<!-- begin: from rtsp-load --help -->\n', '<!-- end -->\n'
OPTION = re.compile(r'^  (?:-(\w), )?(--[\w-]+)(?:=(\S+))? +(.*)$')
NUMBER = re.compile(r'^  (\S.*?)(?:  +(\S.*))?$')


def cell(text):
    return text.replace('|', '\\|')


def option_row(match):
    letter, name, value, text = match.groups()
    names = ([f'`-{letter}`'] if letter else []) + [f'`{name}{" " + value if value else ""}`']
    return f'| {", ".join(names)} | {cell(text)} |\n'


def options(lines):
    """Returns the groups of options as tables, each with its example."""
    out, title, rows = '', None, ''
    for line in lines:
        if heading := re.match(r'(\w+):$', line):
            title, rows = heading[1], ''
        elif match := OPTION.match(line):
            rows += option_row(match)
        elif example := re.match(r'  Example: (.*)', line):
            out += f'\n### {title}\n\n```\n{example[1]}\n```\n\n| option | meaning |\n|---|---|\n{rows}'
    return out


def numbers(lines):
    """Returns the table of the numbers of a result."""
    rows = []
    for line in lines:
        if continued := re.match(r' {20}(\S.*)', line):
            rows[-1][1] = f'{rows[-1][1]} {continued[1]}'.strip()
        elif match := NUMBER.match(line):
            rows.append([match[1], match[2] or ''])
    table = ''.join(f'| {cell(name)} | {cell(text)} |\n' for name, text in rows)
    return f'\n### Numbers\n\n| number | meaning |\n|---|---|\n{table}'


def tables(program):
    text = subprocess.check_output([program, '--help'], text=True, timeout=20)
    before, after = re.split(r'^Numbers, .*\n', text, maxsplit=1, flags=re.M)
    listed = re.match(r'(?:  .*\n)+', after)[0]
    return options(before.splitlines()) + numbers(listed.splitlines())


def main():
    check = '--check' in sys.argv
    with open(PAGE, encoding='utf-8') as file:
        page = file.read()
    before, rest = page.split(BEGIN)
    new = before + BEGIN + tables(sys.argv[-1]) + '\n' + END + rest.split(END, 1)[1]
    if check:
        return 0 if new == page else 1
    with open(PAGE, 'w', encoding='utf-8') as file:
        file.write(new)
    return 0


if __name__ == '__main__':
    sys.exit(main())
