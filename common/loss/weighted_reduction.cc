#include "common/loss/weighted_reduction.h"

#include <nlohmann/json.hpp>

namespace shoal {

using nlohmann::json;

void CheckWeightedReduction(const json& loss, const std::string& path, JsonErrors* errors) {
  if (!loss.is_object()) return;
  const auto config = loss.find("config");
  if (config == loss.end() || !config->is_object()) return;
  if (config->value("reduction", json()) != "mean_with_sample_weight") return;
  errors->AddUnimplemented(
      path + ".config.reduction",
      "is \"mean_with_sample_weight\", which divides by the sum of the weights; Shoal divides by "
      "the number of examples, so this must be \"sum_over_batch_size\" or left out where "
      "examples or classes have weights");
}

}  // namespace shoal
