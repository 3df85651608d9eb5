#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "worker/compute/plan/plan.h"

namespace shoal {

// The minimum work of a computation with any kernel, as a reference for measured times.
struct OpWork {
  int64_t multiply_adds = 0;  // of convolutions and matrix products; 0 for all other ops
  int64_t values = 0;         // read or written, each once
};

// The work of the plan's nodes, added up by Op::type().
std::map<std::string, OpWork> WorkByOp(const Plan& plan);

}  // namespace shoal
