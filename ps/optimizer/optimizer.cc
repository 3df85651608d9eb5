#include "ps/optimizer/optimizer.h"

#include "ps/optimizer/adam.h"
#include "ps/optimizer/sgd.h"

namespace shoal {

std::unique_ptr<const Optimizer> MakeOptimizer(const Job::Optimizer& options) {
  if (options.kind == Job::Optimizer::Kind::kAdam) return std::make_unique<Adam>(options);
  return std::make_unique<Sgd>(options);
}

}  // namespace shoal
