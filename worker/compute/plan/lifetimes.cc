#include "worker/compute/plan/lifetimes.h"

namespace shoal {

std::vector<Lifetime> FindLifetimes(const std::vector<std::vector<int>>& touched, int tensors) {
  std::vector<Lifetime> lifetimes(tensors, {.first_step = -1, .last_step = -1});
  for (int step = 0; step < static_cast<int>(touched.size()); ++step) {
    for (const int tensor : touched[step]) {
      Lifetime& lifetime = lifetimes[tensor];
      if (lifetime.first_step < 0) lifetime.first_step = step;
      lifetime.last_step = step;
    }
  }
  return lifetimes;
}

}  // namespace shoal
