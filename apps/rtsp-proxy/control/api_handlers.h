// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The handlers of the API's operations; api.c has the routes.

#include "control/api_request.h"

typedef void (*ApiHandler) (ApiRequest *request);

void api_list_mounts (ApiRequest *request);
void api_get_mount (ApiRequest *request);
void api_put_mount (ApiRequest *request);
void api_patch_mount (ApiRequest *request);
void api_delete_mount (ApiRequest *request);
// At the path of a mount with "/insert" behind it.
void api_get_insertion (ApiRequest *request);
void api_post_insertion (ApiRequest *request);
void api_delete_insertion (ApiRequest *request);
void api_reload (ApiRequest *request);

void api_list_readers (ApiRequest *request);
void api_get_reader (ApiRequest *request);
void api_patch_reader (ApiRequest *request);
void api_delete_reader (ApiRequest *request);

void api_get_graph (ApiRequest *request);
void api_get_graph_dot (ApiRequest *request);
void api_get_graph_svg (ApiRequest *request);

void api_get_cluster (ApiRequest *request);
void api_post_drain (ApiRequest *request);

void api_get_events (ApiRequest *request);

void api_list_recordings (ApiRequest *request);
void api_get_recording (ApiRequest *request);
