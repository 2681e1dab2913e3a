#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draws docs/img/rooms.svg from the #include lines. Each room has a row, the lowest room at the
bottom, with a dot in the column of each room that it includes. With --check, writes nothing and
exits with status 1 if the picture does not match the code."""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PICTURE = os.path.join(ROOT, 'docs', 'img', 'rooms.svg')
sys.path[:0] = [os.path.join(ROOT, 'tests'), os.path.join(ROOT, 'tests', 'support')]
from rooms import CORE, INCLUDE, ORDER, PROXY, sources  # noqa: E402

CELL, ROW = 26, 26          # pixels
LEFT, TOP, GAP = 20, 150, 40
BOX = 140                   # a room's width
COLOURS = {PROXY: '#1f6f8b', CORE: '#b3541e'}


def uses():
    """Maps each (house, room) to the set of (house, room) that its files include. main.c counts as a
    room."""
    found = {(house, room): set() for house in (PROXY, CORE) for room in rooms_of(house)}
    for house in (PROXY, CORE):
        for path in sources(house):
            own = (house, os.path.dirname(path) or 'main.c')
            with open(os.path.join(ROOT, house, path), encoding='utf-8') as file:
                names = INCLUDE.findall(file.read())
            for name in names:
                for other in (house, CORE):
                    if os.path.exists(os.path.join(ROOT, other, name)):
                        found[own].add((other, os.path.dirname(name)))
                        break
            found[own].discard(own)
    return found


def rooms_of(house):
    return ORDER[house] + (['main.c'] if house == PROXY else [])


def is_there(house, room):
    return os.path.exists(os.path.join(ROOT, house, room))


class Picture:
    def __init__(self, width, height):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>']

    def text(self, x, y, text, **more):
        more = ''.join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
        self.parts.append(f'<text x="{x}" y="{y}"{more}>{text}</text>')

    def box(self, x, y, width, height, **more):
        more = ''.join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}"{more}/>')

    def dot(self, x, y, colour):
        self.parts.append(f'<circle cx="{x}" cy="{y}" r="6" fill="{colour}"/>')

    def line(self, x1, y1, x2, y2, colour):
        self.parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}"/>')

    def __str__(self):
        return '\n'.join(self.parts + ['</svg>', ''])


def draw():
    columns = [(CORE, room) for room in rooms_of(CORE)] + [(PROXY, room) for room in ORDER[PROXY]]
    rows = [(house, room) for house in (PROXY, CORE) for room in reversed(rooms_of(house))]
    x_of = {column: LEFT + BOX + 20 + i * CELL + (GAP // 2 if column[0] == PROXY else 0)
            for i, column in enumerate(columns)}
    y_of = {row: TOP + i * ROW + (GAP if row[0] == CORE else 0) for i, row in enumerate(rows)}
    right, bottom = max(x_of.values()) + CELL, max(y_of.values()) + ROW
    picture = Picture(right + 70, bottom + 30)
    for column, x in x_of.items():
        ground = bottom if column[0] == CORE else y_of[(PROXY, 'base')] + ROW
        picture.line(x + CELL // 2, TOP, x + CELL // 2, ground, '#e4e4e4')
        middle = x + CELL // 2
        picture.text(middle + 4, TOP - 10, column[1], fill=COLOURS[column[0]],
                     transform=f'rotate(-60 {middle + 4} {TOP - 10})')
    for row, y in y_of.items():
        house, room = row
        there = is_there(house, room)
        picture.line(LEFT + BOX, y + ROW // 2, right if house == PROXY else x_of[(CORE, 'fanout')] + CELL,
                     y + ROW // 2, '#e4e4e4')
        picture.box(LEFT, y + 2, BOX, ROW - 4, rx=4, fill=COLOURS[house] if there else '#ffffff',
                    stroke=COLOURS[house], stroke_dasharray='none' if there else '4 3')
        picture.text(LEFT + BOX // 2, y + ROW // 2 + 5, room, text_anchor='middle',
                     fill='#ffffff' if there else COLOURS[house])
    for row, others in uses().items():
        for other in sorted(others):
            picture.dot(x_of[other] + CELL // 2, y_of[row] + ROW // 2, COLOURS[other[0]])
    for house, room in ((PROXY, 'main.c'), (CORE, 'fanout')):
        picture.text(LEFT, y_of[(house, room)] - 6, house, font_weight='bold', fill=COLOURS[house])
    picture.text(LEFT, 24, 'A dot: the room of the row uses the room of the column.')
    picture.text(LEFT, 44, 'Rooms use what lies below them.')
    return str(picture)


def main():
    text = draw()
    if sys.argv[1:] == ['--check']:
        with open(PICTURE, encoding='utf-8') as file:
            return 0 if file.read() == text else 1
    with open(PICTURE, 'w', encoding='utf-8') as file:
        file.write(text)
    return 0


if __name__ == '__main__':
    sys.exit(main())
