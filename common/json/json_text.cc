#include "common/json/json_text.h"

#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/durable_file.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr size_t kMaxShownBytes = 80;

// Cuts `text` to at most `limit` bytes, between UTF-8 characters, and marks the cut with dots.
std::string Shorten(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// Finds problems that RFC 8259 allows: duplicate keys and excessive depth. It follows the parser's
// events before any value is built. json::parse with a callback would search the whole array again
// for each element.
class StructureCheck : public nlohmann::json_sax<json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(json::number_integer_t) override { return true; }
  bool number_unsigned(json::number_unsigned_t) override { return true; }
  bool number_float(json::number_float_t, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(json::binary_t&) override { return true; }
  bool start_object(size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  // The later parse reports the error.
  bool parse_error(size_t, const std::string&, const json::exception&) override { return false; }

  bool key(std::string& key) override {
    Level& object = levels_.back();
    object.key = key;
    if (object.keys.insert(key).second || !repeated_.empty()) return true;
    repeated_ = "$";
    for (const Level& open : levels_) {
      if (open.key.has_value()) repeated_ = JsonPath(repeated_, *open.key);
    }
    return true;
  }

  bool too_deep() const { return too_deep_; }
  // The path of the first duplicate key; empty if there is none.
  const std::string& repeated() const { return repeated_; }

 private:
  // An open object or array. An array has no keys.
  struct Level {
    std::set<std::string> keys;
    std::optional<std::string> key;  // the latest key
  };

  // Returns false to stop the parser.
  bool Open() {
    too_deep_ = levels_.size() >= kMaxJsonDepth;
    if (!too_deep_) levels_.emplace_back();
    return !too_deep_;
  }
  bool Close() {
    levels_.pop_back();
    return true;
  }

  std::vector<Level> levels_;
  std::string repeated_;
  bool too_deep_ = false;
};

// "[json.exception.parse_error.101] parse error at line 1, ..." without the library's tag.
std::string ParserMessage(const json::exception& error) {
  std::string text = error.what();
  if (const size_t end = text.find("] ");
      text.rfind("[json.exception", 0) == 0 && end != text.npos) {
    text = text.substr(end + 2);
  }
  return Shorten(text, 300);
}

// "an object", "a string", "an integer".
const char* TypeName(const json& value) {
  switch (value.type()) {
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

}  // namespace

absl::StatusOr<std::string> ReadJsonFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadSmallFile(path, kMaxJsonBytes);
  if (text.ok()) return text;
  // Errors about users' files begin with the file.
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
  json::sax_parse(text, &check);
  if (check.too_deep()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": is nested deeper than ", kMaxJsonDepth, " levels"));
  }
  json value;
  try {
    value = json::parse(text);
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": is not JSON: ", ParserMessage(error)));
  }
  if (!check.repeated().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": ", check.repeated(), ": this key comes twice in one object"));
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
  // Strings may not come from the parser. Replace bytes that are not UTF-8.
  return Shorten(value.dump(-1, ' ', false, json::error_handler_t::replace), kMaxShownBytes);
}

std::string ShortJsonAndType(const json& value) {
  return value.is_null() ? "null" : absl::StrCat(ShortJson(value), ", ", TypeName(value));
}

std::string NumberText(double value) {
  std::string text = json(value).dump();
  if (text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0) text.resize(text.size() - 2);
  return text;
}

}  // namespace shoal
