#include "coordinator/checkpoint_rows.h"

#include <string>
#include <utility>

#include "common/checkpoint/checkpoint_reader.h"
#include "common/sharding/chunk_limits.h"

namespace shoal {
namespace {

constexpr uint32_t kMaxRowBytes = kMostChunkBytes;  // in one message, as a chunk is

}  // namespace

CheckpointRows::CheckpointRows(EventLoop* loop, CheckpointStore* store, StoredCheckpoint checkpoint)
    : loop_(loop),
      store_(store),
      checkpoint_(std::move(checkpoint)),
      reader_(std::make_shared<std::unique_ptr<CheckpointReader>>()) {}

CheckpointRows::~CheckpointRows() { *alive_ = false; }

void CheckpointRows::Read(const proto::RowsWanted& wanted,
                          std::function<void(const proto::ControlRequest&)> done) {
  read_ = true;
  const auto request = std::make_shared<proto::ControlRequest>();
  loop_->Offload(
      [request, wanted, reader = reader_, store = store_, directory = checkpoint_.directory] {
        proto::Rows* rows = request->mutable_rows();
        rows->set_tensor(wanted.tensor());
        rows->set_offset_bytes(wanted.offset_bytes());
        absl::Status read = wanted.size_bytes() <= kMaxRowBytes
                                ? absl::OkStatus()
                                : absl::InvalidArgumentError("too many rows at once");
        if (read.ok() && *reader == nullptr) {
          auto opened = CheckpointReader::Open(directory, store->files());
          read = opened.status();
          if (opened.ok()) *reader = *std::move(opened);
        }
        if (read.ok()) {
          rows->mutable_values()->resize(wanted.size_bytes());
          read = (*reader)->ReadBytes(wanted.tensor(), wanted.offset_bytes(),
                                      rows->mutable_values()->data(), wanted.size_bytes());
        }
        if (read.ok()) return;
        rows->clear_values();
        rows->set_error(std::string(read.message()));
      },
      [request, alive = alive_, done = std::move(done)] {
        if (*alive) done(*request);
      });
}

void CheckpointRows::Verify(std::function<void(const absl::Status&)> done) {
  if (!read_) return done(absl::OkStatus());
  auto whole = std::make_shared<absl::Status>();
  loop_->Offload(
      [store = store_, checkpoint = checkpoint_, whole] { *whole = store->Verify(checkpoint); },
      [whole, alive = alive_, done = std::move(done)] {
        if (*alive) done(*whole);
      });
}

}  // namespace shoal
