#include "common/checkpoint/manifest.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/files/durable_file.h"
#include "common/json/json_text.h"

// manifest.json is one JSON object of this text:
//
//   manifest = summed DIGITS closing
//   summed   = "{" members "," NEWLINE `  "checksum": "`
//   DIGITS   = CRC-32C of all bytes of `summed`, 8 hexadecimal digits, lower case
//   closing  = `"` NEWLINE "}" NEWLINE, the end of the file
//   members  = those written by ToText below, each once
//
// This covers every byte: the checksum covers it, it is a digit of the checksum, or it is fixed.
// The checksum is at the same place in all format versions; members may change with the version.

namespace shoal {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr char kBeforeChecksum[] = ",\n  \"checksum\": \"";
constexpr char kClosing[] = "\"\n}\n";
constexpr size_t kChecksumDigits = 8;
// A checkpoint has one file per GiB, and a few more.
constexpr size_t kMaxFiles = 10'000;
// Max seconds of an epoch: some thirty years.
constexpr double kMaxSeconds = 1e9;

// JSON has only finite numbers; null stands for the others.
bool IsReal(const Json& json) { return json.is_number() || json.is_null(); }
double RealOf(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

// Reads the members of one object by type; keeps the first error as the status.
class Members {
 public:
  Members(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}
  const absl::Status& status() const { return status_; }

  std::string String(const char* name) {
    const Json* member = Find(name, "a string", &Json::is_string);
    return member == nullptr ? std::string() : member->get<std::string>();
  }
  uint64_t Number(const char* name) {
    const Json* member = Find(name, "a number from 0 on", &Json::is_number_unsigned);
    return member == nullptr ? 0 : member->get<uint64_t>();
  }
  uint32_t Checksum(const char* name) {
    const Json* member = Find(name, "8 hexadecimal digits", &Json::is_string);
    if (member == nullptr) return 0;
    const std::string text = member->get<std::string>();
    uint32_t value = 0;
    for (const char digit : text) {
      value = value * 16 + static_cast<uint32_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    if (ChecksumText(value) == text) return value;
    Fail(name, "8 hexadecimal digits");
    return 0;
  }
  double Real(const char* name) {
    const Json* member = Any(name);
    if (member != nullptr && IsReal(*member)) return RealOf(*member);
    Fail(name, "a number or null");
    return 0;
  }
  // Returns an empty array if it is missing.
  const Json& Array(const char* name) {
    static const Json kNone = Json::array();
    const Json* member = Find(name, "a list", &Json::is_array);
    return member == nullptr ? kNone : *member;
  }
  const Json* Any(const char* name) {
    const auto found = object_.is_object() ? object_.find(name) : object_.end();
    return found == object_.end() ? nullptr : &*found;
  }
  void Fail(const char* name, const char* expected) {
    if (!status_.ok()) return;
    status_ = absl::DataLossError(absl::StrCat(where_, ".", name, " is not ", expected));
  }

 private:
  const Json* Find(const char* name, const char* expected, bool (Json::*is)() const noexcept) {
    const auto found = object_.is_object() ? object_.find(name) : object_.end();
    if (found == object_.end() || !((*found).*is)()) {
      Fail(name, expected);
      return nullptr;
    }
    return &*found;
  }
  const Json& object_;
  const std::string where_;
  absl::Status status_;
};

// Returns whether it names a file of the directory itself. Otherwise a manifest could lead
// elsewhere.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name != kManifestName &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

absl::StatusOr<std::vector<Manifest::File>> ParseFiles(const Json& list) {
  if (list.size() > kMaxFiles) {
    return absl::DataLossError(
        absl::StrCat("$.files has ", list.size(), " entries; at most ", kMaxFiles, " are read"));
  }
  std::vector<Manifest::File> files;
  std::set<std::string> names;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = absl::StrCat("$.files[", i, "]");
    Members members(list[i], where);
    Manifest::File file;
    file.name = members.String("name");
    file.size_bytes = members.Number("size_bytes");
    file.crc32c = members.Checksum("crc32c");
    SHOAL_RETURN_IF_ERROR(members.status());
    if (!IsPlainName(file.name) || !names.insert(file.name).second) {
      return absl::DataLossError(absl::StrCat(where, ".name is \"", file.name,
                                              "\", not the name of another file of the directory"));
    }
    files.push_back(std::move(file));
  }
  return files;
}

absl::StatusOr<Manifest::EpochSums> ParseEpochSums(const Json& json) {
  Members members(json, "$.epoch_sums");
  Manifest::EpochSums sums;
  sums.examples = members.Number("examples");
  sums.loss = members.Real("loss");
  const Json& metrics = members.Array("metrics");
  sums.seconds = members.Real("seconds");
  if (!(sums.seconds >= 0 && sums.seconds <= kMaxSeconds)) {
    members.Fail("seconds", "a number from 0 to 1e9");
  }
  SHOAL_RETURN_IF_ERROR(members.status());
  for (const Json& sum : metrics) {
    if (!IsReal(sum)) return absl::DataLossError("$.epoch_sums.metrics is not a list of numbers");
    sums.metrics.push_back(RealOf(sum));
  }
  return sums;
}

absl::StatusOr<Manifest> ParseMembers(const Json& json) {
  Members members(json, "$");
  Manifest manifest;
  const uint64_t format_version = members.Number("format_version");
  manifest.program_version = members.String("program_version");
  SHOAL_RETURN_IF_ERROR(members.status());
  if (format_version > Manifest::kFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it has format version ", format_version, ", written by Shoal ", manifest.program_version,
        "; this is Shoal ", kVersion, ", which reads versions up to ", Manifest::kFormatVersion,
        ". Use the Shoal that wrote it, or a newer one"));
  }
  manifest.format_version = static_cast<int>(format_version);
  manifest.job_name = members.String("job_name");
  manifest.job_fingerprint = members.Checksum("job_fingerprint");
  manifest.timeline = members.Number("timeline");
  manifest.cut_step = members.Number("cut_step");
  manifest.total_steps = members.Number("total_steps");
  manifest.epoch = members.Number("epoch");
  manifest.epoch_position = members.Number("epoch_position");
  if (const Json* sums = members.Any("epoch_sums"); sums != nullptr) {
    SHOAL_ASSIGN_OR_RETURN(manifest.epoch_sums, ParseEpochSums(*sums));
    if (manifest.epoch_sums.examples > manifest.epoch_position) {
      members.Fail("epoch_sums.examples", "at most $.epoch_position");
    }
  }
  if (members.Any("training_examples") != nullptr) {
    manifest.training_examples = members.Number("training_examples");
    manifest.test_examples = members.Number("test_examples");
  }
  for (const Json& slot : members.Array("slots")) {
    if (!slot.is_string()) {
      members.Fail("slots", "a list of names");
      break;
    }
    manifest.slots.push_back(slot.get<std::string>());
  }
  if (members.Any("not_finite") != nullptr) manifest.not_finite = members.String("not_finite");
  const Json& files = members.Array("files");
  SHOAL_RETURN_IF_ERROR(members.status());
  if (const Json* shard_map = members.Any("shard_map"); shard_map != nullptr) {
    manifest.shard_map = shard_map->is_string() ? shard_map->get<std::string>() : shard_map->dump();
  }
  SHOAL_ASSIGN_OR_RETURN(manifest.files, ParseFiles(files));
  return manifest;
}

}  // namespace

