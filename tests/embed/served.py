# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the server of served.c."""

import os

from proc import Proc, Rtsp


class Served(Proc):
    """A running tests/embed/served.c."""

    def __init__(self, timeout=60, pem=None, debug=None, address='127.0.0.1'):
        environment = {**os.environ, **({'GST_DEBUG': debug} if debug else {})}
        words = [address, timeout] + ([pem] if pem else [])
        super().__init__(os.environ['WEIR_SERVED'], *words, env=environment)
        self.port = int(self.wait_for_line(r'^READY (\d+)')[1])

    def url(self, path='/test'):
        return f'rtsp://127.0.0.1:{self.port}{path}'

    def check_alive(self):
        assert self.running(), 'the server is gone'
        with Rtsp(self.port) as rtsp:
            assert rtsp.request('OPTIONS', self.url())[0] == 200

    def n_descriptors(self):
        return len(os.listdir(f'/proc/{self.pid}/fd'))
