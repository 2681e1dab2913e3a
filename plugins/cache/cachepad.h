// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "cachereader.h"

G_BEGIN_DECLS

#define WEIR_TYPE_CACHE_PAD (weir_cache_pad_get_type ())
G_DECLARE_FINAL_TYPE (WeirCachePad, weir_cache_pad, WEIR, CACHE_PAD, GstPad)

// A source pad of intervalcache. The element opens and closes the pad's reader.
WeirCachePad *weir_cache_pad_new (GstPadTemplate *template, const gchar *name, GstElement *cache);
CacheReader *weir_cache_pad_reader (WeirCachePad *pad);

G_END_DECLS
