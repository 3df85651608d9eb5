#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/model/keras_model.h"
#include "tests/common/model/test_models.h"

namespace shoal {

// Parses a model that must be valid.
inline KerasModel Parse(const std::string& text) {
  absl::StatusOr<KerasModel> model = ParseKerasModel(text);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : KerasModel();
}
inline KerasModel Parse(const Json& json) { return Parse(json.dump()); }

}  // namespace shoal
