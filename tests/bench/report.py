# SPDX-License-Identifier: LGPL-2.1-or-later
"""Presents the benches' results as a table, as JSON and as a picture."""

import json
import math
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import textwrap
from typing import NamedTuple

COLOURS = ('#1b7f5c', '#c8553d', '#4d6fb0', '#d9a441', '#7a5195', '#8a8a8a')
MOST_UPRIGHT = 12   # labels of cases below a picture; more are turned
LABELS_WIDTH = 100  # letters below a picture, side by side


class Column(NamedTuple):
    """One measure. The first column of a bench is the main one: it is drawn and shown as a
    ratio."""

    key: str
    heading: str
    form: str = '{:.0f}'
    spread: bool = False  # also shows the smallest and largest value


class Samples:
    """The results of all runs. Cases and servers keep the order in which they first appeared."""

    def __init__(self):
        self.runs = {}

    def add(self, case, server, values):
        self.runs.setdefault((case, server), []).append(values)

    def cases(self):
        return list(dict.fromkeys(case for case, _ in self.runs))

    def servers(self):
        return list(dict.fromkeys(server for _, server in self.runs))

    def values(self, case, server, key):
        found = (run.get(key) for run in self.runs.get((case, server), ()))
        return [value for value in found if value is not None]

    def median(self, case, server, key):
        values = self.values(case, server, key)
        return statistics.median(values) if values else None


# Packets that a server queued before the window are delivered in it.
MOST_DELIVERED = 200


def check(case, server, values, most=MOST_DELIVERED):
    """Fails on an impossible figure, which means that the bench measured something else."""
    delivered = values.get('delivered')
    assert delivered is None or delivered <= most, \
        f'{case}, {server}: delivered {delivered:.0f} % of the expected packets'
    # Whoever has received something must have used the CPU.
    assert values.get('packets') != 0, f'{case}, {server}: the origin sent no packets'
    assert values.get('received') != 0, f'{case}, {server}: no packets were delivered'
    assert 'packets' not in values or values['total'] > 0, \
        f'{case}, {server}: the server used no CPU time'


def cell(samples, case, server, column):
    values = samples.values(case, server, column.key)
    if not values:
        return '-'
    text = column.form.format(statistics.median(values))
    if column.spread and len(values) > 1:
        text += f' ({column.form.format(min(values))} to {column.form.format(max(values))})'
    return text


def proportion(samples, case, server, bench):
    """Returns how many times less than the yardstick a server costs (above 1 is cheaper)."""
    own = samples.median(case, server, bench.COLUMNS[0].key)
    other = samples.median(case, bench.YARDSTICK, bench.COLUMNS[0].key)
    return f'{other / own:.2f}' if own and other else '-'


def table(bench, samples):
    compared = bench.YARDSTICK is not None
    heads = [bench.CASE, bench.WHO, *([f'against {bench.YARDSTICK}'] if compared else ()),
             *(column.heading for column in bench.COLUMNS)]
    rows = [
        [case, server, *([proportion(samples, case, server, bench)] if compared else ()),
         *(cell(samples, case, server, column) for column in bench.COLUMNS)]
        for case in samples.cases() for server in samples.servers()
        if (case, server) in samples.runs
    ]
    widths = [max(map(len, words)) for words in zip(heads, *rows)]
    lines = [heads, ['-' * width for width in widths], *rows]
    return '\n'.join(
        '| ' + ' | '.join(word.ljust(width) for word, width in zip(line, widths)) + ' |'
        for line in lines)


def machine():
    info = pathlib.Path('/proc/cpuinfo').read_text(encoding='utf-8')
    model = re.search(r'model name\s*: (.*)', info)
    memory = pathlib.Path('/proc/meminfo').read_text(encoding='utf-8')
    kilobytes = int(re.search(r'MemTotal:\s*(\d+)', memory)[1])
    return {
        'cpu': model[1] if model else platform.machine(),
        'cores': len(re.findall(r'^processor\s*:', info, re.MULTILINE)),
        'virtual': 'hypervisor' in info,
        'memory_gb': round(kilobytes / 2**20),
        'kernel': platform.release(),
    }


def machine_line(facts):
    virtual = ' (virtual)' if facts['virtual'] else ''
    return (f'{facts["cores"]} x {facts["cpu"]}{virtual}, {facts["memory_gb"]} GB, '
            f'Linux {facts["kernel"]}')


