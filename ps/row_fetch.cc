#include "ps/row_fetch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/parameter_server.pb.h"

namespace shoal {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;
constexpr size_t kAskAhead = 4;  // so that reading, sending and copying overlap

}  // namespace

RowFetch::RowFetch(uint64_t term, VariableStore* store, std::function<void(absl::Status)> done)
    : term_(term), done_(std::move(done)) {
  for (VariableStore::RowRun run : store->RowRuns()) {
    while (run.size_bytes > 0) {
      VariableStore::RowRun piece = run;
      piece.size_bytes = std::min(kPieceBytes, run.size_bytes);
      run.offset_bytes += piece.size_bytes;
      run.size_bytes -= piece.size_bytes;
      run.out += piece.size_bytes / sizeof(float);
      pieces_.push_back(std::move(piece));
    }
  }
}

void RowFetch::AskAt(const SessionPtr& session) {
  session_ = session;
  for (const size_t piece : asked_) Ask(piece);
  AskForMore();
}

void RowFetch::AskForMore() {
  while (asked_.size() < kAskAhead && next_ < pieces_.size()) {
    asked_.push_back(next_);
    Ask(next_++);
  }
  if (!asked_.empty()) return;
  const auto done = done_;  // a copy: the call may destroy this
  done(absl::OkStatus());
}

void RowFetch::Ask(size_t piece) {
  proto::ControlReply reply;
  proto::RowsWanted* wanted = reply.mutable_rows_wanted();
  wanted->set_term(term_);
  wanted->set_tensor(pieces_[piece].tensor);
  wanted->set_offset_bytes(pieces_[piece].offset_bytes);
  wanted->set_size_bytes(static_cast<uint32_t>(pieces_[piece].size_bytes));
  if (const SessionPtr session = session_.lock()) session->Send(reply);
}

void RowFetch::OnRows(const proto::Rows& rows) {
  const auto asked = std::find_if(asked_.begin(), asked_.end(), [&](size_t each) {
    return pieces_[each].tensor == rows.tensor() &&
           pieces_[each].offset_bytes == rows.offset_bytes();
  });
  if (asked == asked_.end()) return;  // came twice: by the old stream and the new one
  const VariableStore::RowRun& piece = pieces_[*asked];
  if (!rows.error().empty() || rows.values().size() != piece.size_bytes) {
    const auto done = done_;
    return done(absl::DataLossError(
        rows.error().empty() ? absl::StrCat("the coordinator sent ", rows.values().size(),
                                            " bytes of ", piece.tensor, " at ", piece.offset_bytes,
                                            " instead of ", piece.size_bytes)
                             : rows.error()));
  }
  std::memcpy(piece.out, rows.values().data(), piece.size_bytes);
  asked_.erase(asked);
  AskForMore();
}

}  // namespace shoal
