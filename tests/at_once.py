# SPDX-License-Identifier: LGPL-2.1-or-later
"""What run(at_once=N) of support/tap.py says of tests whose process does not end as it should."""

import subprocess
import sys

from tap import run, test

PROGRAM = '''
import os, signal, sys
from tap import run, test

@test
def killed():
    print('half a line', end='', flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

@test
def left():
    sys.exit('no such thing')

@test
def odd():
    os.write(1, b'# \\xff\\n')

run(at_once=2)
'''


@test
def a_test_that_fails_has_a_reason():
    """a process that is killed, one that leaves, and output that is not UTF-8 are reported"""
    done = subprocess.run([sys.executable, '-c', PROGRAM], capture_output=True,
                          text=True, timeout=60, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 1, (done.returncode, lines)
    assert 'half a line' in lines and '# its process ended without a result: exit status -9' in lines, lines
    assert 'SystemExit: no such thing' in done.stderr, done.stderr
    assert '# \ufffd' in lines, lines
    assert [line for line in lines if line.startswith(('ok', 'not ok'))] == ['not ok 1 - killed', 'not ok 2 - left', 'ok 3 - odd'], lines


if __name__ == '__main__':
    run()
