# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lets programs have a part of a processor: a control group of their own."""

import contextlib
import os
import pathlib
import time

from tap import Skip

GROUPS = pathlib.Path('/sys/fs/cgroup')
PERIOD = 20000  # us
LEAST = 1000    # us of a period, for the kernel


class ProcessorGroup:
    """A group without a limit. `words` are to be put before a command that runs in it. All that run
    in it must have ended with the context."""

    def __init__(self):
        self._unified = (GROUPS / 'cgroup.controllers').exists()
        self._group = (GROUPS if self._unified else GROUPS / 'cpu') / f'weir-bench-{os.getpid()}'
        self.words = 'sh', '-c', f'echo $$ > {self._group}/cgroup.procs && exec "$@"', 'sh'
        try:
            self._group.mkdir()
            self.limit(1)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._group.rmdir()
            raise Skip(f'no group with a part of a processor: {error}') from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(20):  # the kernel may not have let go of a program that has ended
            with contextlib.suppress(OSError):
                return self._group.rmdir()
            time.sleep(0.05)
        return self._group.rmdir()

    def limit(self, part):
        """Lets all programs of the group together have `part` of a processor."""
        period = max(PERIOD, round(LEAST / part))
        quota = round(part * period)
        if self._unified:
            (self._group / 'cpu.max').write_text(f'{quota} {period}', encoding='ascii')
        else:
            (self._group / 'cpu.cfs_period_us').write_text(str(period), encoding='ascii')
            (self._group / 'cpu.cfs_quota_us').write_text(str(quota), encoding='ascii')