def medians(bench, samples, case, server):
    return {column.key: samples.median(case, server, column.key) for column in bench.COLUMNS}


def write_json(path, bench, samples, facts):
    rows = [
        {'case': case, 'who': server, 'runs': runs, 'median': medians(bench, samples, case, server)}
        for (case, server), runs in samples.runs.items()
    ]
    document = {'bench': bench.NAME, 'title': bench.TITLE, **facts, 'results': rows}
    path.write_text(json.dumps(document, indent=1) + '\n', encoding='utf-8')


def labels(cases):
    """Returns what the cases are called below a picture, in lines that fit side by side."""
    width = LABELS_WIDTH // len(cases) if len(cases) <= MOST_UPRIGHT else LABELS_WIDTH
    return [textwrap.wrap(case, width) for case in cases]


def _data(samples, servers, key):
    """Returns a line for each case: its label, and median, min and max of each server."""
    for case, label in zip(samples.cases(), labels(samples.cases())):
        fields = ['"' + '\\n'.join(label) + '"']
        for server in servers:
            values = samples.values(case, server, key) or [math.nan]
            fields += [f'{f(values):g}' for f in (statistics.median, min, max)]
        yield ' '.join(fields)


def _histogram(samples, servers, key):
    """Returns the commands that draw a bar for each case and server, and the lines of data."""
    data = list(_data(samples, servers, key))
    lines = max(map(len, labels(samples.cases())))
    plots = ', '.join(
        f'$data using {3 * n + 2}:{3 * n + 3}:{3 * n + 4}:xtic(1) title "{server}" '
        f'linecolor rgb "{COLOURS[n % len(COLOURS)]}"'
        for n, server in enumerate(servers))
    return [
        'set style data histogram; set style histogram errorbars gap 2 linewidth 1',
        'set errorbars linecolor rgb "#333333"',
        'set style fill solid 0.9 noborder; set boxwidth 0.9 relative',
        f'set xtics noenhanced{" rotate by -60" if len(data) > MOST_UPRIGHT else ""}',
        f'set xlabel offset 0,{1 - lines}',
        '$data << END', *data, 'END'], plots


def _lines(samples, servers, key):
    """The same with a line for each server, over cases that are numbers."""
    blocks, plots = [], []
    for n, server in enumerate(servers):
        points = sorted((float(case), samples.median(case, server, key)) for case in samples.cases()
                        if samples.values(case, server, key))
        blocks += [f'$data{n} << END', *(f'{x:g} {y:g}' for x, y in points), 'END']
        plots.append(f'$data{n} using 1:2 with linespoints title "{server}" linewidth 2 pointtype 7 '
                     f'pointsize 0.5 linecolor rgb "{COLOURS[n % len(COLOURS)]}"')
    return ['set xrange [0:*]', *blocks], ', '.join(plots)


def draw(path, bench, samples, facts, column=None):
    """Draws a measure, by default the bench's main one, as .png or .svg. Returns False if there is
    nothing to draw or no gnuplot."""
    column = column or bench.COLUMNS[0]
    key = column.key
    drawn = {server: [value for case in samples.cases()
                      for value in samples.values(case, server, key)]
             for server in samples.servers()}
    servers = [server for server, values in drawn.items() if values]
    if not any(sum(drawn.values(), [])) or not shutil.which('gnuplot'):
        return False
    terminal = ('svg size 960,480 dynamic background rgb "white"' if path.suffix == '.svg' else
                'pngcairo size 960,480')
    style = _lines if getattr(bench, 'LINES', False) else _histogram
    commands, plots = style(samples, servers, key)
    script = [
        f'set terminal {terminal} font "sans,11"; set output "{path}"',
        f'set title "{bench.TITLE}\\n{machine_line(facts["machine"])}" noenhanced',
        f'set ylabel "{column.heading}"; set key noenhanced outside top center horizontal; set grid ytics',
        f'set xlabel "{bench.CASE}"',
        # A logarithmic scale, which has no zero, separates costs of very different size.
        f'set logscale y; set yrange [{_floor(sum(drawn.values(), []))}:*]' if bench.LOG
        else 'set yrange [0:*]',
        *commands, f'plot {plots}',
    ]
    subprocess.run(['gnuplot'], input='\n'.join(script), text=True, check=True)
    return True


def _floor(values):
    return 10 ** math.floor(math.log10(min(filter(None, values))))
