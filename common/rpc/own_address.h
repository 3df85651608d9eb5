#pragma once

#include <string>

namespace shoal {

// Whether the other end of a connection, "127.0.0.1:4711", "[::1]:4711" or "unix:", is on this
// machine, as its network (a container's, a namespace's) sees it.
bool IsOwnAddress(const std::string& peer);

}  // namespace shoal
