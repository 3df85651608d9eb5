#pragma once

#include <span>

#include "absl/status/status.h"
#include "worker/compute/program/program.h"

namespace shoal {

class FailingKernel : public Kernel {
 public:
  absl::Status Run(const RunContext*, std::span<void* const>) override {
    return absl::InternalError("the kernel of this test fails");
  }
};

}  // namespace shoal
