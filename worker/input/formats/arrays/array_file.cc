#include "worker/input/formats/arrays/array_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/json/json_errors.h"
#include "worker/input/files/decoded_stream.h"
#include "worker/input/files/file_content.h"

namespace shoal {
namespace {

// Plain files up to this size are copied. This includes the MNIST family's images and almost all
// labels.
constexpr uint64_t kMaxCopiedBytes = 64 << 20;

// Sets `head` to the bytes read for the header.
absl::StatusOr<ArrayHeader> ReadHeader(const std::string& path, const ReadContent& read,
                                       std::string* head) {
  head->resize(kMaxHeaderBytes);
  SHOAL_ASSIGN_OR_RETURN(const size_t head_bytes, read(*head));
  head->resize(head_bytes);
  absl::StatusOr<ArrayHeader> header = ParseArrayHeader(*head);
  if (!header.ok()) return WithSource(path, header.status());
  return header;
}

std::string Describe(const ArrayHeader& header) {
  return absl::StrCat("its header says ", ShapeToString(header.shape), " ",
                      ElementTypeName(header.format.type), " from byte ", header.data_offset,
                      " to byte ", header.file_bytes());
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArrayFile>> ArrayFile::Open(const std::string& path,
                                                           const std::vector<std::string>& roots) {
  uint64_t stored_bytes = 0;
  SHOAL_ASSIGN_OR_RETURN(
      FileDescriptor file,
      OpenRegularFile(path, roots, "expected an IDX or NPY file", &stored_bytes));
  SHOAL_ASSIGN_OR_RETURN(DecodedStream stream, DecodedStream::Open(file.get(), path));
  const ReadContent read = [&stream](std::span<char> out) { return stream.Read(out); };
  std::string head;
  const absl::StatusOr<ArrayHeader> header = ReadHeader(path, read, &head);
  if (!header.ok()) return header.status();

  if (!stream.compressed() && stored_bytes != header->file_bytes()) {
    return absl::DataLossError(
        absl::StrCat(path, ": ends at byte ", stored_bytes, "; ", Describe(*header)));
  }
  std::optional<PrivateCopy> copy;
  if (stream.compressed() || stored_bytes <= kMaxCopiedBytes) {
    absl::StatusOr<PrivateCopy> made = PrivateCopy::Make(head, read, header->file_bytes(), path);
    // A plain file works without a copy if there is no room for one.
    if (!made.ok() && stream.compressed()) return made.status();
    if (made.ok()) copy.emplace(*std::move(made));
  }
  return std::unique_ptr<ArrayFile>(new ArrayFile(path, std::move(file), *header, std::move(copy)));
}

absl::StatusOr<std::unique_ptr<ArrayFile>> ArrayFile::FromStream(const std::string& name,
                                                                 const ReadContent& read) {
  std::string head;
  SHOAL_ASSIGN_OR_RETURN(const ArrayHeader header, ReadHeader(name, read, &head));
  SHOAL_ASSIGN_OR_RETURN(PrivateCopy copy,
                         PrivateCopy::Make(head, read, header.file_bytes(), name));
  return std::unique_ptr<ArrayFile>(new ArrayFile(name, FileDescriptor(), header, std::move(copy)));
}

ArrayFile::ArrayFile(std::string path, FileDescriptor file, ArrayHeader header,
                     std::optional<PrivateCopy> copy)
    : path_(std::move(path)),
      file_(std::move(file)),
      header_(std::move(header)),
      row_shape_(header_.shape.begin() + 1, header_.shape.end()),
      row_elements_(static_cast<size_t>(ElementCount(row_shape_))),
      copy_(std::move(copy)) {}

std::string ArrayFile::ToString() const {
  return absl::StrCat(ShapeToString(header_.shape), " ", ElementTypeName(header_.format.type));
}

absl::Status ArrayFile::ReadRow(uint64_t index, FeatureSpan out) const {
  if (index >= rows() || out.size() != row_elements_) {
    return absl::OutOfRangeError(absl::StrCat(path_, ": there is no row ", index, " of ",
                                              out.size(), " numbers; the file has ", rows(),
                                              " rows of ", row_elements_));
  }
  const size_t row_bytes = row_elements_ * ElementBytes(header_.format.type);
  const uint64_t offset = header_.data_offset + index * row_bytes;
  if (!copy_.has_value()) {
    return out.bytes.empty() ? ReadFromFile(offset, out.floats)
                             : ReadBytes(offset, out.bytes.data(), row_bytes);
  }
  const char* const stored = copy_->bytes().data() + offset;
  if (out.bytes.empty()) {
    ConvertToFloat(header_.format, stored, out.floats);
  } else {
    std::memcpy(out.bytes.data(), stored, row_bytes);
  }
  return absl::OkStatus();
}

absl::Status ArrayFile::ReadFromFile(uint64_t offset, std::span<float> out) const {
  char buffer[32 << 10];
  const size_t element_bytes = ElementBytes(header_.format.type);
  while (!out.empty()) {
    const size_t elements = std::min(out.size(), sizeof(buffer) / element_bytes);
    SHOAL_RETURN_IF_ERROR(ReadBytes(offset, buffer, elements * element_bytes));
    ConvertToFloat(header_.format, buffer, out.first(elements));
    out = out.subspan(elements);
    offset += elements * element_bytes;
  }
  return absl::OkStatus();
}

absl::Status ArrayFile::ReadBytes(uint64_t offset, void* out, size_t size) const {
  const absl::Status read = ReadAt(file_, path_, offset, out, size);
  if (!absl::IsDataLoss(read)) return read;
  return absl::DataLossError(absl::StrCat(std::string(read.message()), "; ", Describe(header_),
                                          "; it was whole when it was opened"));
}

}  // namespace shoal
