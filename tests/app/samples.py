# SPDX-License-Identifier: LGPL-2.1-or-later
"""Samples of a process's memory, descriptors and threads, their trend at rest, and a picture."""

import os
import threading
import time

from control import rss_kib

WARM_UP = 0.25  # this share of the time at the beginning does not count


class Samples(threading.Thread):
    """Samples a process until `stop()`. `.rows` holds (seconds, KiB, descriptors, threads), `.rests`
    the rows of the times when the caller says that the process rests: load hides the trend."""

    def __init__(self, proxy, every):
        super().__init__(daemon=True)
        self.proxy, self.every, self.rows, self.rests = proxy, every, [], []
        self._over, self._begun = threading.Event(), time.monotonic()
        self.start()

    def _row(self):
        return (time.monotonic() - self._begun, rss_kib(self.proxy),
                len(os.listdir(f'/proc/{self.proxy.pid}/fd')),
                len(os.listdir(f'/proc/{self.proxy.pid}/task')))

    def note_rest(self):
        self.rests.append(self._row())

    def run(self):
        while not self._over.wait(self.every):
            try:
                self.rows.append(self._row())
            except (OSError, StopIteration):
                return  # the process has ended

    def stop(self):
        self._over.set()
        self.join()

    def _warm(self):
        return self.rests[int(len(self.rests) * WARM_UP):]

    def slope(self, column):
        """Returns the growth per hour at rest after the warm-up, by least squares."""
        rows = self._warm()
        times, values = [row[0] for row in rows], [row[column] for row in rows]
        middle, mean = sum(times) / len(times), sum(values) / len(values)
        spread = sum((time - middle) ** 2 for time in times)
        return 3600 * sum((time - middle) * (value - mean)
                          for time, value in zip(times, values)) / spread if spread else 0

    def growth(self, column):
        """Returns how much larger the last value at rest is than the first after the warm-up."""
        rows = self._warm()
        return rows[-1][column] - rows[0][column]

    def write(self, folder):
        """Writes soak.csv and soak.svg."""
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, 'soak.csv'), 'w', encoding='ascii') as file:
            file.write('seconds,rss_kib,descriptors,threads\n')
            file.writelines(f'{row[0]:.1f},{row[1]},{row[2]},{row[3]}\n' for row in self.rows)
        with open(os.path.join(folder, 'soak.svg'), 'w', encoding='ascii') as file:
            file.write(picture(self.rows))


def line(rows, column, top, height):
    """Returns one curve with its title, in a box of 800 pixels from `top` on."""
    last, most = rows[-1][0] or 1, max(row[column] for row in rows) or 1
    points = ' '.join(f'{60 + 730 * row[0] / last:.1f},{top + height * (1 - row[column] / most):.1f}'
                      for row in rows)
    title = ('', 'resident memory in KiB', 'descriptors', 'threads')[column]
    return (f'<text x="60" y="{top - 6}">{title}, up to {most}, over {last / 60:.0f} min</text>'
            f'<path d="M60 {top}V{top + height}H790" fill="none" stroke="#888"/>'
            f'<polyline points="{points}" fill="none" stroke="#06c" stroke-width="1.5"/>')


def picture(rows):
    curves = ''.join(line(rows, column, 30 + 190 * (column - 1), 140) for column in (1, 2, 3))
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="800" height="580" font-family="sans-serif" '
            f'font-size="13"><rect width="800" height="580" fill="#fff"/>{curves}</svg>\n')
