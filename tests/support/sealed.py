# SPDX-License-Identifier: LGPL-2.1-or-later
"""SRTP and MIKEY for tests, by libsrtp."""

import base64
import ctypes
import os
import struct
import time

from tap import Skip

KEY_BYTES = 30
ANY_INBOUND, ANY_OUTBOUND = 2, 3


class _Crypto(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in (
        'cipher', 'cipher_key_len', 'auth', 'auth_key_len', 'auth_tag_len', 'services')]


class _Policy(ctypes.Structure):
    _fields_ = [('ssrc_type', ctypes.c_int), ('ssrc', ctypes.c_uint), ('rtp', _Crypto),
                ('rtcp', _Crypto), ('key', ctypes.c_char_p), ('keys', ctypes.c_void_p),
                ('n_keys', ctypes.c_ulong), ('ekt', ctypes.c_void_p),
                ('window', ctypes.c_ulong), ('repeat', ctypes.c_int),
                ('extensions', ctypes.c_void_p), ('n_extensions', ctypes.c_int),
                ('next', ctypes.c_void_p)]


_LIBRARY = []


def _library():
    if not _LIBRARY:
        try:
            library = ctypes.CDLL('libsrtp2.so.1')
        except OSError as error:
            raise Skip('libsrtp2 is not installed') from error
        library.srtp_init()
        _LIBRARY.append(library)
    return _LIBRARY[0]


class Srtp:
    """One direction of a session with a key of 30 bytes."""

    def __init__(self, key, direction):
        self._lib, self._session = _library(), ctypes.c_void_p()
        policy = _Policy(ssrc_type=direction, key=key, window=1024)
        self._lib.srtp_crypto_policy_set_rtp_default(ctypes.byref(policy.rtp))
        self._lib.srtp_crypto_policy_set_rtp_default(ctypes.byref(policy.rtcp))
        assert self._lib.srtp_create(ctypes.byref(self._session), ctypes.byref(policy)) == 0

    def _call(self, function, packet):
        buffer = ctypes.create_string_buffer(bytes(packet), len(packet) + 64)
        size = ctypes.c_int(len(packet))
        status = function(self._session, buffer, ctypes.byref(size))
        return buffer.raw[:size.value] if status == 0 else None

    def rtp(self, packet):
        """Returns the RTP packet in an SRTP packet, or None if it is not authentic."""
        return self._call(self._lib.srtp_unprotect, packet)

    def rtcp(self, packet):
        return self._call(self._lib.srtp_unprotect_rtcp, packet)

    def seal_rtcp(self, packet):
        return self._call(self._lib.srtp_protect_rtcp, packet)


# ---- MIKEY (RFC 3830) ----

AES_CM = ((0, b'\x01'), (1, b'\x10'), (2, b'\x01'), (3, b'\x0a'), (7, b'\x01'), (8, b'\x01'),
          (10, b'\x01'))


def policy(parameters=AES_CM):
    """Returns the body of a payload SP."""
    body = b''.join(struct.pack('>BB', kind, len(value)) + value for kind, value in parameters)
    return struct.pack('>BBH', 0, 0, len(body)) + body


def kemac(key, kind=2, cipher=0, mac=0, salt=None):
    """Returns the body of a payload KEMAC with one key. Kind 3 has a salt of its own."""
    data = struct.pack('>BBH', 0, kind << 4, len(key)) + key
    if salt is not None:
        data += struct.pack('>H', len(salt)) + salt
    return struct.pack('>BH', cipher, len(data)) + data + bytes([mac])


def mikey(key, ssrc=7, payloads=None):
    """Returns a message; `payloads` are pairs of a type and a body."""
    if payloads is None:
        payloads = [(5, b'\0' + struct.pack('>II', int(time.time()) + 2208988800, 0)),
                    (11, b'\x10' + os.urandom(16)), (10, policy()), (1, kemac(key))]
    kinds = [kind for kind, _ in payloads] + [0]
    head = struct.pack('>BBBBIBB', 1, 0, kinds[0], 0, 0x12345678, 1, 0)
    head += struct.pack('>BII', 0, ssrc, 0)
    return head + b''.join(bytes([kinds[i + 1]]) + body for i, (_, body) in enumerate(payloads))


def key_header(message, url):
    data = base64.b64encode(message).decode()
    return f'prot=mikey;uri="{url}";data="{data}"'


def read_key(text):
    """Returns the key, the SSRC and the rollover counter in a message in base64."""
    data = base64.b64decode(text, validate=True)
    assert data[0] == 1 and data[8] == 1 and data[9] == 0, data[:10]
    ssrc, roc = struct.unpack_from('>II', data, 11)
    at, kind = 19, data[2]
    while kind != 1:
        size = {5: lambda: 10, 11: lambda: 2 + data[at + 1],
                10: lambda: 5 + struct.unpack_from('>H', data, at + 3)[0]}[kind]()
        at, kind = at + size, data[at]
    assert data[at + 1] == 0, 'the key is encrypted'
    size = struct.unpack_from('>H', data, at + 6)[0]
    assert size == KEY_BYTES, size
    return data[at + 8:at + 8 + size], ssrc, roc
