#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads meson's testlog.json and prints the results, subtest by subtest.

Prints the log of each failed test, one line for each skip with its reason, and at the end
'N passed, N failed, N skipped'. Exits 1 if anything failed or nothing ran.

meson's JUnit file is not enough: it leaves out time-outs, crashes after the last subtest, all but
the last of repeated runs, and the reasons of skips.
Logs of other people's machines are often cut in the middle, so the last lines repeat why a test failed.
"""

import json
import re
import sys

LOG_LINES = 100
LINE_LENGTH = 600
CRASH_LINES = 20
RESULT = re.compile(r'^(ok|not ok) +\d+(?: *-)? *(.*?)(?: *# *(SKIP|TODO)\S* *(.*))?$', re.IGNORECASE)
DURATION = re.compile(r'# [0-9.]+ s')
NO_PLAN = re.compile(r'^1\.\.0 *(?:# *(?:SKIP\S*)? *(.*))?$', re.IGNORECASE)


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else 'no reason given'


def indent(lines):
    return ''.join(f'\n    {line[:LINE_LENGTH]}' for line in lines)


def find_cause(said):
    """Returns the end of what a test said before it failed: where, if it says so, and what."""
    lines = [line.lstrip('# ') for line in said if line.strip('# ') and not DURATION.fullmatch(line)]
    return indent([line for line in lines[:-1] if line.startswith('File ')][-1:] + lines[-1:])


def read(test):
    """Returns (number passed, failures, skips); failures and skips are lists of text."""
    name, result = test['name'], test['result']
    out, err = test.get('stdout') or '', test.get('stderr') or ''
    passed, failed, skipped = 0, [], []
    said = []
    for line in out.splitlines():
        if match := RESULT.match(line):
            ok, subtest, directive, reason = match.groups()
            if directive:
                skipped.append(f'{name}: {subtest}: {reason or "no reason given"}')
            elif ok == 'ok':
                passed += 1
            else:
                failed.append(f'{name}: {subtest}{find_cause(said)}')
            said = []
        elif match := NO_PLAN.match(line):
            skipped.append(f'{name}: {match[1] or "no reason given"}')
        else:
            said.append(line)
    if result not in ('OK', 'EXPECTEDFAIL', 'SKIP'):
        if not failed:
            failed.append(f'{name}: {result}, exit status {test.get("returncode")}{indent(said[-3:])}'
                          f'{indent(err.splitlines()[-CRASH_LINES:])}')
    elif passed + len(failed) + len(skipped) == 0:
        if result == 'SKIP':
            skipped.append(f'{name}: {last_line(out or err)}')
        else:
            passed = 1
    return passed, failed, skipped


def tail(text):
    lines = text.splitlines()
    if len(lines) > LOG_LINES:
        print(f'({len(lines) - LOG_LINES} earlier lines left out)')
    print('\n'.join(lines[-LOG_LINES:]))


def main(path):
    passed, failed, skipped = 0, [], []
    try:
        with open(path, encoding='utf-8', errors='replace') as log:
            tests = [json.loads(line) for line in log]
    except FileNotFoundError:
        tests = []
    for test in tests:
        more, bad, left = read(test)
        passed += more
        failed += bad
        skipped += left
        if bad:
            print(f'\n==== {test["name"]}: {" ".join(test.get("command", []))}')
            for stream in ('stdout', 'stderr'):
                if test.get(stream):
                    print(f'---- {stream}')
                    tail(test[stream])
    print()
    for line in skipped:
        print(f'skipped: {line}')
    for line in failed:
        print(f'failed: {line}')
    print(f'{passed} passed, {len(failed)} failed, {len(skipped)} skipped')
    return 1 if failed or passed == 0 else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
