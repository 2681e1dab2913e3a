# SPDX-License-Identifier: LGPL-2.1-or-later
"""The experiments of the papers: keeps the results of their benches, and writes docs/papers.md.

papers_amps.py and the other files say which figure of which paper each bench repeats. The results
are in docs/papers, a file for each bench, from which the page and tables of other pages are drawn.
So a figure that is in two places is the same in both.
"""

import datetime
import importlib
import json
import re
import textwrap
from typing import NamedTuple

import quiet
import report
from servers import ROOT
from tap import Skip

PAGE = ROOT / 'docs' / 'papers.md'
RESULTS = ROOT / 'docs' / 'papers'
# Pages with tables from results.
TABLES = ROOT / 'docs' / 'bench.md', ROOT / 'docs' / 'elements' / 'fanoutsink.md'
FILES = 'papers_amps', 'papers_omss', 'papers_svcproxy', 'papers_store', 'papers_broadcast'
MARKED = re.compile(r'(<!-- begin: results of ([\w-]+)(?:, ([^>]*))? -->\n).*?(<!-- end -->)', re.S)
QUICK_MINUTES = 40  # no bench begins later with --quick
WIDTH = 100         # of a line of the page


class Figure(NamedTuple):
    """A figure, table or number of a paper. `here` names results as {case; who; key; format}."""

    name: str
    shows: str
    bench: str      # None: not repeated
    paper: str      # what the paper found
    here: str = ''
    differs: str = ''  # why, or what is not repeated
    section: str = ''  # of docs/bench.md, for where there are no results


class Paper(NamedTuple):
    name: str
    source: str
    figures: tuple


def papers():
    return [importlib.import_module(name).PAPER for name in FILES]


def benches():
    """Returns the names of the papers' benches, in the order of the page, and then those that other
    pages have tables of."""
    tables = [match[2] for path in TABLES
              for match in MARKED.finditer(path.read_text(encoding='utf-8'))]
    return list(dict.fromkeys([*(figure.bench for paper in papers() for figure in paper.figures
                                 if figure.bench), *tables]))


def by_need(names):
    """Returns the names as a quick run takes them: first those without results, then those with
    results of a busy machine."""
    def has(name):
        results = results_of(name)
        return 0 if not results else 1 if is_busy(results) else 2
    return sorted(names, key=has)


# ---- results ----

def results_of(bench):
    """Returns the kept results of a bench, or None."""
    path = RESULTS / f'{bench}.json'
    return json.loads(path.read_text(encoding='utf-8')) if path.exists() else None


def is_simulated(bench):
    return getattr(bench, 'SIMULATED', False)


def is_busy(results):
    return results.get('busy', 0) > quiet.MOST


def keep(bench, samples, facts):
    """Keeps the results of a bench and its picture. Returns False where quiet results are there
    already, and these are not."""
    before = results_of(bench.NAME)
    if before and is_busy(facts) and not is_busy(before):
        return False
    rows = [{'case': case, 'who': who, **report.medians(bench, samples, case, who)}
            for case, who in samples.runs]
    document = {
        'bench': bench.NAME, 'title': bench.TITLE, **facts,
        'date': datetime.date.today().isoformat(),
        'heads': [bench.CASE, bench.WHO],
        'columns': [[column.key, column.heading, column.form] for column in bench.COLUMNS]}
    RESULTS.mkdir(exist_ok=True)
    lines = ',\n  '.join(json.dumps(row) for row in rows)
    head = json.dumps(document, indent=1)[:-2]
    (RESULTS / f'{bench.NAME}.json').write_text(
        f'{head},\n "results": [\n  {lines}\n ]\n}}\n', encoding='utf-8')
    report.draw(RESULTS / f'{bench.NAME}.svg', bench, samples, facts)
    return True


class Run:
    """A run of the papers' benches. Those that begin after QUICK_MINUTES are left out of a quick
    run."""

    def __init__(self, quick, now):
        self._end = now + QUICK_MINUTES * 60 if quick else None

    def begin(self, name, now, simulated=False):
        if self._end is not None and now > self._end:
            raise Skip(f'{QUICK_MINUTES} minutes are over; run ./dev bench --quick papers {name}')
        if not simulated:
            quiet.wait()


# ---- pages ----

def texts(here):
    return (here,) if isinstance(here, str) else here


def resolve(text, results):
    """Replaces each {case; who; key; format} of the text by the result. Returns None if there is no
    such result."""
    found = {(row['case'], row['who']): row for row in results['results']}
    missing = []

    def value(match):
        case, who, key, form = (word.strip() for word in match[1].split(';'))
        number = found.get((case, who), {}).get(key)
        if number is None:
            missing.append(match[0])
            return ''
        return f'{{:{form}}}'.format(number)

    text = re.sub(r'\{([^{}]+)\}', value, text)
    return None if missing else text


