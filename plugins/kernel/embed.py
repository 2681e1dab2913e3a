#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes a file as a C array: embed.py FILE NAME OUTPUT."""
import sys

with open(sys.argv[1], 'rb') as f:
    data = f.read()
lines = [', '.join(f'0x{byte:02x}' for byte in data[i:i + 16]) for i in range(0, len(data), 16)]
with open(sys.argv[3], 'w') as f:
    f.write(f'static const unsigned char {sys.argv[2]}[] __attribute__ ((aligned (16))) = {{\n')
    f.write(',\n'.join('  ' + line for line in lines))
    f.write('\n};\n')
