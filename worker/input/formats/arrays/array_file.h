#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "worker/input/dataset/feature.h"
#include "worker/input/files/file_descriptor.h"
#include "worker/input/files/private_copy.h"
#include "worker/input/formats/arrays/array_header.h"

namespace shoal {

// An array in an IDX or NPY file, plain or gzipped. It is read by rows, the entries along its first
// axis.
//
// Another process may shorten a file while it is read. Under a mapping, this causes SIGBUS, which
// ends the process. With pread(2), it is an error with the file's name. But a system call takes
// about 0.5 µs, more than converting a 28x28 image. Compressed and small files are therefore copied
// once (PrivateCopy) and read through memory. Large files, whose rows are usually large too, are
// read with pread. Immutable after opening, thread-safe.
class ArrayFile {
 public:
  // `roots` as for OpenRegularFile(). Errors name the file, the offset and the expected content. A
  // missing file is kNotFound.
  static absl::StatusOr<std::unique_ptr<ArrayFile>> Open(const std::string& path,
                                                         const std::vector<std::string>& roots);

  // The same for content from another source, which is copied. `name` is for messages.
  static absl::StatusOr<std::unique_ptr<ArrayFile>> FromStream(const std::string& name,
                                                               const ReadContent& read);

  const std::string& path() const { return path_; }
  uint64_t rows() const { return static_cast<uint64_t>(header_.shape[0]); }
  // Shape of one row; {} if the array has one axis.
  const Shape& row_shape() const { return row_shape_; }

  // Whether its elements are whole numbers from 0 to 255.
  bool bytes() const { return header_.format.type == ElementType::kU8; }

  // "(60000, 28, 28) u8".
  std::string ToString() const;

  // Writes row `index`, as float32, or as bytes if bytes(). Requires that `out` has
  // ElementCount(row_shape()) elements.
  absl::Status ReadRow(uint64_t index, FeatureSpan out) const;

 private:
  ArrayFile(std::string path, FileDescriptor file, ArrayHeader header,
            std::optional<PrivateCopy> copy);
  absl::Status ReadFromFile(uint64_t offset, std::span<float> out) const;
  absl::Status ReadBytes(uint64_t offset, void* out, size_t size) const;

  const std::string path_;
  const FileDescriptor file_;
  const ArrayHeader header_;
  const Shape row_shape_;
  const size_t row_elements_;
  const std::optional<PrivateCopy> copy_;  // if empty, rows are read from file_
};

}  // namespace shoal
