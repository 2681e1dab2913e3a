# SPDX-License-Identifier: LGPL-2.1-or-later
"""Certificates that `rtsp-proxy make-certificate` does not make."""

import os
import subprocess

CA = """[ca]
default_ca = own
[own]
database = {folder}/index
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = names
[names]
commonName = supplied
"""


def expired_pair(folder):
    """Makes a certificate for 127.0.0.1 that expired in 2020, and its key, in one file. Returns its path."""
    def path(name):
        return os.path.join(folder, name)

    for name, text in ('settings', CA.format(folder=folder)), ('index', ''), ('serial', '01\n'):
        with open(path(name), 'w', encoding='ascii') as file:
            file.write(text)
    # Later versions of `openssl x509` make no certificate that ends before now.
    for words in (['req', '-new', '-newkey', 'rsa:2048', '-nodes', '-keyout', path('key'), '-subj',
                   '/CN=127.0.0.1', '-out', path('request')],
                  ['ca', '-selfsign', '-batch', '-notext', '-config', path('settings'), '-keyfile', path('key'),
                   '-in', path('request'), '-out', path('old.pem'),
                   '-startdate', '20200101000000Z', '-enddate', '20200201000000Z']):
        subprocess.run(['openssl', *words], check=True, capture_output=True)
    with open(path('key'), encoding='ascii') as source, open(path('old.pem'), 'a', encoding='ascii') as file:
        file.write(source.read())
    return path('old.pem')
