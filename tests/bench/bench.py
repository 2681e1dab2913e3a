#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the benches. ./dev bench builds what they need and calls this."""

import argparse
import importlib
import subprocess
import sys
import time

import papers
import quiet
import report
from rig import rig_or_loopback
from servers import CACHE, ROOT, leave_out_those_that_fail, raise_file_limit, servers
from tap import Skip

NAMES = ('core', 'ingest', 'layers', 'many', 'delays', 'fanout', 'join', 'lag', 'signal_rate', 'relay', 'pace',
         'vod', 'store', 'broadcast', 'swarm', 'swarm_sessions', 'swarm_seed', 'swarm_origin', 'graph', 'interval', 'isolate', 'adapt', 'line', 'estimate',
         'tls', 'progressive', 'strict', 'hls', 'webrtc', 'publishers', 'glass', 'ts', 'titles', 'files', 'recorded', 'recordings', 'omss', 'svcproxy',
         'amps', 'omss_more', 'svc_more', 'cluster')


def commit():
    done = subprocess.run(['git', '-C', ROOT, 'describe', '--always', '--dirty', '--abbrev=10'],
                          capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def measure(bench, rig, quick, samples):
    main = bench.COLUMNS[0]
    most = getattr(bench, 'MOST_DELIVERED', report.MOST_DELIVERED)
    for case, who, values in bench.run(rig, quick):
        report.check(case, who, values, most)
        samples.add(case, who, values)
        if sys.stderr.isatty() and values.get(main.key) is not None:
            print(f'  {case}, {who}: {main.form.format(values[main.key])} {main.heading}',
                  file=sys.stderr, flush=True)


def run_one(bench, rig, quick, facts):
    print(f'\n{bench.NAME}: {bench.TITLE}', flush=True)
    samples = report.Samples()
    start = time.monotonic()
    try:
        measure(bench, rig, quick, samples)
    except AssertionError:
        print(report.table(bench, samples))  # of the cases before
        raise
    print(report.table(bench, samples))
    report.write_json(CACHE / f'{bench.NAME}.json', bench, samples, facts)
    picture = CACHE / f'{bench.NAME}.png'
    drawn = report.draw(picture, bench, samples, facts)
    for column in bench.COLUMNS:
        if column.key in getattr(bench, 'PICTURES', ()):  # besides the main one
            report.draw(CACHE / f'{bench.NAME}-{column.key}.png', bench, samples, facts, column)
    print(f'{time.monotonic() - start:.0f} s; {CACHE / bench.NAME}.json, '
          + (str(picture) if drawn else 'no picture'), flush=True)
    return samples


def run_paper(bench, rig, facts, limits):
    """Runs a bench of the papers while the machine is quiet, and keeps its results. A simulation
    measures no time, and runs at any moment."""
    limits.begin(bench.NAME, time.monotonic(), papers.is_simulated(bench))
    watch = quiet.Watch()
    samples = run_one(bench, rig, facts['quick'], facts)
    found = {**facts, **({'simulated': True} if papers.is_simulated(bench) else
                         {'busy': round(watch.others(), 2)})}
    if papers.is_busy(found):
        print(f'other programs took {found["busy"]:.1f} processors meanwhile')
    if not papers.keep(bench, samples, found):
        print('docs/papers has figures of a quiet machine, which stay')
    papers.write_pages()


def parts_of(benches):
    """Returns {name: benches to run} of all benches and their parts."""
    parts = {part.NAME: (part,) for bench in benches.values()
             for part in getattr(bench, 'PARTS', ())}
    parts.update((name, getattr(bench, 'PARTS', (bench,))) for name, bench in benches.items())
    return parts


def all_benches():
    return {bench.NAME: bench for bench in map(importlib.import_module, NAMES)}


def chosen(names, quick, benches, parts):
    """Returns the benches and parts of these names in turn."""
    if names[:1] == ['papers']:
        names = names[1:] or (papers.by_need(papers.benches()) if quick else papers.benches())
    return [part for name in names or benches for part in parts[name]]


def main():
    benches = all_benches()
    parser = argparse.ArgumentParser(
        prog='./dev bench', epilog='Example: sudo ./dev bench --quick fanout join',
        description='Runs the benches. Prints a table of each, and writes NAME.json and NAME.png to '
                    f'{CACHE}. Without root, the benches run over loopback.')
    parser.add_argument('--quick', action='store_true',
                        help='run fewer cases; all benches take about an hour')
    parser.add_argument('--no-segmentation', action='store_true',
                        help='use a device without UDP segmentation')
    parser.add_argument('names', nargs='*', metavar='NAME',
                        help=f'benches to run: {", ".join(benches)}, or one part of a bench, such '
                             'as store-failure (default: all). After the name papers, those of the '
                             'papers\' experiments to run for docs/papers.md (default: all of them)')
    options = parser.parse_args()
    parts = parts_of(benches)
    of_papers = options.names[:1] == ['papers']
    if unknown := [name for name in options.names[of_papers:] if name not in parts]:
        parser.error(f'unknown bench {unknown[0]}; choose from {", ".join(sorted(parts))}, papers')
    if of_papers and (others := set(options.names[1:]) - set(papers.benches())):
        parser.error(f'{min(others)} repeats no figure of a paper; choose from '
                     f'{", ".join(papers.benches())}')
    limits = papers.Run(options.quick, time.monotonic())

    failed = False
    raise_file_limit()
    CACHE.mkdir(parents=True, exist_ok=True)
    facts = {'commit': commit(), 'quick': options.quick, 'machine': report.machine()}
    with rig_or_loopback(segmentation=not options.no_segmentation) as rig:
        facts['rig'] = ('loopback' if not rig.real else
                        'no UDP segmentation' if options.no_segmentation else 'veth')
        print(f'{report.machine_line(facts["machine"])}; commit {facts["commit"]}; '
              f'rig: {facts["rig"]}')
        leave_out_those_that_fail(rig)
        print(f'servers: {", ".join(server.name for server in servers())}')
        for part in chosen(options.names, options.quick, benches, parts):
            try:
                if of_papers:
                    run_paper(part, rig, facts, limits)
                else:
                    run_one(part, rig, options.quick, facts)
            except Skip as why:
                print(f'skipped {part.NAME}: {why}')
            except AssertionError as error:
                print(f'failed: {error}')
                failed = True
    return 1 if failed else 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
