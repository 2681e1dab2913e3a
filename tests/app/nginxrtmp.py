# SPDX-License-Identifier: LGPL-2.1-or-later
"""nginx with its RTMP module as an RTMP server."""

import os
import shutil

from proc import Proc
from proxy import listens_tcp, wait_until
from tap import Skip

MODULE = '/usr/lib/nginx/modules/ngx_rtmp_module.so'
CONFIG = '''
load_module {module};
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
rtmp {{ server {{ listen 127.0.0.1:{port}; application live {{ live on; {words} }} }} }}
'''


class RtmpServer(Proc):
    """The application `live`, with these directives."""

    def __init__(self, port, folder, words):
        if not os.path.exists(MODULE):
            raise Skip("nginx's RTMP module is missing")
        path = os.path.join(folder, 'nginx.conf')
        with open(path, 'w', encoding='ascii') as file:
            file.write(CONFIG.format(module=MODULE, folder=folder, port=port, words=words))
        super().__init__(shutil.which('nginx') or '/usr/sbin/nginx', '-p', folder, '-c', path, '-e',
                         os.path.join(folder, 'first.log'))
        wait_until(lambda: listens_tcp(port), 10, 'nginx listens')
