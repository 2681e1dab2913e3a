// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel path of a fanoutsink: which of its readers can get clones.
#include "fanoutsink_private.h"
#include "kernel/kernel.h"

GST_DEBUG_CATEGORY_EXTERN (fanoutsink_debug);
#define GST_CAT_DEFAULT fanoutsink_debug

gboolean
fanout_clones_start (WeirFanoutSink *self, GError **error)
{
  GError *err = NULL;

  if (self->kernel == WEIR_KERNEL_OFF || weir_kernel_use (self->kernel == WEIR_KERNEL_ON, &err))
    return TRUE;
  if (self->kernel == WEIR_KERNEL_ON) {
    g_propagate_prefixed_error (error, err, "kernel=on: ");
    return FALSE;
  }
  GST_INFO_OBJECT (self, "readers are served without the kernel path: %s", err->message);
  g_error_free (err);
  return TRUE;
}

void
fanout_clones_set_route (WeirFanoutSink *self, Name *name)
{
  gboolean force = self->kernel == WEIR_KERNEL_ON;
  const WeirCloner *cloner = NULL;
  WeirCloneRoute *route = NULL;

  if (!name->inet)
    return;
  // The kernel's limit of the socket's rate does not hold for clones.
  if (self->kernel != WEIR_KERNEL_OFF && self->sockets.v4 && (self->max_pacing_rate == 0 || force)
      && weir_kernel_use (force, NULL))
    route =
        weir_kernel_route_new (g_socket_get_fd (self->sockets.v4), &name->address, force, &cloner);
  weir_reader_set_clone_route (name->reader, cloner, route);
}

void
fanout_clones_update (WeirFanoutSink *self)
{
  for (GList *l = self->names.head; l && self->started; l = l->next)
    fanout_clones_set_route (self, l->data);
}

WeirKernelMode
fanout_clones_get_mode (WeirFanoutSink *self)
{
  WeirKernelMode mode;

  g_mutex_lock (&self->control);
  mode = self->kernel;
  g_mutex_unlock (&self->control);
  return mode;
}

void
fanout_clones_set_mode (WeirFanoutSink *self, WeirKernelMode mode)
{
  GError *err = NULL;

  g_mutex_lock (&self->control);
  self->kernel = mode;
  if (self->started && !fanout_clones_start (self, &err)) {
    GST_WARNING_OBJECT (self, "%s", err->message);
    g_error_free (err);
  }
  fanout_clones_update (self);
  g_mutex_unlock (&self->control);
}
