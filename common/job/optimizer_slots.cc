#include "common/job/optimizer_slots.h"

namespace shoal {

std::vector<std::string> OptimizerSlotNames(const Job::Optimizer& optimizer) {
  switch (optimizer.kind) {
    case Job::Optimizer::Kind::kSgd:
      if (optimizer.momentum == 0) return {};
      return {"sgd_momentum"};
    case Job::Optimizer::Kind::kAdam:
      return {"adam_m", "adam_v"};
  }
  return {};
}

}  // namespace shoal
