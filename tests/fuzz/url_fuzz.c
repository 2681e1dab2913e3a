// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of URLs, ranges and layer sets of clients, and of upstream URIs. The input is
// one text.

#include "app.h"
#include "base/log.h"
#include "config/mount_read.h"
#include "ingest/description.h"
#include "sources/kinds.h"
#include "text/demand.h"
#include "text/layer_choice.h"

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  init_gst ();
  only_critical ();
  return 0;
}

static void
read_demand (const gchar *text)
{
  Demand *demand = demand_new (text);

  require (demand->path && demand->track);
  require (strstr (text, "token=") || g_str_equal (demand->url, text));
  require (demand->delay_ns >= -1 && demand->delay_ns <= G_GINT64_CONSTANT (86400000000000));
  require (!demand->choices || demand->stages);
  demand_free (demand);
}

static void
read_range (const gchar *text)
{
  gint64 at = G_MININT64;
  DemandStart start = demand_read_range (text, &at);

  require (start <= DEMAND_UNREADABLE);
  require ((start != DEMAND_NPT && start != DEMAND_CLOCK) || at != G_MININT64);
}

// A text that is read must be written as one that means the same.
static void
read_layers (const gchar *text)
{
  WeirLayerSet set, again;
  gchar *written;

  if (!layer_choice_parse (text, &set))
    return;
  written = layer_choice_dup_text (set);
  require (layer_choice_parse (written, &again) && !memcmp (&set, &again, sizeof set));
  g_free (written);
}

static void
read_upstream (const gchar *text)
{
  PullConfig config = { 0 };
  RelayDescription description;
  GError *error = NULL;
  gboolean ok;

  g_free (kinds_check (text, PULL_URI_FROM_API, &config));
  pull_config_clear (&config);
  if (!g_str_has_prefix (text, "rtp:"))
    return;
  ok = relay_description_from_uri (text, 0, &description, &error);
  check_error (ok, &error);
  if (ok)
    relay_description_clear (&description);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  gchar *text = g_strndup ((const gchar *) data, size), *shown;

  read_demand (text);
  read_range (text);
  read_layers (text);
  read_upstream (text);
  g_free (mount_check_path (text));
  shown = log_redact (text);
  require (shown != NULL);
  g_free (shown);
  g_free (text);
  return 0;
}
