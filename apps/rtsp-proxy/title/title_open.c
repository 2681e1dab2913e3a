// SPDX-License-Identifier: LGPL-2.1-or-later
#include "title/title_open.h"

#include "title/title_link.h"
#include "title/title_local.h"
#include "title/title_remote.h"

static gboolean isolated;

void
title_open_set (gboolean to)
{
  isolated = to;
}

void
title_open_prepare (void)
{
  if (isolated)
    title_link_prepare ();
}

GstElement *
title_open (int fd)
{
  return isolated ? title_remote_new (fd, TRUE) : title_local_new (title_local_source (fd), TRUE);
}

GstElement *
title_open_unpaced (int fd)
{
  return isolated ? title_remote_new (fd, FALSE) : title_local_new (title_local_source (fd), FALSE);
}
