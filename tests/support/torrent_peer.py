# SPDX-License-Identifier: LGPL-2.1-or-later
"""A peer of libtorrent's own, for a Python that has its module.

    torrent_peer.py TORRENT FOLDER [ADDRESS:PORT]...

Takes part in the swarm with the files of FOLDER, which may be missing, and asks the trackers and
these peers. Prints "port N", then "up BYTES down BYTES of BYTES" at each change.
"""

import sys
import time

import libtorrent

session = libtorrent.session({
    'listen_interfaces': '127.0.0.1:0', 'enable_dht': False, 'enable_lsd': False,
    'enable_upnp': False, 'enable_natpmp': False, 'allow_multiple_connections_per_ip': True,
    'announce_to_all_trackers': True, 'alert_mask': 0})
while not session.listen_port():
    time.sleep(0.01)
parameters = libtorrent.add_torrent_params()
parameters.ti = libtorrent.torrent_info(sys.argv[1])
parameters.url_seeds = []
parameters.save_path = sys.argv[2]
torrent = session.add_torrent(parameters)
for url in torrent.url_seeds():
    torrent.remove_url_seed(url)
while torrent.status().state in (torrent.status().checking_files,
                                 torrent.status().checking_resume_data):
    time.sleep(0.01)
for peer in sys.argv[3:]:
    address, port = peer.rsplit(':', 1)
    torrent.connect_peer((address, int(port)))
print('port', session.listen_port(), flush=True)
before = None
while True:
    status = torrent.status()
    line = f'up {status.total_payload_upload} down {status.total_done} of {status.total_wanted}'
    if line != before:
        print(line, flush=True)
    before = line
    time.sleep(0.05)
