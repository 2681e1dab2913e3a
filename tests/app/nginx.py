# SPDX-License-Identifier: LGPL-2.1-or-later
"""nginx: as an origin of titles, and with TLS in front of the proxy."""

import os
import re
import shutil
import socket
import tempfile
import time

from proc import Proc, free_port
from tap import Skip


class Server(Proc):
    """nginx with these lines of a block `http`, in a new folder; `port` is where it listens."""

    def __init__(self, folder, port, lines):
        path = shutil.which('nginx', path=os.environ.get('PATH', '') + ':/usr/sbin')
        if not path:
            raise Skip('nginx is not installed')
        self.port = port
        temporary = '\n'.join(f'{name}_temp_path {folder}/{name};'
                              for name in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        config = os.path.join(folder, 'nginx.conf')
        with open(config, 'w', encoding='utf-8') as file:
            file.write(f'daemon off; master_process off; pid {folder}/pid;\n'
                       f'error_log stderr; events {{ }}\nhttp {{ {temporary}\n{lines}\n}}\n')
        super().__init__(path, '-e', 'stderr', '-c', config)
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(('127.0.0.1', self.port)) == 0:
                    break
            time.sleep(0.05)


class Nginx(Server):
    """nginx with the files that `fill` puts into a new folder."""

    def __init__(self, fill):
        self.folder = tempfile.TemporaryDirectory()
        self.files = os.path.join(self.folder.name, 'files')
        self.log = os.path.join(self.folder.name, 'access.log')
        os.chmod(self.folder.name, 0o755)
        fill(self.files)
        port = free_port()
        super().__init__(self.folder.name, port, f'''access_log {self.log};
                server {{ listen 127.0.0.1:{port}; root {self.files};
                location /slow/ {{ alias {self.files}/; limit_rate 700k; }}
                location /moved/ {{ return 302 http://127.0.0.1:{port}/a.mp4; }} }}''')

    @property
    def url(self):
        return f'http://127.0.0.1:{self.port}/'

    def asked(self):
        """Returns the number of answers with more than the first byte of a file."""
        with open(self.log, encoding='utf-8') as file:
            return len(re.findall(r'" 206 (?!1 )\d+ ', file.read()))