uint64_t StoredCheckpoint::size_bytes() const {
  uint64_t size = 0;
  for (const Manifest::File& file : manifest.files) size += file.size_bytes;
  return size;
}

std::string Manifest::ToText() const {
  OrderedJson json;
  json["format_version"] = format_version;
  json["program_version"] = program_version;
  json["job_name"] = job_name;
  json["job_fingerprint"] = ChecksumText(job_fingerprint);
  json["timeline"] = timeline;
  json["cut_step"] = cut_step;
  json["total_steps"] = total_steps;
  json["epoch"] = epoch;
  json["epoch_position"] = epoch_position;
  if (epoch_sums.examples > 0) {
    json["epoch_sums"] = {{"examples", epoch_sums.examples},
                          {"loss", epoch_sums.loss},
                          {"metrics", epoch_sums.metrics},
                          {"seconds", epoch_sums.seconds}};
  }
  if (training_examples > 0) {
    json["training_examples"] = training_examples;
    json["test_examples"] = test_examples;
  }
  json["slots"] = slots;
  if (!finite()) json["not_finite"] = not_finite;
  // Embeds the map only if it can be parsed again one level deeper, as in the manifest. Otherwise
  // stores its text.
  const absl::StatusOr<Json> map = ParseJson(absl::StrCat("[", shard_map, "]"), "shard map");
  const bool embeds = map.ok() && map->size() == 1 && map->front().is_structured();
  json["shard_map"] = embeds ? OrderedJson::parse(shard_map) : OrderedJson(shard_map);
  json["files"] = OrderedJson::array();
  for (const File& file : files) {
    OrderedJson entry;
    entry["name"] = file.name;
    entry["size_bytes"] = file.size_bytes;
    entry["crc32c"] = ChecksumText(file.crc32c);
    json["files"].push_back(std::move(entry));
  }
  std::string text = json.dump(2);
  text.resize(text.size() - 2);  // the closing brace and the newline before it
  text += kBeforeChecksum;
  return absl::StrCat(text, ChecksumText(Crc32c(text)), kClosing);
}

absl::StatusOr<Manifest> Manifest::Parse(const std::string& text, const std::string& path) {
  const size_t tail = kChecksumDigits + sizeof(kClosing) - 1;
  const size_t before = sizeof(kBeforeChecksum) - 1;
  if (text.size() < before + tail ||
      text.compare(text.size() - tail - before, before, kBeforeChecksum) != 0 ||
      text.compare(text.size() - (sizeof(kClosing) - 1), std::string::npos, kClosing) != 0) {
    return absl::DataLossError(
        absl::StrCat(path, " is damaged or cut off: it does not end with its checksum"));
  }
  const size_t summed = text.size() - tail;
  const std::string expected = ChecksumText(Crc32c(0, text.data(), summed));
  const std::string written = text.substr(summed, kChecksumDigits);
  if (written != expected) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: it says that its checksum is \"",
                                            written, "\", but it is ", expected));
  }
  // The checksum is right, so its writer wrote this text.
  const absl::StatusOr<Json> json = ParseJson(text, path);
  if (!json.ok()) return absl::DataLossError(std::string(json.status().message()));
  absl::StatusOr<Manifest> manifest = ParseMembers(*json);
  if (!manifest.ok()) {
    return absl::Status(
        manifest.status().code(),
        absl::StrCat(path, " cannot be used: ", std::string(manifest.status().message())));
  }
  return manifest;
}

absl::StatusOr<Manifest> Manifest::Read(const std::string& directory, FileSystem* files) {
  const std::string path = absl::StrCat(directory, "/", kManifestName);
  const absl::StatusOr<std::string> text = ReadSmallFile(path, kMaxJsonBytes, files);
  // A directory or a dangling link in its place is damage, not a newer Shoal.
  if (absl::IsFailedPrecondition(text.status()))
    return absl::DataLossError(std::string(text.status().message()));
  SHOAL_RETURN_IF_ERROR(text.status());
  return Parse(*text, path);
}

}  // namespace shoal
