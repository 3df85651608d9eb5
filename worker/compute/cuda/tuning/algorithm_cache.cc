#include "worker/compute/cuda/tuning/algorithm_cache.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/daemon/process/incarnation.h"
#include "common/files/durable_file.h"

namespace shoal::cuda {
namespace {

using Entries = std::vector<AlgorithmCache::Entry>;

constexpr std::string_view kForm = "shoal-plans-4\n";

std::optional<AlgorithmCache::Entry> ParseEntry(const std::string& line) {
  const std::vector<std::string> fields = absl::StrSplit(line, '\t');
  if (fields.size() != 5) return std::nullopt;
  return AlgorithmCache::Entry{{fields[0], fields[1], fields[2], fields[3]}, fields[4]};
}

std::string EntryText(const AlgorithmCache::Entry& entry) {
  const auto& [libraries, gpu, work, demands] = entry.key;
  return absl::StrJoin({libraries, gpu, work, demands, entry.choice}, "\t") + "\n";
}

std::string LastLine(const std::string& before) { return ChecksumText(Crc32c(before)) + "\n"; }

// Returns nothing if the content does not have the form.
std::optional<Entries> ParseFile(const std::string& content) {
  if (!content.starts_with(kForm) || !content.ends_with('\n')) return std::nullopt;
  const size_t last = content.rfind('\n', content.size() - 2) + 1;
  const std::string before = content.substr(0, last);
  if (content.substr(last) != LastLine(before)) return std::nullopt;
  Entries entries;
  std::vector<std::string> lines =
      absl::StrSplit(before.substr(kForm.size()), '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    std::optional<AlgorithmCache::Entry> entry = ParseEntry(line);
    if (!entry.has_value()) return std::nullopt;
    entries.push_back(*std::move(entry));
  }
  return entries;
}

std::string FileText(const Entries& entries) {
  std::vector<std::string> lines;
  size_t size = kForm.size() + LastLine("").size();
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    lines.push_back(EntryText(*entry));
    size += lines.back().size();
    if (size > AlgorithmCache::kMaxBytes) {
      lines.pop_back();
      break;
    }
  }
  std::reverse(lines.begin(), lines.end());
  const std::string before = absl::StrCat(std::string(kForm), absl::StrJoin(lines, ""));
  return before + LastLine(before);
}

// Returns nothing if the file is damaged; no entries if it does not exist.
absl::StatusOr<std::optional<Entries>> ReadEntries(const std::string& path) {
  const absl::StatusOr<std::string> content = ReadSmallFile(path, AlgorithmCache::kMaxBytes);
  if (absl::IsNotFound(content.status())) return Entries();
  if (absl::IsDataLoss(content.status())) return std::nullopt;  // too large
  SHOAL_RETURN_IF_ERROR(content.status());
  return ParseFile(*content);
}

void Put(const AlgorithmCache::Entry& entry, Entries& entries) {
  std::erase_if(entries,
                [&](const AlgorithmCache::Entry& other) { return other.key == entry.key; });
  entries.push_back(entry);
}

// Writes to a temporary name first, which no other process uses.
absl::Status Write(const std::string& path, const std::string& content) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  SHOAL_RETURN_IF_ERROR(MakeDirectories(directory));
  const std::string beside = absl::StrCat(path, ".", DrawIncarnation());
  absl::Status written = WriteNewFile(beside, content);
  if (written.ok()) written = RealFileSystem()->Rename(beside, path);
  if (!written.ok()) (void)RealFileSystem()->RemoveFile(beside);
  return written;
}

}  // namespace

AlgorithmCache::AlgorithmCache(std::string path)
    : path_(std::move(path)), writable_(!path_.empty()) {
  if (!writable_) return;
  absl::StatusOr<std::optional<Entries>> read = ReadEntries(path_);
  if (!read.ok()) {
    writable_ = false;
    warning_ = absl::StrCat("cannot read the file of plans, so it is not used: ",
                            std::string(read.status().message()));
  } else if (read->has_value()) {
    entries_ = **std::move(read);
  } else {
    warning_ = absl::StrCat(path_,
                            ": not a whole file of plans; it is ignored, and the next "
                            "chosen plan replaces it");
  }
}

std::optional<std::string> AlgorithmCache::Find(const AlgorithmKey& key) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  if (found == entries_.end()) return std::nullopt;
  return found->choice;
}

absl::Status AlgorithmCache::Keep(const AlgorithmKey& key, const std::string& choice) {
  Put({key, choice}, entries_);
  Put({key, choice}, found_);
  if (!writable_) return absl::OkStatus();
  // Keep the entries that other processes have added meanwhile, and add again those of this process
  // that are missing.
  absl::StatusOr<std::optional<Entries>> there = ReadEntries(path_);
  absl::Status kept = there.status();
  if (kept.ok()) {
    Entries all = there->has_value() ? **std::move(there) : Entries();
    for (const Entry& entry : found_) Put(entry, all);
    kept = Write(path_, FileText(all));
  }
  writable_ = kept.ok();
  return kept;
}

std::string AlgorithmCachePath(const char* cache_home, const char* home) {
  const auto is_absolute = [](const char* path) { return path != nullptr && path[0] == '/'; };
  constexpr std::string_view kName = "shoal/plans";
  if (is_absolute(cache_home)) return absl::StrCat(cache_home, "/", std::string(kName));
  if (is_absolute(home)) return absl::StrCat(home, "/.cache/", std::string(kName));
  return "";
}

}  // namespace shoal::cuda
