// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The elements that a launch line needs.

#include <glib.h>

// The first element of a launch line that does not exist; NULL if all do. Nothing is made.
gchar *stage_elements_find_missing (const gchar *launch);

// "there is no element x264enc; Debian has it in gstreamer1.0-plugins-ugly".
gchar *stage_elements_explain_missing (const gchar *element);

// NULL, or what is wrong: an element is missing, a property is unknown, two don't fit. Makes the
// elements and lets them go.
gchar *stage_elements_check (const gchar *launch);
