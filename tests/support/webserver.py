# SPDX-License-Identifier: LGPL-2.1-or-later
"""An HTTP server of a test, in threads of this process."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class WebServer:
    """`answer(path, body)` returns the status, the body (bytes or text) and, if it likes, headers.
    It may wait for `.ends` in order not to answer. `.requests` holds (path, body) in order; a JSON
    body is parsed. `context` is an ssl.SSLContext, or None."""

    def __init__(self, answer, context=None):
        self.answer = answer
        self.requests = []
        self.ends = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):
                body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
                if self.headers.get('Content-Type') == 'application/json':
                    body = json.loads(body)
                server.requests.append((self.path, body))
                status, text, *headers = server.answer(self.path, body)
                data = text if isinstance(text, bytes) else text.encode()
                self.send_response(status)
                for name, value in (headers[0] if headers else {}).items():
                    self.send_header(name, value)
                self.send_header('Content-Length', str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass  # a client that closes its connection

        self._server = Server(('127.0.0.1', 0), Handler)
        if context:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self.base = f'{"https" if context else "http"}://127.0.0.1:{self.port}'
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ends.set()
        self._server.shutdown()
        self._server.server_close()

    def hang(self, *_):
        """An answer that does not come before the end."""
        self.ends.wait()
        return 200, ''
