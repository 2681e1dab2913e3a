# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the includes between the rooms of plugins/core and apps/rtsp-proxy.

A room is a folder. A file includes files of its own room and of earlier rooms in the order below,
always as "room/file.h", so all dependencies point one way. The files of one name (x.c, x.h,
x_private.h) are a unit, and units do not include each other in a circle.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tap import Skip, run, test

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORE = 'plugins/core'
PROXY = 'apps/rtsp-proxy'
ORDER = {
    CORE: 'bits run pace disks mp4 matroska rtmp rtp codec svc net webrtc schedule swarm cluster ingest window fanout'.split(),
    PROXY: ('base events text tls relay frames isolate sources stores title broadcast worker stages config import graph mounts access '
            'readers proxy outlets/http outlets/picture outlets/ts outlets/caller outlets/srt outlets/rtmp outlets/rtsp outlets/webrtc outlets/hls outlets/recording cluster system cli control').split(),
}
# Most lines of a file and of a function. Tables of properties and signals do not count.
FILE_LINES = 600
FUNCTION_LINES = 60
# A file whose first comment says that it is one state machine may be longer than it would be in parts.
MACHINE = re.compile(r'\A// SPDX[^\n]*\n// One state machine: ')
MACHINE_FILE_LINES = 900
MACHINE_FUNCTION_LINES = 100
FUNCTION = re.compile(r'^(\w+) \((?:(?!\n\n)[^;{}])*\n\{\n((?:.*\n)*?)\}', re.M)
TABLE = re.compile(r'\b(?:g_param_spec_\w+|g_signal_new\w*) \(')
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
ANY_INCLUDE = re.compile(r'^#include [<"]([^>"]+)[>"]', re.M)
# Which rooms of the proxy may include a library's headers. gst/rtsp/ is the parser library of
# gst-plugins-base.
LIBRARIES = {
    'gst/rtsp-server/': ['outlets/rtsp'],
    'weir-rtsp.h': ['outlets/rtsp'],
    'gnutls/': ['text', 'tls'],
    'openssl/': ['outlets/webrtc'],
    'argon2.h': ['access', 'cli'],
    'seccomp.h': ['isolate'],
    'gst/rtsp/': ['text', 'sources', 'outlets/rtsp'],
}
# Headers for programs outside of the project, which may be C++.
INSTALLED = ['weir.h', 'weir-rtsp.h']
MODULES = ('gstreamer-1.0 gstreamer-base-1.0 gstreamer-app-1.0 gstreamer-rtp-1.0 gstreamer-rtsp-1.0 '
           'gstreamer-sdp-1.0 gstreamer-rtsp-server-1.0 gio-unix-2.0 json-glib-1.0 libsoup-3.0 '
           'yaml-0.1 gnutls openssl').split()


def sources(house, endings=('.c', '.h')):
    for where, _, names in os.walk(os.path.join(ROOT, house)):
        for name in names:
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(where, name), os.path.join(ROOT, house))


def includes(house, path):
    """Yields the files of the same house that a file includes."""
    with open(os.path.join(ROOT, house, path), encoding='utf-8') as file:
        for name in INCLUDE.findall(file.read()):
            if os.path.exists(os.path.join(ROOT, house, name)):
                yield name


def unit(path):
    return re.sub(r'(_private)?\.[ch]$', '', path)


