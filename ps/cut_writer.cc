#include "ps/cut_writer.h"

#include <utility>

namespace shoal {

// Used off the loop, by one piece of work at a time, and on the loop between them.
struct CutWriter::Files {
  Files(const VariableStore::Options& store, const std::string& directory, FileSystem* files)
      : layout(LayOutCheckpoint(store.variables, store.optimizer->slot_names())),
        writer(&layout, directory, files) {}

  const CheckpointLayout layout;
  CheckpointWriter writer;
  absl::StatusOr<std::vector<WrittenPart>> result;
};

CutWriter::CutWriter(EventLoop* loop, FileSystem* files, const VariableStore* store,
                     const std::string& directory, std::function<void(int chunk)> on_chunk,
                     Done done)
    : loop_(loop),
      store_(store),
      on_chunk_(std::move(on_chunk)),
      done_(std::move(done)),
      files_(std::make_shared<Files>(store->options(), directory, files)) {
  files_->result = std::vector<WrittenPart>();
  WriteNextChunk();
}

void CutWriter::WriteNextChunk() {
  if (next_chunk_ == store_->chunk_count() || !files_->result.ok()) return Finish();
  const auto pieces = std::make_shared<const std::vector<VariableStore::CutPiece>>(
      store_->CopyCutChunk(next_chunk_++));
  loop_->Offload(
      Lane::kFiles,
      [files = files_, pieces] {
        for (const VariableStore::CutPiece& piece : *pieces) {
          const absl::Status written =
              files->writer.Write(piece.tensor, piece.offset_bytes, piece.values.data(),
                                  piece.values.size() * sizeof(float));
          if (!written.ok()) {
            files->result = written;
            return;
          }
        }
      },
      [this, alive = std::weak_ptr<bool>(alive_)] {
        if (alive.expired()) return;
        if (files_->result.ok()) on_chunk_(next_chunk_ - 1);
        WriteNextChunk();
      });
}

void CutWriter::Finish() {
  loop_->Offload(
      Lane::kFiles,
      [files = files_] {
        if (files->result.ok()) files->result = files->writer.Finish();
      },
      [this, alive = std::weak_ptr<bool>(alive_)] {
        if (alive.expired()) return;
        const Done done = done_;  // which may destroy this
        done(std::move(files_->result));
      });
}

}  // namespace shoal
