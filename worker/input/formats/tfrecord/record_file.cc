#include "worker/input/formats/tfrecord/record_file.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "worker/input/files/file_content.h"

namespace shoal {
namespace {

constexpr uint64_t kHeadBytes = 12;  // the length and its checksum
constexpr uint64_t kTailBytes = 4;   // the data's checksum
constexpr uint64_t kWindowBytes = 64 << 10;

template <typename Number>
Number Load(const uint8_t* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8; }

}  // namespace

absl::StatusOr<RecordFile> RecordFile::Open(const std::string& path,
                                            const std::vector<std::string>& roots) {
  uint64_t size = 0;
  SHOAL_ASSIGN_OR_RETURN(FileDescriptor file,
                         OpenRegularFile(path, roots, "expected a TFRecord file", &size));
  uint8_t magic[2] = {};
  if (size >= sizeof(magic)) SHOAL_RETURN_IF_ERROR(ReadAt(file, path, 0, magic, sizeof(magic)));
  if (magic[0] == 0x1f && magic[1] == 0x8b) {
    return absl::UnimplementedError(absl::StrCat(
        path,
        ": is compressed by gzip; expected a plain TFRecord file, whose records can be read in "
        "any order"));
  }
  return RecordFile(path, std::move(file), size);
}

absl::StatusOr<uint64_t> RecordFile::Length(uint64_t offset, const uint8_t* head) const {
  const auto length = Load<uint64_t>(head);
  const auto stored = Load<uint32_t>(head + sizeof(length));
  if (const uint32_t computed = Masked(Crc32c(0, head, sizeof(length))); stored != computed) {
    return absl::DataLossError(absl::StrCat(
        path_, ": at byte ", offset, ": the checksum of a record's length is ",
        absl::Hex(stored, absl::kZeroPad8), "; expected ", absl::Hex(computed, absl::kZeroPad8)));
  }
  if (length > ReadingMemory::kMaxEncoded) {
    return absl::DataLossError(absl::StrCat(path_, ": at byte ", offset, ": a record of ", length,
                                            " bytes; expected at most ",
                                            ReadingMemory::kMaxEncoded));
  }
  if (length > size_ - offset - kHeadBytes || size_ - offset - kHeadBytes - length < kTailBytes) {
    return absl::DataLossError(absl::StrCat(path_, ": ends at byte ", size_,
                                            " within the record of ", length,
                                            " bytes that begins at byte ", offset));
  }
  return length;
}

absl::Status RecordFile::Scan(const std::function<absl::Status(uint64_t offset)>& on_record) const {
  std::vector<uint8_t> window;
  uint64_t window_begin = 0;
  for (uint64_t offset = 0; offset < size_;) {
    if (size_ - offset < kHeadBytes) {
      return absl::DataLossError(absl::StrCat(path_, ": ends at byte ", size_,
                                              " within the head of the record that begins at byte ",
                                              offset));
    }
    // A window holds many small records. For large records, it is one page.
    if (offset + kHeadBytes > window_begin + window.size() || offset < window_begin) {
      const bool in_sequence = offset < window_begin + window.size() + kWindowBytes;
      window.resize(std::min(size_ - offset, in_sequence ? kWindowBytes : uint64_t{4096}));
      window_begin = offset;
      SHOAL_RETURN_IF_ERROR(ReadAt(file_, path_, offset, window.data(), window.size()));
    }
    SHOAL_ASSIGN_OR_RETURN(const uint64_t length,
                           Length(offset, window.data() + (offset - window_begin)));
    SHOAL_RETURN_IF_ERROR(on_record(offset));
    offset += kHeadBytes + length + kTailBytes;
  }
  return absl::OkStatus();
}

absl::Status RecordFile::Read(uint64_t offset, EncodedBytes* out) const {
  uint8_t head[kHeadBytes];
  SHOAL_RETURN_IF_ERROR(ReadAt(file_, path_, offset, head, sizeof(head)));
  SHOAL_ASSIGN_OR_RETURN(const uint64_t length, Length(offset, head));
  SHOAL_RETURN_IF_ERROR(out->Resize(length, path_));
  uint8_t* const data = out->bytes().data();
  SHOAL_RETURN_IF_ERROR(ReadAt(file_, path_, offset + kHeadBytes, data, length));
  uint8_t tail[kTailBytes];
  SHOAL_RETURN_IF_ERROR(ReadAt(file_, path_, offset + kHeadBytes + length, tail, sizeof(tail)));
  const auto stored = Load<uint32_t>(tail);
  if (const uint32_t computed = Masked(Crc32c(0, data, length)); stored != computed) {
    return absl::DataLossError(absl::StrCat(
        path_, ": the record at byte ", offset, ": the checksum of its data is ",
        absl::Hex(stored, absl::kZeroPad8), "; expected ", absl::Hex(computed, absl::kZeroPad8)));
  }
  return absl::OkStatus();
}

}  // namespace shoal
