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

// The place of every tensor in a checkpoint. A pure function of the variables and the optimizer's
// slot names, so that the coordinator and every ps compute the same. Files have about `file_bytes`
// and whole tensors: the variables in model-0000i-of-0000M.safetensors, their slots as
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

// Returns OK if a job with these can be trained and saved: at least one variable is trainable, and
// no slot has the name of a variable. kInvalidArgument names both.
absl::Status CheckVariables(const std::vector<Variable>& variables,
                            const std::vector<std::string>& slot_names);

// Returns whether a checkpoint file holds variables, not slots.
bool IsModelFile(const std::string& name);

// Returns the content of model.safetensors.index.json: the file of each variable.
std::string ModelIndexText(const CheckpointLayout& layout);

// Creates the files of `layout` at full size in `directory`, which must exist. Writes their headers
// and model.safetensors.index.json. The coordinator calls it before it sends a Fence. Fails if the
// disk has no room.
absl::Status CreateCheckpointFiles(const CheckpointLayout& layout, const std::string& directory,
                                   FileSystem* files = RealFileSystem());

// Adjacent rows that a ps wrote, of one tensor or of several.
struct WrittenPart {
  std::string file;
  uint64_t offset_bytes = 0;  // from the start of the file
  uint64_t size_bytes = 0;
  uint32_t crc32c = 0;
};

// Writes rows of tensors into the laid-out files of a directory. One thread at a time.
class CheckpointWriter {
 public:
  // Layout and file system must outlive this.
  CheckpointWriter(const CheckpointLayout* layout, std::string directory,
                   FileSystem* files = RealFileSystem());
  ~CheckpointWriter();
  // Writes `size_bytes` of tensor `name` at `offset_bytes` inside the tensor. A write that
  // continues the last one in the same file extends its part. kInvalidArgument: there is no such
  // tensor, or the bytes are beyond it. kFailedPrecondition: the directory or the file is a
  // symbolic link.
  absl::Status Write(const std::string& name, uint64_t offset_bytes, const void* data,
                     uint64_t size_bytes);
  // Syncs and closes all written files; returns the written parts.
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
