#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace shoal {

// Fetches pieces by requests, at most `max_pending` at a time. A piece is pending from its request
// until its release. A slow store therefore slows the requests down.
//
//   waiting ── request ──▶ requested ── Receive ──▶ received ── Release ──▶ done
//                           │     ▲
//                           └─────┘ Resend
//
// Loop thread only.
template <typename Piece>
class WindowedFetch {
 public:
  // `send` requests one piece. It must not call this object, and must not destroy it.
  WindowedFetch(std::vector<Piece> pieces, size_t max_pending,
                std::function<void(const Piece&)> send)
      : pieces_(std::move(pieces)), max_pending_(max_pending), send_(std::move(send)) {}

  // Requests pieces in order until `max_pending` are pending.
  void RequestMore() {
    while (requested_.size() + received_ < max_pending_ && next_ < pieces_.size()) {
      requested_.push_back(next_);
      send_(pieces_[next_++]);
    }
  }
  // Requests again each piece that has not arrived. For a new stream.
  void Resend() const {
    for (const size_t piece : requested_) send_(pieces_[piece]);
  }
  // Returns the requested piece for which `matches(piece)` is true; it is received from now on.
  // nullptr: it was never requested, or it arrived before, for example over the previous stream.
  // The piece lives as long as this object.
  template <typename Matches>
  const Piece* Receive(Matches matches) {
    const auto found = std::find_if(requested_.begin(), requested_.end(),
                                    [&](size_t piece) { return matches(pieces_[piece]); });
    if (found == requested_.end()) return nullptr;
    const Piece* const piece = &pieces_[*found];
    requested_.erase(found);
    ++received_;
    return piece;
  }
  // Ends one received piece, and requests the next one. Requires a received piece.
  void Release() {
    --received_;
    RequestMore();
  }
  // True if all pieces are done. RequestMore must have run once.
  bool done() const { return next_ == pieces_.size() && requested_.empty() && received_ == 0; }

 private:
  const std::vector<Piece> pieces_;
  const size_t max_pending_;
  const std::function<void(const Piece&)> send_;
  size_t next_ = 0;                // index of the first piece that was not requested yet
  std::vector<size_t> requested_;  // indices, in the order of the requests
  size_t received_ = 0;            // number of pieces
};

}  // namespace shoal
