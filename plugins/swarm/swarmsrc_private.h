// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "networks.h"
#include "swarm.h"
#include "swarmsrc.h"

// The properties, under the object lock.
struct SwarmSrcProperties {
  std::string torrent, origin, file, folder, peers;
  std::string storage = "256M", networks = NETWORKS_DEFAULT, listen = "0.0.0.0:0,[::]:0";
  WeirPicker picker = WEIR_PICKER_HYBRID;
  guint64 window_ns = 15 * 60 * GST_SECOND, bit_rate = 0, upload = 0;
  Leave leave = Leave::STREAM;
  gboolean tracker = TRUE, exchange = TRUE, dht = FALSE, lsd = FALSE, rate_blind = FALSE;
  gboolean own_session = FALSE;
  gint storage_fd = -1;
  guint unchoke_interval_s = 15, connections = 50, timeout_s = 30;
};

struct SwarmSrcInner {
  SwarmSrcProperties properties;
  bool changed = false; // since the start, except for `peers`; under the object lock
  std::mutex lock;      // for `swarm`
  std::shared_ptr<Swarm> swarm;
  SwarmReader reader; // of the swarm
};

struct _WeirSwarmSrc {
  GstBaseSrc parent;

  SwarmSrcInner *inner;
};

void weir_swarm_src_install_properties (GObjectClass *klass);

// Reads a list such as "127.0.0.1:6881,[::1]:6882". Returns false and a reason in `why`.
bool weir_swarm_src_read_peers (
    const std::string &text, std::vector<lt::tcp::endpoint> &peers, std::string &why);

// Checks a list such as "0.0.0.0:6881,[::]:0".
bool weir_swarm_src_check_listen (const std::string &text, std::string &why);

std::shared_ptr<Swarm> weir_swarm_src_get_swarm (WeirSwarmSrc *self);
