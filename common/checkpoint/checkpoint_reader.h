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

// Rows of variables and slots read back from a checkpoint. Open checks headers and sizes.
// Immutable, thread-safe.
class CheckpointReader {
 public:
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      const std::string& directory, FileSystem* files = RealFileSystem());
  // Reads everything and compares checksums. To be called after what is wanted was read, and
  // nothing of that used before: a file that is damaged between a look at its checksum and the
  // reading would go unnoticed.
  absl::Status Verify() const;
  const Manifest& manifest() const { return manifest_; }
  // The variables, in the order of the model; slots are left out.
  const std::vector<TensorEntry>& variables() const { return variables_; }
  // Whether there is a tensor of this name, a slot's too: SLOT/VARIABLE.
  bool Has(const std::string& name) const { return tensors_.contains(name); }
  // Copies `size_bytes` at `offset_bytes` inside tensor `name`, whose shape must be `shape`.
  // kNotFound: there is none of this name; kInvalidArgument: it has another shape.
  absl::Status Read(const std::string& name, const Shape& shape, uint64_t offset_bytes, void* out,
                    uint64_t size_bytes) const;
  // The same of a tensor whatever its shape. kInvalidArgument: the bytes are beyond it.
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
