#include "coordinator/takeover/checkpoint_rows.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/sharding/chunk_limits.h"

namespace shoal {
namespace {

constexpr uint32_t kMaxRowBytes = kMaxChunkBytes;  // per message, the same as for a chunk

// Opens the checkpoint first if `reader` holds null.
absl::StatusOr<std::string> ReadPart(const CheckpointRows::Part& part, const std::string& directory,
                                     FileSystem* files, std::unique_ptr<CheckpointReader>* reader) {
  if (part.size_bytes > kMaxRowBytes) return absl::InvalidArgumentError("too many rows at once");
  if (*reader == nullptr) {
    SHOAL_ASSIGN_OR_RETURN(*reader, CheckpointReader::Open(directory, files));
  }
  std::string values(part.size_bytes, '\0');
  SHOAL_RETURN_IF_ERROR(
      (*reader)->ReadBytes(part.tensor, part.offset_bytes, values.data(), part.size_bytes));
  return values;
}

}  // namespace

CheckpointRows::CheckpointRows(EventLoop* loop, CheckpointStore* store, StoredCheckpoint checkpoint)
    : store_(store),
      checkpoint_(std::move(checkpoint)),
      reader_(std::make_shared<std::unique_ptr<CheckpointReader>>()),
      scope_(loop) {}

void CheckpointRows::Read(const Part& part, std::function<void(absl::StatusOr<std::string>)> done) {
  read_ = true;
  scope_.Offload(
      Lane::kFiles,
      [part, reader = reader_, store = store_, directory = checkpoint_.directory] {
        return ReadPart(part, directory, store->files(), reader.get());
      },
      std::move(done));
}

void CheckpointRows::Verify(std::function<void(const absl::Status&)> done) {
  if (!read_) return done(absl::OkStatus());
  scope_.Offload(
      Lane::kFiles,
      [store = store_, checkpoint = checkpoint_] { return store->Verify(checkpoint); },
      std::move(done));
}

}  // namespace shoal
