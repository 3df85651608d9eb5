#include "ps/loading/row_fetch.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/parameter_server.pb.h"

namespace shoal {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;
constexpr size_t kMaxPending = 4;  // reading, sending and copying overlap

std::vector<VariableStore::RowRun> PiecesOf(VariableStore* store) {
  std::vector<VariableStore::RowRun> pieces;
  for (VariableStore::RowRun run : store->RowRuns()) {
    while (run.size_bytes > 0) {
      VariableStore::RowRun piece = run;
      piece.size_bytes = std::min(kPieceBytes, run.size_bytes);
      run.offset_bytes += piece.size_bytes;
      run.size_bytes -= piece.size_bytes;
      run.out += piece.size_bytes / sizeof(float);
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

}  // namespace

RowFetch::RowFetch(uint64_t term, VariableStore* store, std::function<void(absl::Status)> done)
    : term_(term),
      done_(std::move(done)),
      fetch_(PiecesOf(store), kMaxPending,
             [this](const VariableStore::RowRun& piece) { Request(piece); }) {}

void RowFetch::RequestFrom(const SessionPtr& session) {
  session_ = session;
  fetch_.Resend();
  fetch_.RequestMore();
  EndIfDone();
}

void RowFetch::EndIfDone() {
  if (!fetch_.done()) return;
  const auto done = done_;  // a copy: the call may destroy this
  done(absl::OkStatus());
}

void RowFetch::Request(const VariableStore::RowRun& piece) {
  proto::ControlReply reply;
  proto::RowsWanted* wanted = reply.mutable_rows_wanted();
  wanted->set_term(term_);
  wanted->set_tensor(piece.tensor);
  wanted->set_offset_bytes(piece.offset_bytes);
  wanted->set_size_bytes(static_cast<uint32_t>(piece.size_bytes));
  if (const SessionPtr session = session_.lock()) session->Send(reply);
}

void RowFetch::OnRows(const proto::Rows& rows) {
  const VariableStore::RowRun* const piece =
      fetch_.Receive([&rows](const VariableStore::RowRun& each) {
        return each.tensor == rows.tensor() && each.offset_bytes == rows.offset_bytes();
      });
  if (piece == nullptr) return;
  if (!rows.error().empty() || rows.values().size() != piece->size_bytes) {
    const auto done = done_;
    return done(absl::DataLossError(
        rows.error().empty()
            ? absl::StrCat("the coordinator sent ", rows.values().size(), " bytes of ",
                           piece->tensor, " from byte ", piece->offset_bytes, " on instead of ",
                           piece->size_bytes)
            : rows.error()));
  }
  std::memcpy(piece->out, rows.values().data(), piece->size_bytes);
  fetch_.Release();
  EndIfDone();
}

}  // namespace shoal
