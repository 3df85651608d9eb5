#include "worker/compute/cuda/cudnn/plan_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/files/durable_file.h"

namespace shoal::cuda {
namespace {

constexpr char kForm[] = "shoal-plan-1";
// Of some 200 bytes a line: all that the models of a cluster have for years.
constexpr uint64_t kLargestFile = 64 << 20;

struct Entry {
  PlanKey key;
  EngineConfig config;
};

std::optional<Entry> ParseLine(const std::string& line) {
  const size_t tab = line.find('\t');
  if (tab == std::string::npos) return std::nullopt;
  const std::string entry = line.substr(tab + 1);
  if (line.substr(0, tab) != ChecksumText(Crc32c(entry))) return std::nullopt;
  const std::vector<std::string> fields = absl::StrSplit(entry, '\t');
  if (fields.size() != 6 || fields[0] != kForm) return std::nullopt;
  const std::optional<EngineConfig> config = ParseEngineConfig(fields[5]);
  if (!config.has_value()) return std::nullopt;
  return Entry{{fields[1], fields[2], fields[3], fields[4]}, *config};
}

// Of either end of the line: what another process that was killed left without one.
std::string LineOf(const PlanKey& key, const EngineConfig& config) {
  const std::string entry = absl::StrJoin(
      {std::string(kForm), key.cudnn, key.gpu, key.graph, key.demands, EngineConfigText(config)},
      "\t");
  return absl::StrCat("\n", ChecksumText(Crc32c(entry)), "\t", entry, "\n");
}

// By one write, before or behind which those of others are.
absl::Status Append(const std::string& path, const std::string& line) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return FileError(errno, "write", path);
  const ssize_t written = write(file, line.data(), line.size());
  const int error = written < 0 ? errno : ENOSPC;
  close(file);
  if (written == static_cast<ssize_t>(line.size())) return absl::OkStatus();
  return FileError(error, "write", path);
}

}  // namespace

PlanCache::PlanCache(std::string path) : path_(std::move(path)), writable_(!path_.empty()) {
  if (writable_) Read();
}

void PlanCache::Read() {
  const absl::StatusOr<std::string> content = ReadSmallFile(path_, kLargestFile);
  if (absl::IsNotFound(content.status())) return;
  if (!content.ok()) {
    writable_ = false;
    warning_ = absl::StrCat("the cache of cuDNN's plans is not used: ",
                            std::string(content.status().message()));
    return;
  }
  int lines = 0, damaged = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(*content, '\n'))) {
    if (line.empty()) continue;
    ++lines;
    if (const std::optional<Entry> entry = ParseLine(line); entry.has_value()) {
      configs_[entry->key] = entry->config;
    } else {
      ++damaged;
    }
  }
  if (damaged == 0) return;
  warning_ = absl::StrCat(path_, ": ", damaged, " of ", lines,
                          " entries of this cache of cuDNN's plans are damaged and passed over");
  // Ours begins with the end of a line. Whatever else it is, it is not ours to add to.
  writable_ = content->front() == '\n';
  if (!writable_)
    absl::StrAppend(&warning_, "; nothing is added to it. Remove it to have a new one");
}

std::optional<EngineConfig> PlanCache::Find(const PlanKey& key) const {
  const auto found = configs_.find(key);
  if (found == configs_.end()) return std::nullopt;
  return found->second;
}

absl::Status PlanCache::Keep(const PlanKey& key, const EngineConfig& config) {
  configs_[key] = config;
  if (!writable_) return absl::OkStatus();
  const absl::Status appended = Append(path_, LineOf(key, config));
  writable_ = appended.ok();
  return appended;
}

}  // namespace shoal::cuda
