#include "worker/input/files/temporary_table.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/files/temporary_file.h"

namespace shoal {
namespace {

constexpr size_t kTableBufferBytes = 256 << 10;

}  // namespace

absl::StatusOr<TemporaryTable> TemporaryTable::Make(const std::string& what, MeasureDisk measure) {
  FileDescriptor file = OpenTemporaryFile(TemporaryDirectory());
  const int error = errno;
  TemporaryTable table(what, std::move(file), std::move(measure));
  if (!table.file_.ok()) return table.Error(error);
  return table;
}

TemporaryTable::TemporaryTable(std::string what, FileDescriptor file, MeasureDisk measure)
    : what_(std::move(what)), file_(std::move(file)), measure_(std::move(measure)) {}

TemporaryTable::TemporaryTable(TemporaryTable&& other) noexcept
    : what_(std::move(other.what_)),
      file_(std::move(other.file_)),
      measure_(std::move(other.measure_)),
      buffer_(std::move(other.buffer_)),
      size_(other.size_),
      bytes_(std::exchange(other.bytes_, std::span<const char>())) {}

TemporaryTable::~TemporaryTable() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

absl::Status TemporaryTable::Append(std::span<const char> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  size_ += bytes.size();
  return buffer_.size() < kTableBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status TemporaryTable::Flush() {
  if (const int error = CheckDiskSpace(file_, buffer_.size(), measure_); error != 0)
    return Error(error);
  for (size_t done = 0; done < buffer_.size();) {
    const ssize_t count = write(file_.get(), buffer_.data() + done, buffer_.size() - done);
    if (count < 0 && errno != EINTR) return Error(errno);
    if (count > 0) done += static_cast<size_t>(count);
  }
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status TemporaryTable::Finish() {
  SHOAL_RETURN_IF_ERROR(Flush());
  buffer_ = {};
  if (size_ == 0) return absl::OkStatus();
  void* address = mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_.get(), 0);
  if (address == MAP_FAILED) return Error(errno);
  bytes_ = std::span(static_cast<const char*>(address), size_);
  return absl::OkStatus();
}

absl::Status TemporaryTable::Error(int error) const { return NoTemporaryFile(error, what_, size_); }

}  // namespace shoal
