#include "worker/input/dataset/cached_dataset.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/format_bytes.h"
#include "common/memory/memory_limit.h"
#include "worker/input/files/temporary_file.h"

namespace shoal {
namespace {

size_t NumbersOfExample(const Dataset& dataset) {
  int64_t numbers = ElementCount(dataset.label_shape());
  for (const Feature& feature : dataset.features()) numbers += ElementCount(feature.shape);
  return static_cast<size_t>(numbers);
}

absl::StatusOr<void*> MapMemory(uint64_t bytes, const std::string& what) {
  const MemoryLimit limit = ReadMemoryLimit();
  if (bytes > limit.bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ", but ", limit.text, "; \"cache\": \"disk\" keeps them in a file"));
  }
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
              -1, 0);
}

absl::StatusOr<void*> MapFile(uint64_t bytes, const std::string& what) {
  const std::string directory = TemporaryDirectory();
  const FileDescriptor file = OpenTemporaryFile(directory);
  // Allocate all space now. A mapping on a full disk would cause SIGBUS.
  int error = file.ok() ? CheckDiskSpace(file, bytes) : errno;
  if (error == 0) error = posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  if (error != 0) {
    return absl::ErrnoToStatus(
        error, absl::StrCat(what, "; cannot make a temporary file of that size in ", directory,
                            "; set TMPDIR to another directory"));
  }
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> CachedDataset::Make(std::unique_ptr<Dataset> original,
                                                             Place place) {
  const uint64_t row_bytes = NumbersOfExample(*original) * sizeof(float);
  if (original->size() > std::numeric_limits<int64_t>::max() / row_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(original->LabelSource(), ": a cache of ", original->size(), " examples of ",
                     FormatBytes(row_bytes), " exceeds 2^63 bytes; leave \"cache\" out"));
  }
  const uint64_t bytes = original->size() * row_bytes;
  const std::string what = absl::StrCat(original->LabelSource(), ": the cache of ",
                                        original->size(), " examples takes ", FormatBytes(bytes));
  SHOAL_ASSIGN_OR_RETURN(void* const address,
                         place == Place::kMemory ? MapMemory(bytes, what) : MapFile(bytes, what));
  if (address == MAP_FAILED) return absl::ErrnoToStatus(errno, what);
  return std::unique_ptr<Dataset>(new CachedDataset(
      std::move(original), place, std::span(static_cast<float*>(address), bytes / sizeof(float))));
}

CachedDataset::CachedDataset(std::unique_ptr<Dataset> original, Place place, std::span<float> rows)
    : DecoratedDataset(std::move(original)),
      place_(place),
      rows_(rows),
      row_numbers_(NumbersOfExample(*this)),
      states_(std::make_unique<std::atomic<Row>[]>(size())) {}

CachedDataset::~CachedDataset() { munmap(rows_.data(), rows_.size_bytes()); }

DatasetMemory CachedDataset::memory() const {
  DatasetMemory memory = original().memory();
  memory.held += size() * sizeof(states_[0]);
  if (place_ == Place::kMemory) memory.held += rows_.size_bytes();
  return memory;
}

absl::Status CachedDataset::Read(uint64_t index, std::span<const FeatureSpan> features,
                                 std::span<float> label) const {
  if (index >= size()) return original().Read(index, features, label);
  std::atomic<Row>& state = states_[index];
  float* row = rows_.data() + index * row_numbers_;
  if (state.load(std::memory_order_acquire) == Row::kKept) {
    for (const FeatureSpan& feature : features) {
      std::copy_n(row, feature.floats.size(), feature.floats.data());
      std::copy_n(row, feature.bytes.size(), feature.bytes.data());
      row += feature.size();
    }
    std::copy_n(row, label.size(), label.data());
    return absl::OkStatus();
  }
  SHOAL_RETURN_IF_ERROR(original().Read(index, features, label));
  Row empty = Row::kEmpty;
  if (!state.compare_exchange_strong(empty, Row::kWriting, std::memory_order_relaxed)) {
    return absl::OkStatus();
  }
  for (const FeatureSpan& feature : features) {
    row = std::copy(feature.floats.begin(), feature.floats.end(), row);
    row = std::copy(feature.bytes.begin(), feature.bytes.end(), row);
  }
  std::copy(label.begin(), label.end(), row);
  state.store(Row::kKept, std::memory_order_release);
  return absl::OkStatus();
}

}  // namespace shoal
