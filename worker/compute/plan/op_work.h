#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "worker/compute/plan/plan.h"

namespace shoal {

// The least that computing takes, whatever the kernels: what a time is to be compared with.
struct OpWork {
  int64_t multiply_adds = 0;  // of convolutions and products; 0 for all else
  int64_t values = 0;         // read or written, each once
};

// That of the plan's nodes, added up by Op::type().
std::map<std::string, OpWork> WorkByOp(const Plan& plan);

}  // namespace shoal
