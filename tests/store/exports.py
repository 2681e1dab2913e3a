# SPDX-License-Identifier: LGPL-2.1-or-later
"""What libweir-store exports."""

import os
import re
import shutil
import subprocess

from tap import Skip, run, test

FOLDER = os.path.join(os.environ['WEIR_DATA'], '../../plugins/store')
HEADERS = 'blockstore.h', 'reading.h', 'remote.h', 'upkeep.h', 'writing.h'
FUNCTION = re.compile(r'^[\w *]*?\b(weir_\w+) \(', re.M)


@test
def only_what_the_public_headers_declare():
    """the library exports what its public headers declare, and nothing else"""
    if not shutil.which('nm'):
        raise Skip('there is no nm; install binutils')
    declared = set()
    for name in HEADERS:
        with open(os.path.join(FOLDER, name), encoding='utf-8') as file:
            declared |= set(FUNCTION.findall(re.sub(r'//.*|^#.*', '', file.read(), flags=re.M)))
    told = subprocess.run(['nm', '-D', '--defined-only', os.environ['WEIR_STORE']],
                          capture_output=True, text=True, check=True).stdout
    exported = {line.split()[2] for line in told.splitlines()}
    # Sanitizers add names of their own.
    exported = {name for name in exported if not name.startswith('__')}
    assert len(declared) > 30
    assert exported == declared, sorted(exported ^ declared)


if __name__ == '__main__':
    run()
