#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace shoal {

// Matches an absl::Status with this code whose message contains each of `values`: paths, names,
// numbers. Use it instead of sentences, which one test file of each area asserts.
inline testing::Matcher<const absl::Status&> FailsWith(
    absl::StatusCode code, const std::vector<std::string>& values = {}) {
  std::vector<testing::Matcher<std::string>> in_message;
  for (const std::string& value : values) in_message.push_back(testing::HasSubstr(value));
  return testing::AllOf(
      testing::Property("code", &absl::Status::code, code),
      testing::ResultOf([](const absl::Status& status) { return std::string(status.message()); },
                        testing::AllOfArray(in_message)));
}

}  // namespace shoal
