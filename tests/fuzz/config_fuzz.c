// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the readers of configuration files and of API bodies. The input is YAML or JSON.

#include <sys/mman.h>
#include <unistd.h>

#include "app.h"
#include "config/mount_read.h"
#include "config/proxy_config.h"
#include "stages/stage_set.h"

static StageSet *stages;

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  const gchar *folders[] = { STAGES, NULL };

  init_gst ();
  stages = stage_set_load (folders, NULL);
  require (stages != NULL);
  return 0;
}

static void
read_file (const uint8_t *data, gsize size)
{
  int fd = memfd_create ("config", MFD_CLOEXEC);
  gchar *path = g_strdup_printf ("/proc/self/fd/%d", fd);
  ProxyConfig *config = proxy_config_new ();
  GError *error = NULL;
  gboolean ok;

  require (fd >= 0 && write (fd, data, size) == (gssize) size);
  config->stage_set = stage_set_ref (stages);
  ok = proxy_config_load (config, path, &error);
  check_error (ok, &error);
  proxy_config_free (config);
  g_free (path);
  close (fd);
}

static void
read_body (const uint8_t *data, gsize size)
{
  GError *error = NULL;
  YamlReader *reader = yaml_reader_new ("body", (const gchar *) data, size, &error);
  MountConfig *mount;

  check_error (reader != NULL, &error);
  if (!reader || !yaml_root (reader) || !yaml_is_mapping (yaml_root (reader))) {
    g_clear_pointer (&reader, yaml_reader_free); // the API refuses it
    return;
  }
  mount = mount_read_body (stages, "/cam", reader, NULL, &error);
  check_error (mount != NULL, &error);
  g_clear_pointer (&mount, mount_config_unref);
  yaml_reader_free (reader);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  read_file (data, size);
  read_body (data, size);
  return 0;
}