def components(graph):
    """Returns the strongly connected components of a graph (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            found.append(set(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


@test
def each_file_is_in_a_room():
    for house, rooms in ORDER.items():
        lost = [path for path in sources(house)
                if os.path.dirname(path) not in rooms and path != 'main.c']
        assert not lost, f'{house}: not in a room: {lost}'


@test
def files_include_their_own_room_and_rooms_before_it():
    for house, rooms in ORDER.items():
        wrong = [f'{path} includes {name}' for path in sources(house) if path != 'main.c'
                 for name in includes(house, path)
                 if rooms.index(os.path.dirname(name)) > rooms.index(os.path.dirname(path))]
        assert not wrong, f'{house}: includes of a later room: {wrong}'


@test
def the_rtsp_outlet_uses_no_other_outlet():
    wrong = [f'{path} includes {name}' for path in sources(PROXY) if os.path.dirname(path) == 'outlets/rtsp'
             for name in includes(PROXY, path)
             if name.startswith('outlets/') and os.path.dirname(name) != 'outlets/rtsp']
    assert not wrong, f'{PROXY}: {wrong}'


@test
def a_library_s_headers_are_included_in_its_rooms_only():
    wrong = []
    for path in sources(PROXY):
        with open(os.path.join(ROOT, PROXY, path), encoding='utf-8') as file:
            names = ANY_INCLUDE.findall(file.read())
        wrong += [f'{path} includes {name}' for name in names for library, rooms in LIBRARIES.items()
                  if name.startswith(library) and os.path.dirname(path) not in rooms]
    assert not wrong, f'{PROXY}: {wrong}'


@test
def an_include_names_the_room():
    for house in ORDER:
        wrong = []
        for path in sources(house):
            folder = os.path.dirname(os.path.join(ROOT, house, path))
            with open(os.path.join(ROOT, house, path), encoding='utf-8') as file:
                wrong += [f'{path} includes {name}' for name in INCLUDE.findall(file.read())
                          if '/' not in name and os.path.exists(os.path.join(folder, name))]
        assert not wrong, f'{house}: includes without the room: {wrong}'


@test
def no_files_include_each_other_in_a_circle():
    for house in ORDER:
        graph = {}
        for path in sources(house):
            graph.setdefault(unit(path), set()).update(
                unit(name) for name in includes(house, path) if unit(name) != unit(path))
        circles = [part for part in components(graph) if len(part) > 1]
        assert not circles, f'{house}: circular includes: {circles}'


def functions(text):
    """Yields name, number of lines, and whether it is a table, for each function in a file."""
    for found in FUNCTION.finditer(text):
        lines = found[0].count('\n') + 2  # with the return type, on the line before the name
        yield found[1], lines, len(TABLE.findall(found[2])) >= 3


def large(house):
    """Yields the files, and functions as "file: function", that have too many lines."""
    for path in sources(house):
        path = os.path.join(house, path)
        with open(os.path.join(ROOT, path), encoding='utf-8') as file:
            text = file.read()
        found = list(functions(text))
        lines = text.count('\n') - sum(lines for _, lines, table in found if table)
        machine = MACHINE.match(text)
        if lines > (MACHINE_FILE_LINES if machine else FILE_LINES):
            yield path
        yield from (f'{path}: {name}' for name, lines, table in found
                    if lines > (MACHINE_FUNCTION_LINES if machine else FUNCTION_LINES) and not table)


@test
def files_and_functions_are_small():
    found = {name for house in ('plugins', 'apps') for name in large(house)}
    assert not found, f'too many lines: {sorted(found)}'


@test
def the_architecture_page_lists_the_rooms():
    draw = subprocess.run([sys.executable, os.path.join(ROOT, 'docs', 'draw-rooms.py'), '--check'], check=False)
    assert draw.returncode == 0, 'docs/img/rooms.svg does not match the code: run ./dev docs'
    with open(os.path.join(ROOT, 'docs', 'architecture.md'), encoding='utf-8') as file:
        told = re.findall(r'^\| `([a-z0-9/]+)/` \|', file.read(), re.M)
    # The rooms of the proxy come first; each list is in order.
    assert told == ORDER[PROXY] + ORDER[CORE], told


def compile_alone(compiler, flags, headers):
    def wrong_of(header):
        done = subprocess.run(compiler + ['-fsyntax-only', '-Werror'] + flags + ['-include', header, os.devnull],
                              cwd=ROOT, capture_output=True, text=True)
        return f'{header}: {done.stderr.strip()}' if done.returncode else None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [problem for problem in pool.map(wrong_of, headers) if problem]
    assert not wrong, '\n'.join(wrong)


def library_flags():
    return shlex.split(subprocess.check_output(['pkg-config', '--cflags'] + MODULES, text=True))


@test
def core_s_headers_compile_alone_with_libc_only():
    headers = [os.path.join(CORE, path) for path in sources(CORE, '.h')]
    compile_alone(['cc', '-xc', '-std=gnu11', '-D_GNU_SOURCE'], ['-I' + CORE], headers)


@test(timeout=180)
def the_proxy_s_headers_compile_alone():
    headers = [os.path.join(PROXY, path) for path in sources(PROXY, '.h')]
    flags = ['-I' + PROXY, '-I' + CORE, '-Iplugins'] + library_flags()
    compile_alone(['cc', '-xc', '-std=gnu11', '-D_GNU_SOURCE'], flags, headers)


@test
def installed_headers_compile_alone_as_c_and_as_cxx():
    headers = [os.path.join('plugins', name) for name in INSTALLED]
    compile_alone(['cc', '-xc', '-std=c11'], library_flags(), headers)
    if not shutil.which('c++'):
        raise Skip('no C++ compiler found')
    compile_alone(['c++', '-xc++', '-std=c++17'], library_flags(), headers)


if __name__ == '__main__':
    run()
