#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/safetensors.h"
#include "common/files/durable_file.h"
#include "common/model/variable.h"

namespace shoal {

inline constexpr char kModelIndexName[] = "model.safetensors.index.json";

// Where everything of a checkpoint lies: a pure function of the variables and the optimizer's slot
// names, so that coordinator and every ps compute the same. Whole variables in files of about
// `file_bytes`: model-0000i-of-0000M.safetensors; slots, of those that have any, as
// SLOT/VARIABLE in optimizer-0000i-of-0000M.safetensors. Plain data; immutable.
struct CheckpointLayout {
  struct File {
    std::string name;
    SafetensorsLayout layout;
  };
  std::vector<File> files;
  // Tensor name -> index into files, and its entry there.
  struct Place {
    int file = 0;
    TensorEntry entry;
  };
  std::map<std::string, Place> places;
};
CheckpointLayout LayOutCheckpoint(const std::vector<Variable>& variables,
                                  const std::vector<std::string>& slot_names,
                                  uint64_t file_bytes = uint64_t{1} << 30);

// Whether a job with these can be trained and kept: some variable is trainable, and no slot's name
// is that of a variable too. kInvalidArgument names both.
absl::Status CheckVariables(const std::vector<Variable>& variables,
                            const std::vector<std::string>& slot_names);

// Whether a file of a checkpoint holds variables (not slots).
bool IsModelFile(const std::string& name);

// Content of model.safetensors.index.json: which file holds which variable.
std::string ModelIndexText(const CheckpointLayout& layout);

// Creates the files of `layout` in `directory` (which exists) at full size, headers written, and
// model.safetensors.index.json. The coordinator calls it before it sends a Fence. Fails when the
// disk has no room for them.
absl::Status CreateCheckpointFiles(const CheckpointLayout& layout, const std::string& directory,
                                   FileSystem* files = RealFileSystem());

// The rows that a ps wrote of one tensor, or of several that adjoin.
struct WrittenPart {
  std::string file;
  uint64_t offset_bytes = 0;  // from the start of the file
  uint64_t size_bytes = 0;
  uint32_t crc32c = 0;
};

// Writes rows of tensors into the laid-out files of a directory. One thread at a time.
class CheckpointWriter {
 public:
  // Layout and file system outlive this.
  CheckpointWriter(const CheckpointLayout* layout, std::string directory,
                   FileSystem* files = RealFileSystem());
  ~CheckpointWriter();
  // Writes `size_bytes` of tensor `name` at `offset_bytes` inside the tensor. A write that begins
  // where the last one in the same file ended lengthens its part. kInvalidArgument: there is no
  // such tensor, or the bytes are beyond it. kFailedPrecondition: the directory or the file is a
  // symbolic link.
  absl::Status Write(const std::string& name, uint64_t offset_bytes, const void* data,
                     uint64_t size_bytes);
  // Syncs and closes every file written to; returns what was written.
  absl::StatusOr<std::vector<WrittenPart>> Finish();

 private:
  struct WrittenFile {
    std::unique_ptr<File> file;
    std::vector<WrittenPart> parts;
  };
  const CheckpointLayout* const layout_;
  const std::string directory_;
  FileSystem* const file_system_;
  std::map<int, WrittenFile> files_;  // by index into layout_->files
};

}  // namespace shoal
