// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernel.h"

#include "config.h"

#include "program.h"
#include "routes.h"
#include "rules.h"

static GMutex lock;
static gboolean tried;
static GError *failed; // why it cannot be loaded

// Call with `lock` held.
static gboolean
load (GError **error)
{
  if (!tried) {
    tried = TRUE;
    if (weir_program_load (&failed))
      weir_routes_start (&failed);
  }
  if (failed)
    g_propagate_error (error, g_error_copy (failed));
  return !failed;
}

gboolean
weir_kernel_use (gboolean force, GError **error)
{
  const gchar *rules;
  gboolean ok;

  if (!WITH_KERNEL) {
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
        "this build has no kernel path; build it with -Dkernel=enabled");
    return FALSE;
  }
  g_mutex_lock (&lock);
  ok = load (error);
  g_mutex_unlock (&lock);
  rules = weir_rules_get ();
  if (ok && rules && !force) {
    ok = FALSE;
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY,
        "the system has %s, which clones would go round; kernel=on uses the kernel path "
        "nevertheless",
        rules);
  }
  return ok;
}

WeirCloneRoute *
weir_kernel_route_new (
    int fd, const WeirAddress *address, gboolean force, const WeirCloner **cloner)
{
  *cloner = WITH_KERNEL ? &weir_route_cloner : NULL;
  return WITH_KERNEL ? weir_route_new (fd, address, force) : NULL;
}
