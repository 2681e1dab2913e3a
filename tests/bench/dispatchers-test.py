# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each dispatcher of the bench `amps-dispatchers` answers all requests, and those that sleep do so
later."""

import subprocess

from amps_dispatchers import REQUESTS, SESSION, WAYS, dispatch
from servers import BUILD
from tap import run, test

RATE = 5  # clients a second


@test
def each_way_answers_all_requests():
    found = {way: dispatch(way, RATE, 2) for way in WAYS}
    for way, values in found.items():
        assert 0 < values['cpu'] <= 100, (way, values)
        assert 0 < values['p50'] <= values['p99'], (way, values)
    # A request comes at any moment of 15 ms of sleep.
    assert found['polling']['p50'] > 3, found


@test
def an_unknown_way_is_refused():
    done = subprocess.run([BUILD / 'tests/bench/dispatchers_bench', 'none', str(SESSION), str(REQUESTS), '1'],
                          capture_output=True, check=False, timeout=20)
    assert done.returncode == 2 and not done.stdout, done


if __name__ == '__main__':
    run()
