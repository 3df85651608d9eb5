#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/files/file_system.h"

namespace shoal {

// One tensor of a safetensors file.
struct TensorEntry {
  std::string name;
  std::string dtype;  // "F32", "I64", ...
  Shape shape;
  uint64_t begin = 0;  // bytes from the start of the FILE
  uint64_t size = 0;   // bytes
};

// A file to be written: its header text is fixed from names and shapes, before any data exists, so
// that several processes can write rows at their place.
struct SafetensorsLayout {
  std::string header;  // the first bytes of the file: length, JSON, padding
  std::vector<TensorEntry> tensors;
  uint64_t file_size = 0;
};
// Lays out F32 tensors in the given order. Names must be distinct, extents known.
SafetensorsLayout LayOutSafetensors(const std::vector<std::pair<std::string, Shape>>& tensors,
                                    const std::map<std::string, std::string>& metadata);

// What a safetensors file holds, to be read from it. The file itself is open only while it is read:
// a checkpoint may have more of them than a process may have open. Immutable, thread-safe. Every
// rule of the format is checked at the beginning (no holes, no overlap, last end = end of file, no
// duplicate keys, sizes as dtype and shape say, header at most 100,000,000 bytes); errors
// (kInvalidArgument, or the system's) name the file and the rule.
class SafetensorsFile {
 public:
  // `files` outlives what is returned.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(
      const std::string& path, FileSystem* files = RealFileSystem());
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t file_size() const { return size_; }
  // In the order in which they lie in the file.
  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  // Null when there is none of this name.
  const TensorEntry* Find(const std::string& name) const;
  // Copies `size_bytes` at `offset_bytes` inside the tensor. An error when the file cannot be read
  // or was cut off, or when that is beyond the tensor.
  absl::Status Read(const TensorEntry& entry, uint64_t offset_bytes, void* out,
                    uint64_t size_bytes) const;
  // The values as float32, converted from F32, F64, I32, I64, U8; others are an error.
  absl::StatusOr<std::vector<float>> ReadFloats(const TensorEntry& entry) const;

 private:
  SafetensorsFile(std::string path, FileSystem* files) : path_(std::move(path)), files_(files) {}
  const std::string path_;
  FileSystem* const files_;
  uint64_t size_ = 0;
  std::vector<TensorEntry> tensors_;
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace shoal
