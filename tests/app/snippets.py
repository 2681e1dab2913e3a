# SPDX-License-Identifier: LGPL-2.1-or-later
"""The blocks of code in README.md and the pages of docs/."""

import os
import re

ROOT = os.path.realpath(os.path.join(os.environ['WEIR_DATA'], '../..'))


def blocks(page, language):
    """Returns the blocks of a page that are marked with a language, in their order."""
    with open(os.path.join(ROOT, page), encoding='utf-8') as file:
        return re.findall(rf'^```{language}\n(.*?)^```', file.read(), re.S | re.M)
