#include "ps/cuts/cut_writer.h"

#include <utility>

namespace shoal {

// Used off the loop by one task at a time; used on the loop only between tasks.
struct CutWriter::Files {
  Files(const VariableStore::Options& store, const std::string& directory, FileSystem* files)
      : layout(LayOutCheckpoint(store.variables, store.optimizer->slot_names())),
        writer(&layout, directory, files) {}

  const CheckpointLayout layout;
  CheckpointWriter writer;
  absl::Status status;
};

CutWriter::CutWriter(EventLoop* loop, FileSystem* files, const VariableStore* store,
                     const std::string& directory, std::function<void(int chunk)> on_chunk,
                     Done done)
    : store_(store),
      on_chunk_(std::move(on_chunk)),
      done_(std::move(done)),
      files_(std::make_shared<Files>(store->options(), directory, files)),
      scope_(loop) {
  WriteNextChunk();
}

void CutWriter::WriteNextChunk() {
  if (next_chunk_ == store_->chunk_count() || !files_->status.ok()) return Finish();
  const auto pieces = std::make_shared<const std::vector<CutCopies::Piece>>(
      store_->cut().CopyPieces(next_chunk_++));
  scope_.Offload(
      Lane::kFiles,
      [files = files_, pieces] {
        for (const CutCopies::Piece& piece : *pieces) {
          files->status = files->writer.Write(piece.tensor, piece.offset_bytes, piece.values.data(),
                                              piece.values.size() * sizeof(float));
          if (!files->status.ok()) return;
        }
      },
      [this] {
        if (files_->status.ok()) on_chunk_(next_chunk_ - 1);
        WriteNextChunk();
      });
}

void CutWriter::Finish() {
  scope_.Offload(
      Lane::kFiles,
      [files = files_]() -> absl::StatusOr<std::vector<WrittenPart>> {
        if (!files->status.ok()) return files->status;
        return files->writer.Finish();
      },
      done_);
}

}  // namespace shoal
