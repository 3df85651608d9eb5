#include "common/json/json_text.h"

#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/durable_file.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr size_t kMaxShownBytes = 80;

// Cuts `text` to at most `limit` bytes, between UTF-8 characters, and says so with dots.
std::string Shorten(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// Follows the parser's events to find what RFC 8259 leaves open: keys that come twice, excessive
// depth.
class StructureCheck {
 public:
  // nlohmann's parser callback: false drops the value, so that nothing deep is ever built.
  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        if (depth >= kMaxJsonDepth) too_deep_ = true;
        if (too_deep_) return false;
        if (event == json::parse_event_t::object_start) objects_.emplace_back();
        return true;
      case json::parse_event_t::object_end:
        if (!too_deep_) objects_.pop_back();
        return true;
      case json::parse_event_t::key:
        if (!too_deep_) AddKey(parsed.get_ref<const std::string&>());
        return true;
      default:
        return true;
    }
  }

  // Empty when all is well.
  std::string error() const {
    if (too_deep_) return absl::StrCat("is nested deeper than ", kMaxJsonDepth, " levels");
    if (!repeated_.empty()) return absl::StrCat(repeated_, ": this key comes twice in one object");
    return "";
  }

 private:
  struct OpenObject {
    std::set<std::string> keys;
    std::string current;
  };

  void AddKey(const std::string& key) {
    OpenObject& object = objects_.back();
    object.current = key;
    if (object.keys.insert(key).second || !repeated_.empty()) return;
    std::string path("$");
    for (const OpenObject& open : objects_) path = JsonPath(path, open.current);
    repeated_ = std::move(path);
  }

  std::vector<OpenObject> objects_;
  std::string repeated_;
  bool too_deep_ = false;
};

// "[json.exception.parse_error.101] parse error at line 1, ..." without the library's own tag.
std::string ParserMessage(const json::exception& error) {
  std::string text = error.what();
  if (const size_t end = text.find("] ");
      text.rfind("[json.exception", 0) == 0 && end != text.npos) {
    text = text.substr(end + 2);
  }
  return Shorten(text, 300);
}

}  // namespace

absl::StatusOr<std::string> ReadJsonFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadSmallFile(path, kMaxJsonBytes);
  if (text.ok()) return text;
  // What is said of files that people write begins with the file.
  std::string reason(text.status().message());
  if (const size_t named = reason.find(path + ": "); named != reason.npos) {
    reason.erase(0, named + path.size() + 2);
  } else if (reason.starts_with(path + " ")) {
    reason.erase(0, path.size() + 1);
  }
  const std::string message = absl::StrCat(path, ": ", reason);
  switch (text.status().code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
      return absl::Status(text.status().code(), message);
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:  // not a regular file
    case absl::StatusCode::kDataLoss:            // too large
      return absl::InvalidArgumentError(message);
    default:
      return absl::UnavailableError(message);
  }
}

absl::StatusOr<json> ParseJson(const std::string& text, const std::string& source) {
  if (static_cast<int64_t>(text.size()) > kMaxJsonBytes) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": has ", text.size(),
                                                   " bytes; at most ", kMaxJsonBytes, " are read"));
  }
  StructureCheck check;
  json value;
  try {
    value = json::parse(text, [&check](int depth, json::parse_event_t event, json& parsed) {
      return check(depth, event, parsed);
    });
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": is not JSON: ", ParserMessage(error)));
  }
  if (const std::string error = check.error(); !error.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": ", error));
  }
  return value;
}

std::string JsonPath(const std::string& parent, const std::string& key) {
  bool plain = !key.empty();
  for (const char c : key)
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
  if (plain) return absl::StrCat(parent, ".", key);
  return absl::StrCat(parent, "[", ShortJson(json(key)), "]");
}

std::string JsonPath(const std::string& parent, size_t index) {
  return absl::StrCat(parent, "[", index, "]");
}

std::string ShortJson(const json& value) {
  // Strings may come from elsewhere than the parser: bytes that are not UTF-8 are replaced.
  return Shorten(value.dump(-1, ' ', false, json::error_handler_t::replace), kMaxShownBytes);
}

const char* JsonTypeName(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "an array";
    case json::value_t::string:
      return "a string";
    case json::value_t::boolean:
      return "a boolean";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
      return "an integer";
    default:
      return "a number";
  }
}

}  // namespace shoal
