#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the libFuzzer programs of a build folder one after the other, each for some seconds.

Prints a line for each: executions, edges covered, inputs kept, and findings. A finding is an input
that crashes the target, leaks or takes too long; it lies in findings/ of the build folder. New
inputs lie in corpus/ of the build folder. The exit status is 1 if there are findings.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
SEED_CORPUS = os.path.join(HERE, 'corpus')
TIMEOUT_S = 10  # for one input
RSS_MIB = 1024
INPUT_MAX = 16384
# GLib never frees the names of caps' fields. The suppression goes by GLib's callers, which only slow
# unwinding finds.
NEEDS_SLOW_UNWINDING = 'sdp', 'worker', 'titlewire'


def environment(target):
    slow = ':fast_unwind_on_malloc=0' if target in NEEDS_SLOW_UNWINDING else ''
    support = os.path.join(os.path.dirname(HERE), 'support')
    return {
        **os.environ, 'ASAN_OPTIONS': 'detect_stack_use_after_return=1:strict_string_checks=1' + slow,
        'UBSAN_OPTIONS': 'print_stacktrace=1',
        'LSAN_OPTIONS': f'print_suppressions=0:suppressions={support}/lsan.supp'}


def number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def fuzz(build, target, seconds):
    """Returns (executions, edges, inputs, findings)."""
    corpus = os.path.join(build, 'corpus', target)
    findings = os.path.join(build, 'findings', target + '-')
    for folder in corpus, os.path.dirname(findings):
        os.makedirs(folder, exist_ok=True)
    before = set(os.listdir(os.path.dirname(findings)))
    ended = subprocess.run(
        [os.path.join(build, 'tests', 'fuzz', target + '-fuzz'), f'-max_total_time={seconds}',
         f'-timeout={TIMEOUT_S}', f'-rss_limit_mb={RSS_MIB}', f'-max_len={INPUT_MAX}',
         '-print_final_stats=1', f'-artifact_prefix={findings}', corpus,
         os.path.join(SEED_CORPUS, target)],
        env=environment(target), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors='replace', check=False)
    found = sorted(set(os.listdir(os.path.dirname(findings))) - before)
    if ended.returncode != 0:
        print(ended.stdout[-6000:])
        found = found or [f'exit status {ended.returncode}']
    executions = number(r'stat::number_of_executed_units: (\d+)', ended.stdout)
    edges = number(r' cov: (\d+)', ended.stdout)
    return executions, edges, len(os.listdir(corpus)), found


def main(build, *words):
    targets = sorted(os.listdir(SEED_CORPUS))
    if words:
        if words[0] not in targets:
            sys.exit(f'fuzz: no target {words[0]}; the targets are {", ".join(targets)}')
        targets = words[:1]
    seconds = int(words[1]) if len(words) > 1 else 60
    failed = False
    for target in targets:
        executions, edges, inputs, found = fuzz(os.path.realpath(build), target, seconds)
        failed |= bool(found)
        print(f'{target:8} {executions:12,} executions {edges:6,} edges {inputs:6,} inputs '
              f'{len(found)} findings {" ".join(found)}'.rstrip(), flush=True)
    sys.exit(failed)


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit('usage: fuzz.py BUILD-FOLDER [TARGET [SECONDS]]')
    main(*sys.argv[1:])
