// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <glib.h>

// When a changed key of the whole file takes effect.
typedef enum {
  PROXY_EFFECT_RELOAD = 1, // at a reload
  PROXY_EFFECT_RESTART,    // at the next start
} ProxyEffect;

extern const gchar *const proxy_effect_words[]; // by ProxyEffect
