// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What an RTSP URL names: a path, a query, and maybe a track. "/cam?size=640x360/stream=0" is what
// players make of a URL with a query that has no Content-Base of its own.

#include <gst/rtsp/rtsp.h>

typedef struct {
  gchar *path;
  gchar *query; // NULL: there is none
  gchar *track; // "/stream=0"; "" without one
} Address;

void address_parse (Address *self, const GstRTSPUrl *url);
void address_clear (Address *self);

// Takes a parameter out of a query (NULL: there is none): how often it is there, its first value
// (NULL: it is not), and what is left (NULL: nothing), both to be freed.
guint address_cut_param (const gchar *query, const gchar *param, gchar **value, gchar **rest);
