// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/hooks_config.h"

#include <unistd.h>

#include "config/proxy_effect.h"
#include "config/web_url.h"
#include "text/config_error.h"

#define HOOK(key, kind, when)                                                                      \
  { key, SCHEMA_LIST, G_STRUCT_OFFSET (HooksConfig, run[kind]), .form = "[PROGRAM or URL, ...]",   \
    .effect = PROXY_EFFECT_RESTART, .help = when }

static const SchemaKey keys[] = {
  HOOK ("on-up", EVENT_UP,
      "what runs when a mount has media: a program by its whole path with its arguments, without a "
      "shell, or one http or https URL for a POST"),
  HOOK ("on-down", EVENT_DOWN, "the same, when a mount has no media any more"),
  HOOK ("on-reader", EVENT_READER, "when a reader plays"),
  HOOK ("on-reader-left", EVENT_READER_LEFT, "when a reader has left"),
  HOOK ("on-publish", EVENT_PUBLISH, "when a client publishes"),
  HOOK ("on-publish-end", EVENT_PUBLISH_END, "when a publisher has ended"),
  HOOK ("on-record", EVENT_RECORD, "when a file of a recording begins"),
  HOOK ("on-record-done", EVENT_RECORD_DONE, "when a file of a recording is complete"),
  { "at-once", SCHEMA_NUMBER, G_STRUCT_OFFSET (HooksConfig, at_once), "4", 1, 64,
      .effect = PROXY_EFFECT_RESTART, .help = "how many run at the same time; further ones wait" },
  { "timeout", SCHEMA_DURATION, G_STRUCT_OFFSET (HooksConfig, timeout_ms), "1m", 100,
      .effect = PROXY_EFFECT_RESTART,
      .help =
          "a program that runs longer is killed, with its children; a URL that has not answered "
          "has failed" },
  { NULL },
};

#undef HOOK

// Returns what is wrong with a program or a URL, or NULL. (transfer full)
static gchar *
check_run (GStrv run, gint *code)
{
  *code = CONFIG_ERROR_VALUE;
  if (web_url_is (run[0]))
    return run[1] ? g_strdup ("a URL stands alone") : web_url_check (run[0]);
  if (g_path_is_absolute (run[0]) && access (run[0], X_OK) == 0
      && !g_file_test (run[0], G_FILE_TEST_IS_DIR))
    return NULL;
  *code = g_path_is_absolute (run[0]) ? CONFIG_ERROR_ABSENT : CONFIG_ERROR_VALUE;
  return g_strdup_printf (
      "expected a URL, or the path of a program from / on and its arguments; %s is not one",
      run[0]);
}

static gboolean
check_hooks (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  HooksConfig *self = object;
  gboolean ok = TRUE;

  for (guint i = 0; i < HOOKS_KINDS; i++) {
    gint code;
    gchar *wrong = self->run[i] && self->run[i][0] ? check_run (self->run[i], &code) : NULL;

    if (wrong)
      ok = yaml_fail_take (
          reader, yaml_get (reader, node, keys[i].name), keys[i].name, code, error, wrong);
  }
  return ok;
}

gboolean
hooks_config_is_empty (const HooksConfig *self)
{
  for (guint i = 0; i < HOOKS_KINDS; i++) {
    if (self->run[i] && self->run[i][0])
      return FALSE;
  }
  return TRUE;
}

const SchemaObject hooks_config_object = {
  .keys = keys, .expected = "expected {on-up: [PROGRAM], ...}", .check = check_hooks
};
