#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/safetensors.h"
#include "common/files/file_system.h"

namespace shoal {

// Reads rows of variables and slots from a checkpoint. Open() checks headers and sizes. Immutable,
// thread-safe.
class CheckpointReader {
 public:
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      const std::string& directory, FileSystem* files = RealFileSystem());
  // Reads all files and compares their checksums. Call this after reading the data and before using
  // it. Otherwise damage between the check and the reading would go unnoticed.
  absl::Status Verify() const;
  const Manifest& manifest() const { return manifest_; }
  // The variables, in the order of the model, without slots.
  const std::vector<TensorEntry>& variables() const { return variables_; }
  // Whether there is a tensor with this name. The name of a slot's tensor is SLOT/VARIABLE.
  bool Has(const std::string& name) const { return tensors_.contains(name); }
  // Copies `size_bytes` at `offset_bytes` inside tensor `name`. Returns kNotFound if there is no
  // such tensor, and kInvalidArgument if its shape is not `shape`.
  absl::Status Read(const std::string& name, const Shape& shape, uint64_t offset_bytes, void* out,
                    uint64_t size_bytes) const;
  // The same for a tensor of any shape. Returns kInvalidArgument if the bytes are beyond its end.
  absl::Status ReadBytes(const std::string& name, uint64_t offset_bytes, void* out,
                         uint64_t size_bytes) const;

 private:
  CheckpointReader() = default;
  absl::StatusOr<const SafetensorsFile*> FileOf(const std::string& tensor) const;
  std::string directory_;
  FileSystem* file_system_ = nullptr;
  Manifest manifest_;
  std::vector<TensorEntry> variables_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, const SafetensorsFile*> tensors_;
};

}  // namespace shoal
