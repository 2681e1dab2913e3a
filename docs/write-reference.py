#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the reference tables of element pages: write-reference.py [--check] ELEMENT-TABLES

A page in docs/ has them between `<!-- reference -->`, or `<!-- reference NAME -->`, and
`<!-- end of reference -->`. NAME is an element or a GObject type of the plugin; without it the
page's file name is the element. The program element-tables prints what the built plugin registers.
The names of signal arguments come from the `@name:` lines of the comments in plugins/. An element
that this build does not have keeps its tables.

With --check nothing is written: the exit status is 1 if a page is not as the plugin is."""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r'(<!-- reference ?([\w-]*) ?-->\n).*?(<!-- end of reference -->)', re.S)
COMMENT = re.compile(r'/\*\*\n\s*\* (\w+)::([\w-]+):\n(.*?)\*/', re.S)
TYPES = {'gboolean': 'boolean', 'gint': 'int', 'guint': 'uint', 'gint64': 'int64',
         'guint64': 'uint64', 'gfloat': 'float', 'gdouble': 'double', 'gchararray': 'string',
         'GstValueArray': 'array', 'void': ''}
LIMITS = {str(2**31 - 1): '2³¹−1', str(2**32 - 1): '2³²−1', str(2**61 - 1): '2⁶¹−1',
          str(2**63 - 1): '2⁶³−1', str(2**64 - 1): '2⁶⁴−1', str(-2**31): '−2³¹',
          str(-2**63): '−2⁶³'}
STATES = {'': '', 'READY': ', in NULL or READY', 'PAUSED': ', up to PAUSED',
          'PLAYING': ', in any state'}


def argument_names():
    """{(type, signal): [names]}, as the comments in the sources say."""
    found = {}
    for path in (ROOT / 'plugins').rglob('*.c*'):
        for type_name, signal, text in COMMENT.findall(path.read_text(encoding='utf-8')):
            found[type_name, signal] = re.findall(r'^\s*\* @(\w+):', text, re.M)
    return found


def code(text):
    return f'`{text}`' if text else ''


def type_of(name):
    return TYPES.get(name, name)


def table(heading, columns, rows):
    if not rows:
        return []
    lines = [f'### {heading}', '', f'| {" | ".join(columns)} |', '|' + '---|' * len(columns)]
    for row in rows:
        cells = [cell.replace('|', '\\|').replace('\n', ' ') for cell in row]
        lines.append(f'| {" | ".join(cells)} |'.replace('|  |', '| |').replace('|  |', '| |'))
    return lines + ['']


def pads(members):
    return table('Pads', ('pad', 'direction', 'presence', 'caps'), [
        (code(pad['name']), pad['direction'], pad['presence'],
         code(re.sub(r'=\(\w+\)', '=', pad['caps']))) for pad in members.get('pads', [])])


def properties(members, heading='Properties'):
    rows = []
    for each in members['properties']:
        low, _, high = each['range'].partition(' to ')
        limits = f', {LIMITS.get(low, low)} to {LIMITS.get(high, high)}' if low else ''
        default = LIMITS.get(each['default'], each['default'])
        blurb = 'Deprecated. ' * each['deprecated'] + each['blurb']
        rows.append((code(each['name']), type_of(each['type']) + limits, code(default),
                     each['access'] + STATES[each['mutable']], blurb))
    return table(heading, ('property', 'type and range', 'default', 'access', 'description'), rows)


def signals(members, names):
    rows = []
    for each in members['signals']:
        known = names.get((members['type'], each['name']), [])
        assert len(known) in (0, len(each['arguments'])), \
            f'{members["type"]}::{each["name"]}: its comment names {known}, not {each["arguments"]}'
        types = [type_of(name) for name in each['arguments']]
        arguments = [f'{name}: {kind}' for name, kind in zip(known, types)] or types
        rows.append((code(each['name']), 'action' if each['action'] else 'signal',
                     code(', '.join(arguments)), code(type_of(each['returns']))))
    return table('Signals', ('signal', 'kind', 'arguments', 'returns'), rows)


def enums(members):
    rows = {}
    for each in members['enums'] + [e for pad in members.get('pads', []) for e in pad.get('enums', [])]:
        for value in each['values']:
            rows[each['name'], value['nick']] = (
                code(each['name']), code(value['nick']), str(value['value']), value['meaning'])
    return table('Enumerations', ('type', 'value', 'number', 'meaning'), list(rows.values()))


def reference(members, names):
    lines = ['<!-- ./dev docs writes the tables below. -->', '']
    lines += pads(members) + properties(members)
    for pad in members.get('pads', []):
        if 'properties' in pad:
            lines += properties(pad, f'Properties of {code(pad["name"])} pads')
    return '\n'.join(lines + signals(members, names) + enums(members)) + '\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--check', action='store_true')
    parser.add_argument('program')
    options = parser.parse_args()
    pages = {path: path.read_text(encoding='utf-8') for path in sorted((ROOT / 'docs').rglob('*.md'))}
    wanted = {found[2] or path.stem for path, text in pages.items() for found in BLOCK.finditer(text)}
    known = json.loads(subprocess.check_output([options.program, *sorted(wanted)], text=True))
    names = argument_names()
    stale = False
    for path, text in pages.items():
        def replace(found, path=path):
            members = known.get(found[2] or path.stem)
            return found[1] + reference(members, names) + found[3] if members else found[0]

        new = BLOCK.sub(replace, text)
        if new == text:
            continue
        stale = True
        if options.check:
            print(f'{path.relative_to(ROOT)} is not as the plugin is: run ./dev docs')
        else:
            path.write_text(new, encoding='utf-8')
    sys.exit(1 if options.check and stale else 0)


if __name__ == '__main__':
    main()
