#pragma once

#include <string>

namespace shoal {

// This machine's name, as the system has it; bytes that are not UTF-8 as \xNN, as others read the
// name from JSON and messages.
std::string HostName();

// Tells this process from all others, for one that finds the mark in a file later: the start of the
// machine, the namespace of process ids, the id and when the process began. Empty where /proc does
// not say.
std::string ProcessMark();

// Whether the process with that mark is known to be gone: it was one of this machine since its last
// start and of this namespace of ids, and no such process is there. False where that cannot be
// told.
bool IsProcessGone(const std::string& mark);

}  // namespace shoal
