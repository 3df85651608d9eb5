#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/loss/keras_loss.h"

namespace shoal {

// The loss of that Keras class and config.
inline std::shared_ptr<const KerasLoss> LossOf(const std::string& class_name,
                                               const std::string& config = "{}") {
  auto loss = MakeLoss(R"({"class_name": ")" + class_name + R"(", "config": )" + config + "}");
  EXPECT_TRUE(loss.ok()) << loss.status();
  return loss.ok() ? *std::move(loss) : nullptr;
}

}  // namespace shoal
