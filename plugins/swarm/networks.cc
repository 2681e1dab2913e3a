// SPDX-License-Identifier: LGPL-2.1-or-later
#include "networks.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <libtorrent/address.hpp>
#include <libtorrent/error_code.hpp>

#define BLOCKED lt::ip_filter::blocked

template <typename Bytes>
static void
fill_host_bits (Bytes &bytes, int prefix, bool ones)
{
  for (int bit = prefix; bit < int (bytes.size ()) * 8; bit++) {
    const auto mask = static_cast<unsigned char> (0x80 >> (bit % 8));
    auto &byte = bytes[std::size_t (bit) / 8];

    byte = static_cast<unsigned char> (ones ? byte | mask : byte & ~mask);
  }
}

template <typename Address>
static bool
allow (const Address &address, int prefix, lt::ip_filter &filter)
{
  auto first = address.to_bytes (), last = first;

  if (prefix < 0)
    prefix = int (first.size ()) * 8;
  if (prefix > int (first.size ()) * 8)
    return false;
  fill_host_bits (first, prefix, false);
  fill_host_bits (last, prefix, true);
  filter.add_rule (Address (first), Address (last), 0);
  return true;
}

static bool
allow_network (const std::string &network, lt::ip_filter &filter)
{
  const auto slash = network.find ('/');
  lt::error_code error;
  const lt::address address = lt::make_address (network.substr (0, slash), error);
  int prefix = -1;

  if (error)
    return false;
  if (slash != std::string::npos) {
    const std::string digits = network.substr (slash + 1);
    if (digits.empty () || digits.size () > 3
        || digits.find_first_not_of ("0123456789") != std::string::npos)
      return false;
    prefix = std::atoi (digits.c_str ());
  }
  return address.is_v4 () ? allow (address.to_v4 (), prefix, filter)
                          : allow (address.to_v6 (), prefix, filter);
}

bool
networks_read (const std::string &text, lt::ip_filter &filter, std::string &why)
{
  std::stringstream list (text);
  std::string network;

  filter = lt::ip_filter ();
  filter.add_rule (lt::address_v4 (), lt::address_v4::broadcast (), BLOCKED);
  filter.add_rule (lt::make_address_v6 ("::"),
      lt::make_address_v6 ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), BLOCKED);
  while (std::getline (list, network, ',')) {
    if (!allow_network (network, filter)) {
      why = "\"" + network + "\" is no network; write one as 10.0.0.0/8 or fd00::/8";
      return false;
    }
  }
  return true;
}

template <typename Ranges>
static bool
none_blocked (const Ranges &ranges)
{
  return std::none_of (ranges.begin (), ranges.end (),
      [] (const auto &range) { return (range.flags & BLOCKED) != 0; });
}

bool
networks_are_all (const lt::ip_filter &filter)
{
  const auto [v4, v6] = filter.export_filter ();

  return none_blocked (v4) && none_blocked (v6);
}
