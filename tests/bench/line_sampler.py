# SPDX-License-Identifier: LGPL-2.1-or-later
"""Samples one side of the line for line.py, and prints lines of JSON; `at` is in s since 1970.

    line_sampler.py readers SECONDS URL    the readers of the proxy with this API, again and again
    line_sampler.py queue SECONDS          the bytes that wait in the device `line`, and its losses
"""

import json
import subprocess
import sys
import time
import urllib.request

TOP = 2  # temporal layer


def layer(name):
    """Returns the temporal layer of a layer set such as *.*.1."""
    last = name.split('.')[-1]
    return TOP if last == '*' else min(TOP, int(last))


def readers(url):
    with urllib.request.urlopen(url + '/v1/readers') as answer:
        found = json.load(answer)['readers']
    return {'bytes': [each['bytes'] for each in found], 'state': [each['state'] for each in found],
            'layer': [layer(each['layers']['now']) for each in found],
            'wanted': [layer(each['layers']['wanted']) for each in found],
            'estimate': [each['layers']['estimate'] for each in found]}


def queue():
    done = subprocess.run(['tc', '-s', '-j', 'qdisc', 'show', 'dev', 'line'], capture_output=True, text=True, check=True)
    first = json.loads(done.stdout)[0]
    return {'waiting': first['backlog'], 'lost': first['drops'], 'passed': first['bytes']}


def main():
    what, seconds = sys.argv[1], float(sys.argv[2])
    while True:
        start = time.time()
        print(json.dumps({'at': start, **(queue() if what == 'queue' else readers(sys.argv[3]))}), flush=True)
        time.sleep(max(0, start + seconds - time.time()))


if __name__ == '__main__':
    main()
