#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the example lines of the elements' documentation as pasted into a shell."""

import collections
import contextlib
import re
import subprocess
import tempfile

from launch import PATIENCE, ROOT, STORE, expect_frames, listen, made_store, running
from proc import free_port
from rangeserver import SWARM_ORIGIN, SWARM_TORRENT, swarm_title
from sanitized import environment, sees_threads
from schedule_server import Server, Title
from tap import Skip, run, test

COMMAND = 'gst-launch-1.0 '
SCHEDULE = 'rtsp-schedule://127.0.0.1:8554/films/a.mp4'


def sections():
    """Returns the documentation text of each element, without the leading asterisks."""
    found = {}
    for path in sorted((ROOT / 'plugins').glob('*/*.c*')):
        for name, text in re.findall(r'^/\*\*\n \* SECTION:element-(\w+)\n(.*?)^ \*/$',
                                     path.read_text(), re.S | re.M):
            found[name] = re.sub(r'^ \* ?', '', text, flags=re.M)
    return found


def examples(section):
    return [line for block in re.findall(r'^\|\[\n(.*?)^\]\|', section, re.S | re.M)
            for line in block.splitlines()]


# Pages in docs/elements/.
PAGES = ['blockstore', 'intervalcache', 'kernelrelay', 'ratepacer', 'relaysrc', 'rtpmp1spay', 'rtpmpegvpay', 'rtprelaypay', 'rtprestamp', 'schedulesrc',
         'svcdec', 'svcenc', 'svclayerfilter', 'swarmsrc']


def lines_of_page(name):
    """Returns the gst-launch-1.0 lines of a page, without line breaks."""
    text = (ROOT / 'docs' / 'elements' / f'{name}.md').read_text(encoding='utf-8')
    blocks = re.findall(r'^```sh\n(.*?)^```', text, re.S | re.M)
    lines = [line for block in blocks for line in re.sub(r'\\\n\s*', '', block).splitlines()]
    return [line for line in lines if line.startswith(COMMAND)]


def need_elements(line):
    names = [word.split()[0] for word in line.removeprefix(COMMAND).split(' ! ')]
    for name in names:
        if re.fullmatch(r'[a-z0-9]+', name) and subprocess.run(
                ['gst-inspect-1.0', name], env=environment(), capture_output=True).returncode != 0:
            raise Skip(f'element {name} is missing')
    if 'swarmsrc' in names and sees_threads():
        raise Skip('libtorrent is not built with ThreadSanitizer')


def expect_pictures(process, n_sinks):
    seen, last = set(), collections.deque(maxlen=12)
    for line in process.stdout:
        last.append(line)
        if match := re.search(r'last-message = chain.*\((\w+):sink\)', line):
            seen.add(match[1])
            if len(seen) == n_sinks:
                return
    raise AssertionError(f'ended early; only {seen} received pictures: {"".join(last)}')


@contextlib.contextmanager
def broadcast_title():
    """Serves a title by unicast only, as groups would leave this host. Returns its URI."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        title = Title(ROOT / 'tests/data/bigbuckbunny.mp4', folder, audio=False)
        with Server(title, 100, port, groups=None):
            yield f'rtsp-schedule://localhost:{port}/a'


def run_all(lines):
    """Runs each line until it exits without an error, or until its windows or its readers have
    data."""
    text = '\n'.join(line.removeprefix(COMMAND) for line in lines)
    text = text.replace('autovideosink', 'fakesink silent=false').replace(
        'delay=5000000000', 'delay=500000000')
    with contextlib.ExitStack() as stack:
        if STORE in text:
            text = text.replace(STORE, stack.enter_context(made_store()))
        if SCHEDULE in text:
            text = text.replace(SCHEDULE, stack.enter_context(broadcast_title()))
        if SWARM_TORRENT in text:
            torrent, origin = stack.enter_context(swarm_title())
            text = text.replace(SWARM_TORRENT, torrent).replace(SWARM_ORIGIN, origin)
        for port in re.findall(r'kernelrelay address=127\.0\.0\.1 port=(\d+)', text):
            text = re.sub(rf'\b{port}\b', str(free_port()), text)
        readers = []
        for port in re.findall(r'127\.0\.0\.1:(\d+)', text):
            if f'udpsrc port={port} ' in text or f'rtp://127.0.0.1:{port}?' in text:
                own = free_port()
            else:
                readers.append(stack.enter_context(listen()))
                own = readers[-1].getsockname()[1]
            text = re.sub(rf'\b{port}\b', str(own), text)
        for line in text.splitlines():
            if re.search('num-buffers=|filesrc |blockstoresrc |swarmsrc ', line):
                done = subprocess.run(['sh', '-c', f'exec {COMMAND} {line}'], cwd=ROOT, text=True,
                                      env=environment(), capture_output=True, timeout=PATIENCE)
                assert done.returncode == 0, done.stdout + done.stderr
                continue
            process = stack.enter_context(running(f'-v {line}'))
            if n_sinks := line.count('fakesink silent=false'):
                expect_pictures(process, n_sinks)
        for reader in readers:
            expect_frames(reader, 20)


@test
def all_elements_are_documented():
    """each element has documentation with a version and example lines"""
    elements = {name for path in (ROOT / 'plugins').glob('*/*.c*')
                for name in re.findall(r'^GST_ELEMENT_REGISTER_DEFINE \(\s*(\w+)',
                                       path.read_text(), re.M)}
    documented = sections()
    assert elements == documented.keys(), elements ^ documented.keys()
    for name, text in documented.items():
        assert re.search(r'^Since: \d+\.\d+$', text, re.M), f'{name}: no version'
        lines = examples(text)
        assert lines, f'{name}: no example line'
        for line in lines:
            # A line that is joined to another one or continues in the next one cannot be pasted.
            assert line.startswith(COMMAND) and line.count(COMMAND) == 1, f'{name}: {line}'


def add(name, lines):
    def each():
        for line in lines:
            need_elements(line)
        run_all(lines)

    each.__doc__ = f'{name}: the examples run'
    test(each)


for element, section in sections().items():
    add(element, examples(section))
for page in PAGES:
    add(f'docs/elements/{page}.md', lines_of_page(page))


@test
def pages_have_examples():
    """each page about an element has an example line"""
    for page in PAGES:
        assert lines_of_page(page), page


if __name__ == '__main__':
    run()
