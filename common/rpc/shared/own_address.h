#pragma once

#include <string>

namespace shoal {

// Whether the other end of a connection, "127.0.0.1:4711", "[::1]:4711" or "unix:", is on this
// machine, as its network (a container's, a namespace's) sees it. It may say so of any (with
// net.ipv4.ip_nonlocal_bind): it spares a look for what cannot be there, and protects nothing.
bool IsOwnAddress(const std::string& peer);

}  // namespace shoal
