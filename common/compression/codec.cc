#include "common/compression/codec.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/text/printable.h"
#include "common/compression/codec_table.h"
#include "common/json/json_text.h"

namespace shoal {

using nlohmann::json;

absl::Status Codec::CheckSize(size_t bytes, size_t count) const {
  if (bytes == EncodedBytes(count)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(config_, ": ", bytes, " bytes for ", count,
                                                 " values, which take ", EncodedBytes(count)));
}

absl::Status Codec::Damaged(const std::string& what) const {
  return absl::InvalidArgumentError(absl::StrCat(config_, ": ", what));
}

std::unique_ptr<const Codec> ReadCodec(const json& value, const std::string& path,
                                       Direction direction, JsonErrors* errors) {
  if (!value.is_string() && !value.is_object()) {
    errors->Add(path, absl::StrCat("is ", ShortJsonAndType(value),
                                   "; must be the name of a codec, for example \"int8\""));
    return nullptr;
  }
  const json object = value.is_object() ? value : json::object({{"name", value}});
  const std::string name_path = value.is_object() ? JsonPath(path, "name") : path;
  JsonObject options(object, path, errors);
  const json* name = options.Require("name", "the name of a codec, for example \"int8\"");
  if (name == nullptr) return nullptr;
  const std::string text = name->is_string() ? name->get<std::string>() : "";
  for (const CodecType& type : CodecTable()) {
    if (text != type.name) continue;
    if (direction == Direction::kPull && !type.for_values) {
      errors->Add(name_path, absl::StrCat("is \"", text,
                                          "\", which loses too much of the values that workers "
                                          "compute with; use it for $.compression.push"));
      return nullptr;
    }
    std::unique_ptr<const Codec> codec = type.make(options);
    options.RejectUnknownKeys();
    return codec;
  }
  errors->Add(name_path, absl::StrCat("is ", ShortJson(*name), ", a codec that Shoal lacks",
                                      SuggestName(text, CodecNames(direction))));
  return nullptr;
}

absl::StatusOr<std::shared_ptr<const Codec>> MakeCodec(const std::string& config,
                                                       Direction direction,
                                                       const std::string& path) {
  if (config.empty()) return nullptr;
  const json value = json::parse(config, nullptr, false);
  JsonErrors errors("");
  std::shared_ptr<const Codec> codec =
      ReadCodec(value.is_object() ? value : json(config), path, direction, &errors);
  if (!errors.empty()) return absl::InvalidArgumentError(errors.ToStatus().message());
  return codec;
}

}  // namespace shoal
