#pragma once

#include <string>

#include "worker/input/file_descriptor.h"

namespace shoal {

// Where temporary files are: $TMPDIR, or /tmp without one. It had better be on a disk.
std::string TemporaryDirectory();

// A temporary file without a name in `directory`, open for reading and writing; not ok(), with
// errno set, where there can be none. It goes with its last descriptor and mapping, or the process.
// Nobody else can open it, and so nobody can shorten it under a mapping, which would be a SIGBUS.
FileDescriptor OpenTemporaryFile(const std::string& directory);

}  // namespace shoal
