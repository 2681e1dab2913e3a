# SPDX-License-Identifier: LGPL-2.1-or-later
"""hooks: programs and URLs that are told what happens to streams."""

import os
import subprocess
import tempfile

from control import Controlled
from proxy import QUICK, Origin, Read, said, wait_until
from tap import SLOWER, run, test
from webserver import WebServer


def script(folder, text):
    path = os.path.join(folder, f'hook{len(os.listdir(folder))}')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\n' + text)
    os.chmod(path, 0o755)
    return path


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding='utf-8') as file:
        return file.read().splitlines()


def processes(mark):
    """Returns the numbers of the processes whose arguments have this text."""
    done = subprocess.run(['pgrep', '-f', mark], capture_output=True, text=True, check=False)
    return done.stdout.split()


@test
def programs_and_urls_get_the_values_of_the_event():
    with tempfile.TemporaryDirectory() as folder, WebServer(lambda *_: (200, '')) as server, Origin() as origin:
        out = os.path.join(folder, 'out')
        tell = script(folder, f'echo "$1 $WEIR_EVENT $WEIR_MOUNT $WEIR_PEER" >>{out}\n')
        with Controlled({'/cam': {'upstream': origin.url, **QUICK}}, hooks={
                'on-up': [tell, 'a b;c'], 'on-reader': [server.base + '/told?x=1'], 'on-reader-left': [tell, '$HOME']}) as proxy:
            with Read(proxy.url(), duration=1) as read:
                read.result()
            wait_until(lambda: len(lines(out)) == 2 and server.requests, 10, 'three hooks')
            assert lines(out)[0] == 'a b;c up /cam ', lines(out)
            assert lines(out)[1].startswith('$HOME reader-left /cam 127.0.0.1:'), lines(out)
            path, told = server.requests[0]
            assert path == '/told?x=1' and told['event'] == 'reader' and told['mount'] == '/cam', server.requests
            assert told['number'] > 0 and told['peer'].startswith('127.0.0.1:'), told


@test
def hooks_that_hang_fork_or_flood_harm_nobody():
    with tempfile.TemporaryDirectory() as folder, Origin() as origin:
        mark = f'1000{os.getpid()}'
        hang = script(folder, f'sleep {mark} &\nsleep {mark} &\nsleep {mark}\n')
        flood = script(folder, 'exec yes flooding\n')
        fork = script(folder, f'sleep {mark} &\nexit 3\n')
        with Controlled({'/cam': {'upstream': origin.url, **QUICK}}, hooks={
                'on-up': [hang], 'on-reader': [flood], 'on-reader-left': [fork], 'at-once': 2, 'timeout': '2s'}) as proxy:
            with Read(proxy.url(), duration=3, readers=5) as read:
                assert len(processes(f'^sleep {mark}')) <= 3
                assert read.result()['totals']['ok'] == 5
            proxy.wait_for_line(r' the hook on-up failed: it ran too long \(hooks\.timeout\)', 20)
            proxy.wait_for_line(r' the hook on-reader-left failed: exit status 3', 30)
            wait_until(lambda: not processes(f'^sleep {mark}'), 10, 'all children are gone')
            flooding = [line for line in proxy.lines if ': flooding' in line]
            assert flooding and ' hook ' in flooding[0] and len(flooding) < 3000, len(flooding)
            with Read(proxy.url(), duration=1):
                proxy.wait_for_line(r' reader \S+ in', start=len(proxy.lines))
                proxy.signal(15)
                assert proxy.wait(10 * SLOWER) == 0
        assert not processes(f'^sleep {mark}')


@test
def more_events_than_may_wait_are_left_out_and_a_program_that_is_gone_is_named():
    with tempfile.TemporaryDirectory() as folder, Origin() as origin:
        tell = script(folder, 'exit 0\n')
        with Controlled({'/cam': {'upstream': origin.url, **QUICK}}, hooks={'on-reader': [tell]}) as proxy:
            os.unlink(tell)
            with Read(proxy.url(), duration=1, readers=50) as read:
                assert read.result()['totals']['ok'] == 50
            proxy.wait_for_line(r' the hook on-reader failed: No such file or directory', 10)


@test
def wrong_hooks_are_named():
    mount = 'mounts: {/cam: {upstream: "rtsp://192.0.2.7/x"}}\n'
    for hooks, wrong in (
            ('{on-up: true}', 'on-up: expected a list'), ('{on-up: [true]}', 'expected a URL, or the path of a program from /'),
            ('{on-up: [/does/not/exist]}', '/does/not/exist is not one'), ('{on-up: [/tmp]}', '/tmp is not one'),
            ('{on-up: ["http://h/", x]}', 'a URL stands alone'), ('{on-upp: [/bin/true]}', 'the nearest known one is "on-up"'),
            ('{at-once: 0}', 'at-once'), ('[]', 'expected {on-up: [PROGRAM], ...}')):
        text, status = said(f'hooks: {hooks}\n{mount}', '--check-config')
        assert status == 2 and wrong in text, (hooks, text)
    text, status = said(f'hooks: {{on-up: [/bin/true, -x], on-down: ["https://h/"]}}\n{mount}', '--check-config')
    assert status == 0, text


if __name__ == '__main__':
    run()
