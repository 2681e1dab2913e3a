// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The networks whose addresses a session may talk to.

#include <string>

#include <libtorrent/ip_filter.hpp>

// Loopback, private (RFC 1918, RFC 4193) and link-local networks.
#define NETWORKS_DEFAULT                                                                           \
  "127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,169.254.0.0/16,::1/128,fc00::/7,fe80::/10"

// Makes `filter` block all addresses except for those in the networks of `text`, a list with commas
// such as "10.0.0.0/8,::1". Returns false and a reason in `why` if the text is wrong.
bool networks_read (const std::string &text, lt::ip_filter &filter, std::string &why);

// Tells whether the filter blocks no address.
bool networks_are_all (const lt::ip_filter &filter);
