// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

extern char **environ;

static GPtrArray *allowed[SANDBOX_PROFILES]; // of arguments such as "read=PATH"; or NULL
static GMutex allowing; // protects `allowed`: a thread may read the configuration again
static GStrv options;

void
spawn_set_options (const gchar *const *to)
{
  g_strfreev (options);
  options = g_strdupv ((gchar **) to);
}

guint
spawn_count_allowed (SandboxProfile kind)
{
  guint n;

  g_mutex_lock (&allowing);
  n = allowed[kind] ? allowed[kind]->len : 0;
  g_mutex_unlock (&allowing);
  return n;
}

void
spawn_allow (SandboxProfile kind, const gchar *path)
{
  gchar *argument = g_strconcat (WORKER_READS, path, NULL);

  g_mutex_lock (&allowing);
  if (!allowed[kind])
    allowed[kind] = g_ptr_array_new_with_free_func (g_free);
  if (g_ptr_array_find_with_equal_func (allowed[kind], argument, g_str_equal, NULL))
    g_free (argument);
  else
    g_ptr_array_add (allowed[kind], argument);
  g_mutex_unlock (&allowing);
}

// ---- the start ----

// Returns the environment of a worker: what GStreamer, its plugins, the linker and the sanitizers
// read. Other variables may hold secrets.
static gchar **
dup_environment (void)
{
  static const gchar *const passed[] = { "ASAN_", "CUDA_", "DISPLAY=", "DRI_", "GIO_", "GST_", "G_",
    "HOME=", "LANG", "LC_", "LD_", "LIBVA_", "LSAN_", "MALLOC_", "MESA_", "NVIDIA_", "ORC_",
    "PATH=", "TMPDIR=", "TSAN_", "TZ=", "UBSAN_", "VDPAU_", "WEIR_", "XDG_", NULL };
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  for (gchar **word = environ; *word; word++) {
    for (guint i = 0; passed[i]; i++) {
      if (g_str_has_prefix (*word, passed[i])
          && !g_str_has_prefix (*word, "GST_REGISTRY_UPDATE=")) {
        g_strv_builder_add (builder, *word);
        break;
      }
    }
  }
  // The proxy has just read the registry of plugins.
  g_strv_builder_add (builder, "GST_REGISTRY_UPDATE=no");
  // GIO asks for the settings of a desktop, which would be written to a file in the user's folder.
  g_strv_builder_add (builder, "GSETTINGS_BACKEND=memory");
  return g_strv_builder_end (builder);
}

static void
set_attributes (posix_spawnattr_t *attributes)
{
  sigset_t none, reset;

  sigemptyset (&none);
  sigemptyset (&reset);
  sigaddset (&reset, SIGPIPE);
  posix_spawnattr_setsigmask (attributes, &none);
  posix_spawnattr_setsigdefault (attributes, &reset);
  posix_spawnattr_setflags (attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

gboolean
spawn_is_debugged (void)
{
  for (gchar **option = options; option && *option; option++) {
    if (g_str_has_prefix (*option, "--gst-debug"))
      return TRUE;
  }
  return g_getenv ("GST_DEBUG") != NULL;
}

static GStrv
dup_arguments (SandboxProfile kind)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  g_strv_builder_add_many (builder, WORKER_NAME, sandbox_get_name (kind), NULL);
  g_mutex_lock (&allowing);
  for (guint i = 0; allowed[kind] && i < allowed[kind]->len; i++)
    g_strv_builder_add (builder, g_ptr_array_index (allowed[kind], i));
  g_mutex_unlock (&allowing);
  if (options)
    g_strv_builder_addv (builder, (const gchar **) options);
  return g_strv_builder_end (builder);
}

gint
spawn_worker (SandboxProfile kind, gint socket, gint output, gint *pid)
{
  g_auto (GStrv) arguments = dup_arguments (kind), environment = dup_environment ();
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  gint error;

  posix_spawn_file_actions_init (&actions);
  posix_spawnattr_init (&attributes);
  set_attributes (&attributes);
  if (output >= 0)
    posix_spawn_file_actions_adddup2 (&actions, output, 2);
  posix_spawn_file_actions_adddup2 (&actions, socket, WORKER_SOCKET);
  posix_spawn_file_actions_addopen (&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen (&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np (&actions, WORKER_SOCKET + 1);
  error = posix_spawn (pid, "/proc/self/exe", &actions, &attributes, arguments, environment);
  posix_spawnattr_destroy (&attributes);
  posix_spawn_file_actions_destroy (&actions);
  return error;
}