def measured(results):
    notes = [results['date']] + ['quick run'] * results['quick']
    if results.get('simulated'):
        return ', '.join(notes)
    if is_busy(results):
        notes.append(f'**on a busy machine**: other programs took {results["busy"]:.1f} processors')
    return f'{report.machine_line(results["machine"])}; {", ".join(notes)}'


def table(results, only=''):
    """Returns the results as a table, or `only` those of one case."""
    rows = [row for row in results['results'] if only in ('', row['case'])]
    columns = [column for column in results['columns']
               if any(row[column[0]] is not None for row in rows)]
    lines = [[*results['heads'], *(heading for _, heading, _ in columns)]]
    lines.append(['---'] * len(lines[0]))
    for row in rows:
        lines.append([row['case'], row['who'], *(
            '-' if row[key] is None else form.format(row[key]) for key, _, form in columns)])
    return ''.join(f'| {" | ".join(line)} |\n' for line in lines)


def section_of(figure):
    """Returns the text on a figure."""
    lines = [f'- Paper: {figure.paper}']
    results = results_of(figure.bench) if figure.bench else None
    here = results and next(filter(None, (resolve(text, results) for text in texts(figure.here))), None)
    if not figure.bench:
        lines.append('- Here: not repeated.')
    elif results and here is None:
        lines.append('- Here: see the picture.' if figure.here == '' else
                     '- Here: the last run had fewer cases than this figure needs; see the picture.')
    elif results:
        lines.append(f'- Here: {here}')
    elif figure.section:
        lines.append(f'- Here: see [{figure.bench}](bench.md#{figure.section}).')
    else:
        lines.append('- Here: not measured yet on a quiet machine.')
    if figure.differs:
        lines.append(f'- Differs: {figure.differs}')
    if figure.bench:
        lines.append(f'- Run: `sudo ./dev bench papers {figure.bench}`'
                     + (f' ({measured(results)})' if results else ''))
    lines = [textwrap.fill(line, WIDTH, subsequent_indent='  ' if line[0] == '-' else '',
                           break_on_hyphens=False, break_long_words=False) for line in lines]
    if (RESULTS / f'{figure.bench}.svg').exists():
        lines.append(f'\n![{figure.bench}](papers/{figure.bench}.svg)')
    return '\n'.join([f'### {figure.name}: {figure.shows}\n', *lines]) + '\n'


INTRODUCTION = '''# The papers' experiments

Weir rests on five papers. This page goes through their figures and tables: what the paper found, what
Weir does in the same experiment, and why they differ where they do. `./dev docs` writes it from the
results in [docs/papers](papers) and from `tests/bench/papers_*.py`.

```sh
sudo ./dev bench --quick papers     # with fewer cases, for {minutes} minutes: first those without results
sudo ./dev bench papers             # all of them, in hours
sudo ./dev bench papers omss-bulk   # one
```

A bench does not begin while other programs take more than {most} of a processor, and says so; those
that give way (`nice`) do not count there. Results beside programs that took more are marked, and never
replace others. The papers' machines are
20 years old, so ratios can be compared, and shapes of curves, but not times.

| paper | figures, tables and numbers | repeated | with results here |
|---|---|---|---|
'''


def page():
    text = INTRODUCTION.format(minutes=QUICK_MINUTES, most=quiet.MOST)
    for paper in papers():
        repeated = [figure for figure in paper.figures if figure.bench]
        kept = sum(results_of(figure.bench) is not None for figure in repeated)
        anchor = re.sub(r'[^\w\- ]', '', paper.name.lower()).replace(' ', '-')
        text += f'| [{paper.name}](#{anchor}) | {len(paper.figures)} | {len(repeated)} | {kept} |\n'
    for paper in papers():
        text += f'\n## {paper.name}\n\n{paper.source}\n\n'
        text += '\n'.join(section_of(figure) for figure in paper.figures)
    return text


def with_tables(text):
    """Returns a page with its tables of results as they are kept."""
    def fill(match):
        results = results_of(match[2])
        assert results, f'a page has a table of {match[2]}, of which docs/papers has no results'
        return (f'{match[1]}{table(results, match[3] or "")}\n*{measured(results)}.*\n{match[4]}')
    return MARKED.sub(fill, text)


def written():
    """Yields the pages, and what is to be in them."""
    yield PAGE, page()
    for path in TABLES:
        yield path, with_tables(path.read_text(encoding='utf-8'))


def write_pages():
    for path, text in written():
        path.write_text(text, encoding='utf-8')
