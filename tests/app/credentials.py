# SPDX-License-Identifier: LGPL-2.1-or-later
"""Upstream credentials are used but never shown."""

import os
import tempfile

from proc import Rtsp
from proxy import CLIENT, Origin, Proxy, Read, matches
from tap import Skip, run, test

USER = 'user'
CANARY = 'S3cr3tCanary'

SILENT = {'GST_DEBUG': '', 'G_MESSAGES_DEBUG': ''}
VERBOSE = {'GST_DEBUG': '*:6', 'GST_DEBUG_NO_COLOR': '1', 'G_MESSAGES_DEBUG': 'all'}


def check_hidden(proxy, origin, env):
    with Rtsp(proxy.port) as rtsp:
        for method in 'OPTIONS', 'DESCRIBE':
            answer = rtsp.request(method, proxy.url())
            assert answer[0] == 200, answer
            assert CANARY not in str(answer), answer
    Read(proxy.url(), transport='udp', duration=1).result()
    # Provokes the messages about a lost upstream.
    origin.kill()
    proxy.wait_for_line(r' mount /cam down: .*next try in', 15)
    if env is SILENT:
        assert not [line for line in proxy.lines if f'{USER}:' in line], 'the user is shown'
    proxy.stop()
    shown = [line for line in proxy.lines if CANARY in line]
    if shown:
        proxy.lines = shown[:10]  # at most ten lines
    assert not shown, f'{len(shown)} lines with the password'


def with_settings(settings, auth='digest', env=SILENT, extra=None):
    with Origin(user=USER, password=CANARY, auth=auth) as origin:
        mount = {'upstream': origin.url, 'read-timeout': '2s', 'linger': '20s', **settings}
        with Proxy({'/cam': mount}, env={**env, **(extra or {})}) as proxy:
            check_hidden(proxy, origin, env)


@test
def a_password_in_the_configuration_stays_hidden():
    with_settings({'user': USER, 'password': CANARY})


@test
def a_password_stays_hidden_with_basic_authentication():
    with_settings({'user': USER, 'password': CANARY}, auth='basic')


@test
def a_password_stays_hidden_with_sha_256():
    if CLIENT == 'rtspsrc':
        raise Skip('rtspsrc knows no SHA-256')
    with_settings({'user': USER, 'password': CANARY}, auth='digest-sha256')


@test
def a_password_in_a_file_stays_hidden():
    with tempfile.NamedTemporaryFile('w', encoding='utf-8') as file:
        os.chmod(file.name, 0o600)
        file.write(CANARY + '\n')
        file.flush()
        with_settings({'user': USER, 'password-file': file.name})


@test
def a_password_in_the_environment_stays_hidden():
    with_settings({'user': USER, 'password-env': 'WEIR_TEST_PASSWORD'},
                  extra={'WEIR_TEST_PASSWORD': CANARY})


def with_url(auth, env):
    with Origin(user=USER, password=CANARY, auth=auth) as origin:
        url = origin.url.replace('rtsp://', f'rtsp://{USER}:{CANARY}@')
        with Proxy(['--mount', f'/cam={url}'], env=env) as proxy:
            # The warning at start does not show the password.
            assert matches(proxy, 'warning: ps shows the password in --mount'), proxy.output()
            Read(proxy.url(), duration=1).result()
            assert CANARY not in proxy.output()
            origin.kill()
            proxy.wait_for_line(r' mount /cam down: .*next try in', 15)
            assert CANARY not in proxy.output()
            assert USER + ':' not in proxy.output()


@test
def a_password_on_the_command_line_stays_hidden():
    for auth in 'digest', 'basic':
        with_url(auth, SILENT)


@test
def a_url_without_a_password_gets_no_warning():
    with Origin() as origin, Proxy(['--mount', f'/cam={origin.url}']) as proxy:
        Read(proxy.url(), duration=1).result()
        assert 'warning' not in proxy.output(), proxy.output()


@test
def a_wrong_password_stays_hidden():
    with Origin(user=USER, password='another', auth='digest') as origin:
        mount = {'upstream': origin.url, 'user': USER, 'password': CANARY}
        with Proxy({'/cam': mount}, env=SILENT) as proxy:
            assert proxy.ask('DESCRIBE')[0] == 503
            proxy.wait_for_line(r' mount /cam down: .*next try in', 5)
            assert CANARY not in proxy.output()


@test
def passwords_stay_hidden_at_the_highest_debug_level():
    with_settings({'user': USER, 'password': CANARY}, env=VERBOSE)


if __name__ == '__main__':
    run()
