# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients and servers of other projects over TLS, with each kind of credentials."""

import contextlib
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading

from control import CLIP_URI, Controlled
from proc import Proc
from proxy import QUICK, Origin, Read, program
from sanitized import stock_environment
from tap import run, test

REALM = 'rtsp-proxy'
USER, PASSWORD, TOKEN = 'viewer', 'Circle-of-life', 'T0ken-of-the-test'

# The arguments of an Origin.
UPSTREAM_CREDENTIALS = {
    'none': {},
    'basic': {'user': USER, 'password': PASSWORD, 'auth': 'basic'},
    'digest': {'user': USER, 'password': PASSWORD, 'auth': 'digest'},
    'digest-sha256': {'user': USER, 'password': PASSWORD, 'auth': 'digest-sha256'},
    'token': {'token': TOKEN},
}


def make_pem(folder):
    pem = os.path.join(folder, 'pair.pem')
    subprocess.run([program(), 'make-certificate', '--host', '127.0.0.1', pem], check=True,
                   capture_output=True)
    return pem


# ---- upstreams ----

# Ten handshakes at once may take longer than QUICK allows.
PATIENT = {'connect-timeout': '10s', 'read-timeout': '10s'}


@test(timeout=120)
def upstreams_over_tls_are_read_with_every_kind_of_credentials():
    with contextlib.ExitStack() as stack:
        pem = make_pem(stack.enter_context(tempfile.TemporaryDirectory()))
        mounts = {}
        for name, words in UPSTREAM_CREDENTIALS.items():
            origin = stack.enter_context(Origin(tls=pem, **words))
            assert origin.url.startswith('rtsps://'), origin.url
            url = origin.url + (f'?token={TOKEN}' if name == 'token' else '')
            keys = {key: words[key] for key in ('user', 'password') if key in words}
            # The server offers SRTP, which the relay of rtspsrc's packets does not know.
            for transport in 'tcp', 'auto':
                mounts[f'/{name}-{transport}'] = {
                    'upstream': url, 'transport': transport, 'tls-ca': pem, **keys, **QUICK, **PATIENT}
        proxy = stack.enter_context(Controlled(mounts))
        reads = {path: stack.enter_context(Read(proxy.url(path), duration=1)) for path in mounts}
        wrong = {path: result['totals'] for path, read in reads.items()
                 if (result := read.result(None))['totals']['ok'] != 1}
        assert not wrong, wrong


# ---- readers ----


def digest(algorithm):
    return algorithm(f'{USER}:{REALM}:{PASSWORD}'.encode()).hexdigest()


# The secrets of the user, by the kind of credentials that they make the client send.
SECRETS = {
    'none': None,
    'basic': {'hash': 'sha256:' + hashlib.sha256(PASSWORD.encode()).hexdigest()},
    'digest': {'digest': [f'MD5:{digest(hashlib.md5)}']},
    'digest-sha256': {'digest': [f'SHA-256:{digest(hashlib.sha256)}']},
}


def gortsplib(url):
    with Read(url, duration=1) as reader:
        return reader.result(None)['totals'].get('ok') == 1


def ffmpeg(url):
    with Proc('ffmpeg', '-v', 'error', '-i', url, '-frames:v', '2', '-f', 'null', '-') as child:
        return child.wait(30) == 0


# Over TCP, because srtpdec may crash over UDP (see secured.py).
def rtspsrc(url):
    with Proc('gst-launch-1.0', 'rtspsrc', f'location={url}', 'tls-validation-flags=0', 'retry=1',
              'protocols=tcp', '!', 'rtph264depay', '!', 'identity', 'eos-after=20', '!',
              'fakesink', env=stock_environment()) as child:
        child.wait(30)
        # Its PAUSE at the end may fail, because the program ends.
        return 'Got EOS' in child.output()


def readers(kind):
    """Returns the clients that know this kind of credentials."""
    known = [gortsplib]
    if kind != 'digest-sha256':
        known += [rtspsrc] + ([ffmpeg] if shutil.which('ffmpeg') else [])
    return known


def secure(pem, **top):
    return Controlled({'/cam': {'upstream': CLIP_URI, 'on-demand': False}},
                      tls={'listen': '127.0.0.1:0', 'certificate': pem}, **top)


def tls_port(proxy):
    return proxy.wait_for_line(r' serves rtsps://[\d.]+:(\d+)/')[1]


@test(timeout=240)
def readers_over_tls_log_in_with_every_kind_of_credentials():
    with tempfile.TemporaryDirectory() as folder:
        pem = make_pem(folder)
        for kind, secret in SECRETS.items():
            user = {'name': USER if secret else 'any', **(secret or {}),
                    'permissions': [{'action': 'read'}, {'action': 'api'}]}
            with secure(pem, users=[user]) as proxy:
                good = f'{USER}:{PASSWORD}@' if secret else ''
                for client in readers(kind):
                    assert client(f'rtsps://{good}127.0.0.1:{tls_port(proxy)}/cam'), (kind, client)
                    if secret:
                        bad = f'rtsps://{USER}:x@127.0.0.1:{tls_port(proxy)}/cam'
                        assert not client(bad), (kind, client)


@test(timeout=120)
def readers_over_tls_show_a_token():
    class Judge(http.server.BaseHTTPRequestHandler):
        def do_POST(self):  # pylint: disable=invalid-name
            asked = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
            protocols.add(asked['protocol'])
            self.send_response(200 if asked.get('token') == TOKEN else 401)
            self.send_header('Content-Length', '0')
            self.end_headers()

        def log_message(self, *_):
            pass

    protocols = set()
    judge = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Judge)
    threading.Thread(target=judge.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        check = {'url': f'http://127.0.0.1:{judge.server_port}/', 'exclude': ['api', 'metrics']}
        with secure(make_pem(folder), **{'external-auth': check}) as proxy:
            url = f'rtsps://127.0.0.1:{tls_port(proxy)}/cam?token='
            for client in readers('token'):
                assert client(url + TOKEN) and not client(url + 'x'), client
            assert TOKEN not in proxy.output()
    judge.shutdown()
    assert protocols == {'rtsp'}, protocols


if __name__ == '__main__':
    run()
