#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"

namespace shoal {

// Uninitialised memory for the values between the steps of a program. It lies on huge pages if the
// system has them: otherwise walking activations of tens of megabytes page by page costs up to a
// third of a step. Not thread-safe.
class Arena {
 public:
  // Makes the arena at least `size_bytes` large. Growing discards the contents. kFailedPrecondition
  // if the system lacks the memory.
  absl::Status Reserve(int64_t size_bytes);

  char* data() const { return memory_.get(); }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  struct Free {
    void operator()(char* memory) const;
  };
  std::unique_ptr<char, Free> memory_;
  int64_t size_bytes_ = 0;
};

}  // namespace shoal
