#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "worker/input/files/file_descriptor.h"

namespace shoal {

// Where temporary files are: $TMPDIR, or /tmp without one. It had better be on a disk.
std::string TemporaryDirectory();

// A temporary file without a name in `directory`, open for reading and writing; not ok(), with
// errno set, where there can be none. It goes with its last descriptor and mapping, or the process.
// Nobody else can open it, and so nobody can shorten it under a mapping, which would be a SIGBUS.
FileDescriptor OpenTemporaryFile(const std::string& directory);

// Of the file system that a file is on.
struct DiskSpace {
  uint64_t free_bytes = 0;
  uint64_t bytes = 0;
};
// Returns false, with errno set, where it cannot be known.
using MeasureDisk = std::function<bool(const FileDescriptor& file, DiskSpace* space)>;
bool MeasureDiskOf(const FileDescriptor& file, DiskSpace* space);

// 0 where `file` may become `bytes` larger, else an error number. What unpacks to more than there
// is room for fills no disk: a twentieth of it stays free for others, or 256 MiB of a large one. A
// file system that does not say how large it is may be written to.
int ErrorOfRoom(const FileDescriptor& file, uint64_t bytes,
                const MeasureDisk& measure = MeasureDiskOf);

// "NAME: no temporary file of N bytes in DIRECTORY, where up to 256 MiB are left free (...)", by
// an error number.
absl::Status NoTemporaryFile(int error, const std::string& name, uint64_t bytes);

}  // namespace shoal
