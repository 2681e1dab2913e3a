// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The features that a build may leave out, by the options of meson_options.txt. For each, config.h
// has WITH_NAME, which is 1 or 0. Code that calls a feature does so behind `if (WITH_NAME)`: then
// the compiler reads it in every build, and the linker needs the feature only where it is in.

#include <glib.h>

typedef enum {
  FEATURE_ALWAYS, // of every build
  FEATURE_STORE,
  FEATURE_BROADCAST,
  FEATURE_SWARM,
  FEATURE_KERNEL,
  FEATURE_OPENH264,
  FEATURE_SRT,
  FEATURE_WEBRTC,
} Feature;

// Returns NULL if the feature is in, else what a user reads who asks for it: that this build does
// not have it, and how to get it.
const gchar *feature_get_lack (Feature feature);

// Returns "with store, srt; without broadcast, swarm, kernel, openh264". (transfer full)
gchar *features_dup_text (void);
