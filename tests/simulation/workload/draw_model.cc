#include "tests/simulation/workload/draw_model.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/simulation/expected_sums.h"

namespace shoal {
namespace {

// The momentum of its moving averages is 1 in float32, and a sample adds exactly 1 / kSampleScale
// of itself. So the averages count.
std::string NormalizationJson(Random& random) {
  // The order of the draws is part of what a seed means. C++ leaves that of arguments open.
  const char* const scale = random.Coin() ? "true" : "false";
  const char* const center = random.Coin() ? "true" : "false";
  const char* const trainable = random.OneIn(6) ? "false" : "true";
  return absl::StrFormat(
      R"(, {"class_name": "BatchNormalization", "config": {"name": "norm", "trainable": %s,
          "momentum": %.17g, "center": %s, "scale": %s,
          "beta_initializer": {"class_name": "Zeros", "config": {}},
          "gamma_initializer": {"class_name": "Zeros", "config": {}},
          "moving_mean_initializer": {"class_name": "Zeros", "config": {}},
          "moving_variance_initializer": {"class_name": "Zeros", "config": {}}}})",
      trainable, 1 - 1.0 / kSampleScale, center, scale);
}

}  // namespace

std::string DrawModel(Random& random, uint64_t seed) {
  const auto dense = [](const char* name, uint64_t units, bool trainable) {
    return absl::StrFormat(
        R"({"class_name": "Dense", "config": {"name": "%s", "units": %d, "trainable": %s,
            "activation": "linear", "use_bias": true,
            "kernel_initializer": {"class_name": "Zeros", "config": {}},
            "bias_initializer": {"class_name": "Zeros", "config": {}}}})",
        name, units, trainable ? "true" : "false");
  };
  std::string layers = absl::StrFormat(
      R"({"class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, %d]}})",
      random.Between(2, 6));
  absl::StrAppend(&layers, ", ", dense("first", random.Between(3, 9), true));
  // Has a Random of its own, so that a change leaves the other draws as they are.
  if (Random averages(seed * 0xd1342543de82ef95 + 3); averages.OneIn(3))
    layers += NormalizationJson(averages);
  if (random.OneIn(4)) absl::StrAppend(&layers, ", ", dense("fixed", random.Between(2, 4), false));
  absl::StrAppend(&layers, ", ", dense("last", random.Between(1, 5), true));
  return absl::StrCat(R"({"class_name": "Sequential", "config": {"name": "tiny", "layers": [)",
                      layers, "]}}");
}

}  // namespace shoal
