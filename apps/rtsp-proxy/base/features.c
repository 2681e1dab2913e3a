// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "base/features.h"

#define ROW(option, is_in, what)                                                                   \
  { option, is_in, "this build has no " what "; build it with -D" option "=enabled" }

static const struct {
  const gchar *name; // of the option
  gboolean is_in;
  const gchar *lack;
} features[] = {
  [FEATURE_STORE] = ROW ("store", WITH_STORE, "block stores and no titles of HTTP servers"),
  [FEATURE_BROADCAST] = ROW ("broadcast", WITH_BROADCAST, "broadcasts"),
  [FEATURE_SWARM] = ROW ("swarm", WITH_SWARM, "swarms"),
  [FEATURE_KERNEL] = ROW ("kernel", WITH_KERNEL, "kernel path"),
  [FEATURE_OPENH264] = ROW ("openh264", WITH_OPENH264, "layers by OpenH264"),
  [FEATURE_SRT] = ROW ("srt", WITH_SRT, "SRT listener"),
  [FEATURE_WEBRTC] = ROW ("webrtc", WITH_WEBRTC, "WebRTC"),
};

const gchar *
feature_get_lack (Feature feature)
{
  return feature == FEATURE_ALWAYS || features[feature].is_in ? NULL : features[feature].lack;
}

static void
append_names (GString *text, const gchar *head, gboolean in)
{
  const gchar *before = head;

  for (guint i = FEATURE_ALWAYS + 1; i < G_N_ELEMENTS (features); i++) {
    if (features[i].is_in != in)
      continue;
    if (before == head && text->len > 0)
      g_string_append (text, "; ");
    g_string_append_printf (text, "%s%s", before, features[i].name);
    before = ", ";
  }
}

gchar *
features_dup_text (void)
{
  GString *text = g_string_new (NULL);

  append_names (text, "with ", TRUE);
  append_names (text, "without ", FALSE);
  return g_string_free (text, FALSE);
}
