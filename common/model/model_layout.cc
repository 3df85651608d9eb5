#include "common/model/model_layout.h"

namespace shoal {

ModelLayout::ModelLayout(const std::vector<Variable>& model_variables) {
  constexpr int64_t kAlignment = 16;
  for (const Variable& variable : model_variables) {
    const int64_t count = ElementCount(variable.shape);
    variables.push_back({size, count});
    size += (count + kAlignment - 1) / kAlignment * kAlignment;
  }
}

}  // namespace shoal
