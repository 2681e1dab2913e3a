# SPDX-License-Identifier: LGPL-2.1-or-later
"""Samples the proxy's API every half second for adapt.py. Prints lines of JSON: the total bytes on
the line and the number of readers per wanted spatial layer. The first argument is the API's URL."""

import json
import sys
import time
import urllib.request

HEADERS = 42  # bytes of Ethernet, IP and UDP headers
LAYERS = {'0': 0, '1': 1, '2': 2, '*': 2}


def main():
    while True:
        start = time.monotonic()
        with urllib.request.urlopen(sys.argv[1] + '/v1/readers') as answer:
            readers = json.load(answer)['readers']
        spatial = [LAYERS[each['layers']['wanted'][0]] for each in readers]
        print(json.dumps({
            'at': start, 'readers': len(readers),
            'bytes': sum(each['bytes'] + HEADERS * each['packets'] for each in readers),
            'spatial': [spatial.count(layer) for layer in range(3)]}), flush=True)
        time.sleep(max(0, start + 0.5 - time.monotonic()))


if __name__ == '__main__':
    main()
