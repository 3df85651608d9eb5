#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "worker/input/files/file_descriptor.h"

// The entry point that libFuzzer calls with each input. Each fuzz target is a file with one. For
// any bytes, the parser must return without a crash, a leak, or much memory.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace shoal {

// A file with these bytes, for parsers that open files.
class FuzzFile {
 public:
  FuzzFile(const uint8_t* data, size_t size) : file_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (!file_.ok() || write(file_.get(), data, size) != static_cast<ssize_t>(size)) {
      std::perror("fuzz: no file in memory");
      std::_Exit(78);
    }
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

 private:
  const FileDescriptor file_;
};

}  // namespace shoal
