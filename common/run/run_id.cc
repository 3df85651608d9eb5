#include "common/run/run_id.h"

#include <algorithm>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/files/durable_file.h"

namespace shoal {
namespace {

constexpr size_t kDigits = 32;
constexpr uint64_t kMaxIdBytes = 1 << 10;

}  // namespace

std::string DrawRunId() {
  std::random_device random;
  std::string id;
  for (size_t i = 0; i < kDigits / 8; ++i) absl::StrAppendFormat(&id, "%08x", random());
  return id;
}

absl::StatusOr<std::string> ReadOrMakeRunId(const std::string& path, FileSystem* files) {
  const absl::StatusOr<std::string> text = ReadSmallFile(path, kMaxIdBytes, files);
  if (text.ok() && text->size() == kDigits + 1 && text->back() == '\n' &&
      std::all_of(text->begin(), text->end() - 1, absl::ascii_isxdigit)) {
    return text->substr(0, kDigits);
  }
  if (!text.ok() && !absl::IsNotFound(text.status()) && !absl::IsDataLoss(text.status()))
    return text.status();
  const std::string id = DrawRunId();
  SHOAL_RETURN_IF_ERROR(ReplaceFile(path, id + "\n", files));
  return id;
}

}  // namespace shoal
