#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/loss/keras_loss.h"

namespace shoal {

// Returns the loss of this Keras class and config. Benchmarks without GoogleTest use it, too.
inline std::shared_ptr<const KerasLoss> LossOf(const std::string& class_name,
                                               const std::string& config = "{}") {
  auto loss = MakeLoss(R"({"class_name": ")" + class_name + R"(", "config": )" + config + "}");
  SHOAL_CHECK(loss.ok(), loss.status().ToString());
  return *std::move(loss);
}

}  // namespace shoal
