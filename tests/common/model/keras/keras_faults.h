#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/common/model/test_models.h"

// Faulty models and the expected errors.

namespace shoal {

inline constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
inline constexpr absl::StatusCode kLacking = absl::StatusCode::kUnimplemented;

inline void ExpectError(const std::string& text, absl::StatusCode code,
                        const std::vector<std::string>& parts) {
  const absl::Status status = ParseKerasModel(text).status();
  EXPECT_EQ(status.code(), code) << status;
  for (const std::string& part : parts)
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(part));
}

// A fault at a JSON pointer in a valid model, and the expected parts of the message.
struct Fault {
  const char* pointer;
  Json value;
  absl::StatusCode code;
  std::vector<std::string> parts;
};

inline void ExpectErrors(const Json& base, const std::vector<Fault>& faults) {
  ASSERT_TRUE(ParseKerasModel(base.dump()).ok()) << ParseKerasModel(base.dump()).status();
  for (const Fault& fault : faults) {
    SCOPED_TRACE(testing::Message() << fault.pointer << " = " << fault.value.dump().substr(0, 200));
    Json json = base;
    json[Json::json_pointer(fault.pointer)] = fault.value;
    ExpectError(json.dump(), fault.code, fault.parts);
  }
}

inline Json Cnn() {
  return SequentialJson(
      {nullptr, 9, 11, 3},
      {LayerJson("Conv2D", "conv", {{"filters", 4}, {"kernel_size", {3, 3}}}),
       LayerJson("MaxPooling2D", "pool", {{"pool_size", {2, 2}}}),
       LayerJson("Flatten", "flat", Json::object()), LayerJson("Dropout", "drop", {{"rate", 0.5}}),
       LayerJson("Dense", "dense", {{"units", 10}, {"activation", "relu"}})});
}

}  // namespace shoal
