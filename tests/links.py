#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The links of README.md, CONTRIBUTING.md, CHANGELOG.md, SECURITY.md, and all pages of docs/ and
pipelines/."""

import os
import re

from tap import run, test

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CODE = re.compile(r'^```.*?^```|`[^`\n]*`', re.S | re.M)
LINK = re.compile(r'\[(?:[^][]|\[[^][]*\])*\]\(([^)\s]+)\)')
HEADING = re.compile(r'^#+ +(.*?) *#*$', re.M)


def pages():
    yield from ('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md')
    for top in 'docs', 'pipelines', 'tests':
        for where, _, names in os.walk(os.path.join(ROOT, top)):
            for name in sorted(names):
                if name.endswith('.md'):
                    yield os.path.relpath(os.path.join(where, name), ROOT)


def read(page):
    with open(os.path.join(ROOT, page), encoding='utf-8') as file:
        return file.read()


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    text = re.sub(r'^```.*?^```', '', read(page), flags=re.S | re.M)
    for heading in HEADING.findall(text):
        heading = re.sub(r'\[([^][]*)\]\([^)]*\)', r'\1', heading)
        anchor = re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-')
        number = 0
        while (name := f'{anchor}-{number}' if number else anchor) in found:
            number += 1
        found.add(name)
    return found


def links(page):
    """Yields the relative links of a page."""
    for link in LINK.findall(CODE.sub('', read(page))):
        if not re.match(r'[a-z]+:', link):
            yield link


def fault(page, link):
    """Returns what is wrong with a link, or None."""
    path, _, anchor = link.partition('#')
    target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if not os.path.exists(os.path.join(ROOT, target)):
        return f'{page}: {link}: there is no {target}'
    if anchor and anchor not in anchors(target):
        return f'{page}: {link}: {target} has no heading with this anchor'
    return None


@test
def every_relative_link_resolves():
    """every relative link of the pages leads to a file, and every anchor to a heading"""
    faults = [text for page in pages() for link in links(page) if (text := fault(page, link))]
    assert not faults, '\n'.join(faults)


@test
def the_index_leads_to_every_page():
    """docs/index.md links every page of docs/"""
    linked = {os.path.normpath(os.path.join('docs', link.partition('#')[0]))
              for link in links('docs/index.md')}
    lost = [page for page in pages() if page.startswith('docs/') and page != 'docs/index.md'
            and page not in linked]
    assert not lost, f'docs/index.md does not link {lost}'


if __name__ == '__main__':
    run()
