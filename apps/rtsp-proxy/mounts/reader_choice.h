// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What of a URL's query is for the one reader who asks, and chooses no presentation.

#include <gst/rtsp/rtsp.h>

#include "config/mount_config.h"

typedef struct {
  WeirLayerSet layers; // all, where it says nothing
  gint64 delay_ns;     // -1: none
} ReaderChoice;

// Takes it out of a query, which may be NULL, as is `*rest` if nothing is left. FALSE and an error
// for what is wrong, or what the mount does not offer.
gboolean reader_choice_cut (const MountConfig *config, const gchar *query, gchar **rest,
    ReaderChoice *choice, GError **error);

// The delay of a URL, or -1.
gint64 reader_choice_get_delay (const GstRTSPUrl *url);
