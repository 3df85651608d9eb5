#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace shoal {

// Limits for files and texts from users. They keep any input from exhausting memory or stack.
inline constexpr int64_t kMaxJsonBytes = 64 << 20;
inline constexpr int kMaxJsonDepth = 100;

// Returns the content of a regular file of at most kMaxJsonBytes. Errors name the file: kNotFound,
// kPermissionDenied, kInvalidArgument (a directory, too large), kUnavailable (it cannot be read).
absl::StatusOr<std::string> ReadJsonFile(const std::string& path);

// Parses JSON (RFC 8259). Rejects more than kMaxJsonDepth levels and duplicate keys in an object.
// Errors are kInvalidArgument and begin with `source`, followed by line and column or the JSON
// path.
absl::StatusOr<nlohmann::json> ParseJson(const std::string& text, const std::string& source);

// "$.data" and "training" -> "$.data.training". A key that is not a plain word is quoted: $["a b"].
std::string JsonPath(const std::string& parent, const std::string& key);
// "$.metrics" and 1 -> "$.metrics[1]".
std::string JsonPath(const std::string& parent, size_t index);

// A value for messages: JSON on one line, cut to about 80 characters.
std::string ShortJson(const nlohmann::json& value);

// The same with its type, for errors about types: "[1,2], an array"; "null".
std::string ShortJsonAndType(const nlohmann::json& value);

// A number in JSON's form: "0.001", "1000", not "1000.000000".
std::string NumberText(double value);

}  // namespace shoal
