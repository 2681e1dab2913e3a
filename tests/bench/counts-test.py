# SPDX-License-Identifier: LGPL-2.1-or-later
"""rtsp-load's packet counts match the kernel's. Needs root, for the rig."""

import json
import os
import tempfile

from proc import Proc, interop
from rig import EVERYBODY, FIRST_PORT, LAST_PORT, NoRig, Rig
from tap import Skip, run, test

CLIP = os.path.join(os.environ['WEIR_DATA'], 'bigbuckbunny.mp4')
READERS, PROBES, SECONDS = 10, 4, 4
IP_UDP = 28


def program(name):
    path = os.environ.get(name)
    if not path:
        raise Skip(f'{name} is not set')
    return path


def load(rig, url, *words):
    with Proc(*rig.readers, program('WEIR_RTSP_LOAD'), '--json', '--readers', READERS,
              '--tracks', 'video', '--duration', SECONDS,
              '--ports', f'{FIRST_PORT}-{LAST_PORT}', *words, url) as loading:
        assert loading.wait(SECONDS + 20) == 0, loading.output()
        text = loading.output()
    return json.loads(text[text.index('{'):text.rindex('}') + 1])


def write(file, settings):
    json.dump(settings, file)
    file.flush()
    return file.name


def counted(segmentation):
    """Returns rtsp-load's result for probes behind the proxy, and nftables' counters."""
    try:
        rig = Rig(segmentation=segmentation)
    except NoRig as why:
        raise Skip(str(why)) from None
    with rig:
        rig.drop_all_but(PROBES)
        with Proc(*rig.server, interop(), 'origin', '--listen', f'{rig.server_address}:0',
                  '--clip', CLIP) as origin:
            upstream = origin.wait_for_line(r'^READY (rtsp://\S+)')[1]
            # JSON is YAML too.
            settings = {'listen': f'{rig.server_address}:0', 'api': 'off', **EVERYBODY,
                        'mounts': {'/cam': {'upstream': upstream}}}
            with tempfile.NamedTemporaryFile('w', suffix='.yaml', encoding='utf-8') as file, \
                    Proc(*rig.server, program('WEIR_RTSP_PROXY'), '--config',
                         write(file, settings)) as proxy:
                url = proxy.wait_for_line(r' serves (rtsp://\S+)$')[1]
                result = load(rig, url, '--probes', PROBES)
        return result, rig.counters()


def check(result, counters):
    assert result['connected'] == READERS and result['probes'] == PROBES, result
    assert result['probe_ports'] == [FIRST_PORT, FIRST_PORT + 2 * PROBES - 1], result
    assert result['packets'] > 20 * PROBES, result
    for key in 'lost', 'duplicates', 'reordered':
        assert result[key] == 0, (key, result[key])
    packets, size = counters['media']
    assert size - IP_UDP * packets == result['bytes'], (result, counters)
    assert counters['dropped'][0] > 0, counters


@test
def every_packet_and_byte_of_the_probes_is_counted():
    result, counters = counted(segmentation=False)
    check(result, counters)
    assert counters['media'][0] == result['packets'], (result, counters)


@test
def every_byte_is_counted_where_the_device_segments():
    result, counters = counted(segmentation=True)
    check(result, counters)
    assert counters['media'][0] < result['packets'], (result, counters)


if __name__ == '__main__':
    run()
