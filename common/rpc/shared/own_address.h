#pragma once

#include <string>

namespace shoal {

// Whether the other end of a connection ("127.0.0.1:4711", "[::1]:4711" or "unix:") is on this
// machine, in the view of this process's network (a container's, a namespace's). With
// net.ipv4.ip_nonlocal_bind the answer may be yes for any address. So use it only to avoid useless
// attempts, not for protection.
bool IsOwnAddress(const std::string& peer);

}  // namespace shoal
