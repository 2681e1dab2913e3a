# SPDX-License-Identifier: LGPL-2.1-or-later
"""Keys, key sets and tokens signed by RS256, for tests of JSON Web Tokens."""

import base64
import hashlib
import json
import math
import random
import time

# DER of the DigestInfo of SHA-256, without the digest (RFC 8017, 9.2).
SHA256_INFO = bytes.fromhex('3031300d060960864801650304020105000420')
# The product of all primes below 2000.
SMALL = math.prod(n for n in range(2, 2000) if all(n % i for i in range(2, int(n ** 0.5) + 1)))


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def is_prime(number, draw):
    """Miller and Rabin's test, for numbers above 2000."""
    if math.gcd(number, SMALL) != 1:
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(8):
        power = pow(draw.randrange(2, number - 1), odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


class Key:
    """An RSA key of 2048 bits, the same for each `seed`."""

    def __init__(self, seed, kid=None):
        draw = random.Random(seed)
        self.kid = kid or f'key-{seed}'
        p, q = (self._prime(draw) for _ in range(2))
        self.modulus = p * q
        self._secret = pow(65537, -1, (p - 1) * (q - 1))

    @staticmethod
    def _prime(draw):
        while True:
            number = draw.getrandbits(1024) | 3 << 1022 | 1
            if number % 65537 != 1 and is_prime(number, draw):
                return number

    def jwk(self):
        return {'kty': 'RSA', 'kid': self.kid, 'alg': 'RS256', 'use': 'sig',
                'n': encode(self.modulus.to_bytes(256, 'big')), 'e': 'AQAB'}

    def sign(self, claims, header=None):
        """Returns a token."""
        header = {'alg': 'RS256', 'typ': 'JWT', 'kid': self.kid, **(header or {})}
        text = '.'.join(encode(json.dumps(part).encode()) for part in (header, claims))
        digest = SHA256_INFO + hashlib.sha256(text.encode()).digest()
        padded = b'\x00\x01' + b'\xff' * (253 - len(digest)) + b'\x00' + digest
        signature = pow(int.from_bytes(padded, 'big'), self._secret, self.modulus)
        return f'{text}.{encode(signature.to_bytes(256, "big"))}'

    def token(self, *permissions, claim='permissions', lasts=600, **claims):
        """Returns a token with these permissions, each (action, path)."""
        now = int(time.time())
        listed = [{'action': action, 'path': path} for action, path in permissions]
        return self.sign({'iat': now, 'exp': now + lasts, 'sub': 'viewer', claim: listed, **claims})


def key_set(*keys):
    return json.dumps({'keys': [key.jwk() for key in keys]})
