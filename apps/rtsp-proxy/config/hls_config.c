// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/hls_config.h"

#include "config/proxy_effect.h"
#include "text/config_error.h"

#define AT(field) G_STRUCT_OFFSET (HlsConfig, field)
#define SEGMENT_MAX_MS 60000
#define PART_MAX_MS 5000

static const SchemaKey keys[] = {
  { "segment", SCHEMA_DURATION, AT (segment_ms), "1s", .min = 200, .effect = PROXY_EFFECT_RESTART,
      .help = "shortest segment, up to 60s; a segment ends before the next keyframe after that" },
  { "part", SCHEMA_DURATION, AT (part_ms), "200ms", .min = 50, .effect = PROXY_EFFECT_RESTART,
      .help = "length of a part of a segment, up to 5s and no longer than a segment, rounded to "
              "whole frames; low-latency players are about four parts behind the stream" },
  { "segments", SCHEMA_NUMBER, AT (n_segments), "7", 3, 100, .effect = PROXY_EFFECT_RESTART,
      .help = "segments in a playlist; these and three more are in memory while a mount has HLS "
              "readers" },
  { NULL },
};

#undef AT

static gboolean
check_lengths (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const HlsConfig *self = object;

  if (self->segment_ms > SEGMENT_MAX_MS || self->part_ms > PART_MAX_MS)
    return schema_fail (reader, node, key, error, "a segment is 60s long at most, and a part 5s");
  return self->part_ms <= self->segment_ms
         || schema_fail (reader, node, key, error, "a part cannot be longer than a segment");
}

const SchemaObject hls_config_object = {
  .keys = keys, .expected = "expected {KEY: VALUE}, such as {part: 300ms}", .check = check_lengths
};

gboolean
hls_config_check (YamlReader *reader, const YamlNode *root, gboolean has_http, GError **error)
{
  YamlNode *value = yaml_get (reader, root, "hls");

  return !value || has_http
         || yaml_fail (reader, value, "hls", CONFIG_ERROR_VALUE, error,
             "HLS is served over HTTP; set http: {listen: ADDR:PORT}");
}
