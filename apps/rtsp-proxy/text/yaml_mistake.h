// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Says what a person did where a text is not YAML: libyaml says what its parser expected.

#include <glib.h>
#include <yaml.h>

// Returns the mistake at which `parser` stopped in the text that it got, and sets `*mark` to its
// place. (transfer full)
gchar *yaml_mistake_explain (
    const yaml_parser_t *parser, const gchar *text, gsize len, yaml_mark_t *mark);
