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

// The layout of a new file. Names and shapes determine its header before any data exists. Several
// processes can therefore write rows at their places.
struct SafetensorsLayout {
  std::string header;  // the first bytes of the file: length, JSON, padding
  std::vector<TensorEntry> tensors;
  uint64_t file_size = 0;
};
// Lays out F32 tensors in the given order. Requires distinct names and known extents.
SafetensorsLayout LayOutSafetensors(const std::vector<std::pair<std::string, Shape>>& tensors,
                                    const std::map<std::string, std::string>& metadata);

// A reader of a safetensors file. The file is open only during a read, because a checkpoint may
// have more files than a process may open. Immutable, thread-safe. Open() checks every rule of the
// format: no holes, no overlap, last end = end of file, no duplicate keys, sizes that match dtype
// and shape, header at most 100,000,000 bytes. Errors (kInvalidArgument, or the system's) name the
// file and the rule.
class SafetensorsFile {
 public:
  // `files` must outlive the result.
  static absl::StatusOr<std::unique_ptr<SafetensorsFile>> Open(
      const std::string& path, FileSystem* files = RealFileSystem());
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t file_size() const { return size_; }
  // In the order of their places in the file.
  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  // Returns null if no tensor has this name.
  const TensorEntry* Find(const std::string& name) const;
  // Copies `size_bytes` at `offset_bytes` inside the tensor. Returns an error if the file cannot be
  // read or was cut off, or if the bytes are beyond the tensor.
  absl::Status Read(const TensorEntry& entry, uint64_t offset_bytes, void* out,
                    uint64_t size_bytes) const;
  // Returns the values as float32, converted from F32, F64, I32, I64 or U8. Rejects other types.
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
