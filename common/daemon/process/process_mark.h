#pragma once

#include <string>

namespace shoal {

// Returns this machine's name; bytes that are not UTF-8 become \xNN, because JSON and messages
// contain the name.
std::string HostName();

// Returns a mark that identifies this process later: boot id, pid namespace, pid and start time.
// Empty if /proc lacks them.
std::string ProcessMark();

// Returns true if the marked process has surely ended: it ran on this machine since the last boot,
// in this pid namespace, and no longer exists.
bool IsProcessGone(const std::string& mark);

}  // namespace shoal
