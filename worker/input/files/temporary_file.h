#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "worker/input/files/file_descriptor.h"

namespace shoal {

// The directory of temporary files: $TMPDIR, or /tmp by default. It should be on a disk.
std::string TemporaryDirectory();

// Opens an unnamed temporary file in `directory` for reading and writing. On failure, the result is
// not ok() and errno is set. The file is removed with its last descriptor and mapping, or the
// process. No other process can open it and shorten it under a mapping, which would cause SIGBUS.
FileDescriptor OpenTemporaryFile(const std::string& directory);

// The space of a file's file system.
struct DiskSpace {
  uint64_t free_bytes = 0;
  uint64_t bytes = 0;
};
// Returns false, with errno set, if the space is unknown.
using MeasureDisk = std::function<bool(const FileDescriptor& file, DiskSpace* space)>;
bool MeasureDiskOf(const FileDescriptor& file, DiskSpace* space);

// Returns 0 if `file` may grow by `bytes`, else an error number. Keeps a twentieth of the disk
// free, at most 256 MiB. Data that unpack to more than the free space thus do not fill the disk.
// Allows the growth if the file system does not report its size.
int CheckDiskSpace(const FileDescriptor& file, uint64_t bytes,
                   const MeasureDisk& measure = MeasureDiskOf);

// Makes an error from an error number: "NAME: cannot make a temporary file of N bytes in
// DIRECTORY, where up to 256 MiB must stay free; set TMPDIR to another directory".
absl::Status NoTemporaryFile(int error, const std::string& name, uint64_t bytes);

}  // namespace shoal
