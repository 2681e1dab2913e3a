#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The elements work from Python with PyGObject alone, without GStreamer's Python overrides."""

import json
import os
import re
import subprocess
import sys
import time

from launch import ROOT
from proc import Proc, free_port
from sanitized import environment
from tap import Skip, run, test

PATIENCE = 60

READ_ALL = '''
import json, sys, warnings
import gi
gi.require_version('Gst', '1.0')
from gi.repository import Gst

warnings.simplefilter('ignore', DeprecationWarning)
Gst.init(None)
pipeline = Gst.parse_launch(
    'videotestsrc num-buffers=30 ! vp8enc deadline=1 ! rtpvp8pay ! svclayerfilter name=filter ! '
    f'fanoutsink name=sink clients=127.0.0.1:{sys.argv[1]}')


def read(value):
    if isinstance(value, Gst.Structure):
        return {name: read_field(value, name)
                for name in map(value.nth_field_name, range(value.n_fields()))}
    return value


def read_field(structure, name):
    is_array, array = structure.get_array(name)
    if is_array:
        return [read(array.get_nth(i)) for i in range(array.n_values)]
    return read(structure.get_value(name))


pipeline.set_state(Gst.State.PLAYING)
pipeline.get_bus().timed_pop_filtered(20 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
sink, layer_filter = pipeline.get_by_name('sink'), pipeline.get_by_name('filter')
print(json.dumps({
    'clients': sink.get_property('clients'),
    'sink': read(sink.get_property('fanout-stats')),
    'reader': read(sink.emit('get-stats', '127.0.0.1', int(sys.argv[1]))),
    'filter': read(layer_filter.get_property('stats')),
}))
pipeline.set_state(Gst.State.NULL)
'''


def python_with_gi():
    for python in (sys.executable, '/usr/bin/python3'):
        probe = 'import gi; gi.require_version("Gst", "1.0"); from gi.repository import Gst'
        if subprocess.run([python, '-c', probe], capture_output=True, timeout=PATIENCE).returncode == 0:
            return python
    raise Skip('PyGObject with GStreamer is missing (python3-gi, gir1.2-gstreamer-1.0)')


def skip_with_tsan():
    if 'tsan' in os.environ.get('WEIR_SANITIZER_RUNTIME', ''):
        raise Skip('Python loads GLib after the library that shows its locks to ThreadSanitizer')


@test
def statistics_are_read():
    skip_with_tsan()
    port = free_port()
    done = subprocess.run([python_with_gi(), '-c', READ_ALL, str(port)], env=environment(),
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told['clients'] == f'127.0.0.1:{port}', told
    assert told['reader']['packets-due'] == told['sink']['packets-in'] > 0, told
    assert len(told['sink']['segments']) == 7, told
    assert sum(told['sink']['segments']) == told['sink']['sends'] > 0, told
    for where in ('sink', 'filter'):
        layers = told[where]['layers']
        assert [layer['temporal'] for layer in layers] == [0], told
        assert layers[0]['bitrate'] > 0, told


@test
def the_tcp_example_serves_a_reader():
    """docs/examples/tcp.py serves the reader of docs/elements/fanoutsink.md"""
    skip_with_tsan()
    page = (ROOT / 'docs' / 'elements' / 'fanoutsink.md').read_text(encoding='utf-8')
    reader, = re.findall(r'^gst-launch-1\.0 (tcpclientsrc .*)$', page, re.M)
    port = free_port()
    reader = reader.replace('5555', str(port)).replace('autovideosink', 'fakesink num-buffers=20')
    command = [python_with_gi(), ROOT / 'docs' / 'examples' / 'tcp.py', port]
    with Proc(*command, env=environment()) as server:
        done = None
        for _ in range(PATIENCE):  # until it listens
            done = subprocess.run(['sh', '-c', f'exec gst-launch-1.0 {reader}'], env=environment(),
                                  capture_output=True, text=True, timeout=PATIENCE)
            if done.returncode == 0:
                break
            time.sleep(1)
        assert done.returncode == 0, done.stdout + done.stderr
        server.wait_for_line(r'^removed [0-9a-f]{32} packets-sent [1-9]\d*$')


def run_example(name, *args):
    command = [python_with_gi(), ROOT / 'docs' / 'examples' / 'timeshift.py']
    with Proc(*command, env=environment()) as program:
        program.wait_for_line(r'^in [1-9]\d* out [1-9]\d* buffers, behind \d+ ms$')
        program.wait_for_line(r'^window \d+ ms, seek to \d+ ms$')
        line = program.wait_for_line(r'^in (\d+) out (\d+) ', start=len(program.lines))
        assert int(line[2]) > int(line[1]), line[0]


if __name__ == '__main__':
    run()
