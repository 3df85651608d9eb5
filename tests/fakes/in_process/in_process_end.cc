#include "tests/fakes/in_process/in_process_end.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/message_wire.h"

namespace shoal {

class InProcessEnd::Handle : public Stream {
 public:
  explicit Handle(std::shared_ptr<InProcessEnd> end) : end_(std::move(end)) {}
  ~Handle() override { end_->HandleDropped(); }
  void Send(Message message) override { end_->Send(std::move(message)); }
  void SendFrom(MessageSource source) override { end_->SendFrom(std::move(source)); }
  void Finish(absl::Status status) override { end_->Finish(std::move(status)); }
  std::string peer() const override { return end_->peer_name_; }

 private:
  const std::shared_ptr<InProcessEnd> end_;
};

InProcessEnd::InProcessEnd(Side side, InProcessHub::Options limits,
                           std::shared_ptr<InProcessMailbox> mailbox, std::string peer_name,
                           Remove remove)
    : side_(side),
      limits_(limits),
      mailbox_(std::move(mailbox)),
      peer_name_(std::move(peer_name)),
      remove_(std::move(remove)) {}

InProcessEnd::~InProcessEnd() {
  if (leaving_ || closed_ || peer_mailbox_ == nullptr) return;
  peer_mailbox_->Post([peer = peer_] {
    if (const auto end = peer.lock()) end->Close(end->PeerGone());
  });
}

void InProcessEnd::Connect(const std::shared_ptr<InProcessEnd>& a,
                           const std::shared_ptr<InProcessEnd>& b) {
  a->peer_ = b;
  a->peer_mailbox_ = b->mailbox_;
  b->peer_ = a;
  b->peer_mailbox_ = a->mailbox_;
}

std::unique_ptr<Stream> InProcessEnd::MakeHandle() {
  auto handle = std::make_unique<Handle>(shared_from_this());
  handle_ = handle.get();
  return handle;
}

void InProcessEnd::set_callbacks(StreamCallbacks callbacks) { callbacks_ = std::move(callbacks); }

void InProcessEnd::Accept(const Network::Acceptor& acceptor, const std::string& method) {
  deciding_ = true;
  absl::StatusOr<StreamCallbacks> callbacks = acceptor(method, MakeHandle());
  deciding_ = false;
  if (!callbacks.ok()) return Finish(callbacks.status());
  if (handle_ != nullptr) {
    callbacks_ = *std::move(callbacks);
  } else if (!ended_) {
    HandleDropped();
  }
}

void InProcessEnd::Send(Message message) {
  if (ended_) return;
  const size_t bytes = EncodedSize(message);
  if (bytes > limits_.max_message_bytes) {
    const absl::Status error = absl::ResourceExhaustedError(
        absl::StrCat("a message of ", bytes, " bytes; the max is ", limits_.max_message_bytes));
    return side_ == Side::kServer ? Finish(error) : Break(error);
  }
  const std::shared_ptr<InProcessEnd> peer = peer_.lock();
  if (peer == nullptr) return CloseLater(PeerGone());
  if (!CheckQueue(peer.get(), bytes)) return;
  ++peer->queued_messages_;
  peer->queued_bytes_ += bytes;
  PostToPeer([message = std::move(message), bytes](InProcessEnd* end) mutable {
    --end->queued_messages_;
    end->queued_bytes_ -= bytes;
    end->Deliver(std::move(message));
  });
}

bool InProcessEnd::CheckQueue(InProcessEnd* peer, size_t more_bytes) {
  if (peer->queued_messages_ + sources_.size() < limits_.max_queued_messages &&
      peer->queued_bytes_ + more_bytes <= limits_.max_queued_bytes) {
    return true;
  }
  Break(absl::ResourceExhaustedError(
      absl::StrCat(peer_name_, " does not read: ", peer->queued_messages_.load() + sources_.size(),
                   " messages wait, with ", peer->queued_bytes_.load(), " bytes")));
  return false;
}

void InProcessEnd::SendFrom(MessageSource source) {
  if (ended_ || end_after_sources_) return;
  const std::shared_ptr<InProcessEnd> peer = peer_.lock();
  if (peer == nullptr) return CloseLater(PeerGone());
  if (!CheckQueue(peer.get(), 0)) return;
  sources_.push_back(std::move(source));
  MakeNext();
}

// What this process hands over by reference counts as written when it is received.
void InProcessEnd::MakeNext() {
  while (!unread_ && !sources_.empty()) {
    std::optional<Message> message = sources_.front()();
    if (!message.has_value()) {
      sources_.pop_front();
      continue;
    }
    const size_t bytes = EncodedSize(*message);
    if (bytes > limits_.max_message_bytes) return Send(*std::move(message));  // which rejects it
    unread_ = true;
    PostToPeer([message = *std::move(message)](InProcessEnd* end) mutable {
      end->Deliver(std::move(message));
      message = Message();
      end->PostToPeer([](InProcessEnd* sender) {
        sender->unread_ = false;
        sender->MakeNext();
      });
    });
  }
  if (!unread_ && sources_.empty() && end_after_sources_) {
    End(*std::exchange(end_after_sources_, std::nullopt));
  }
}

void InProcessEnd::Finish(absl::Status status) {
  if (side_ == Side::kClient && !status.ok()) return Break(std::move(status));
  if (ended_ || closed_) return;
  const auto dropped = std::exchange(sources_, {});
  end_after_sources_.reset();
  if (side_ == Side::kServer) return End(std::move(status));
  ended_ = true;
  PostToPeer([](InProcessEnd* end) { end->OnHalfClose(); });
}

void InProcessEnd::OnHalfClose() {
  if (!drops_messages_ && callbacks_.on_half_closed)
    return Call([&] { callbacks_.on_half_closed(); });
  if (ended_ || closed_) return;
  end_after_sources_ = absl::OkStatus();
  MakeNext();
}

void InProcessEnd::End(absl::Status status) {
  ended_ = true;
  drops_messages_ = true;
  leaving_ = true;
  PostToPeer([status](InProcessEnd* end) {
    if (status.code() != absl::StatusCode::kUnavailable) return end->Close(status);
    end->Close(
        absl::UnavailableError(absl::StrCat(end->peer_name_, ": ", std::string(status.message()))));
  });
  CloseLater(std::move(status));
}

void InProcessEnd::Break(absl::Status error) {
  if (leaving_ || closed_) return;
  ended_ = true;
  drops_messages_ = true;
  leaving_ = true;
  const auto dropped = std::exchange(sources_, {});
  PostToPeer([](InProcessEnd* end) { end->Close(end->PeerGone()); });
  CloseLater(std::move(error));
}

void InProcessEnd::FailLater(absl::Status error) {
  ended_ = true;
  leaving_ = true;
  CloseLater(std::move(error));
}

void InProcessEnd::PostToPeer(std::function<void(InProcessEnd*)> arrival) {
  const bool posted = peer_mailbox_->Post([peer = peer_, arrival = std::move(arrival)] {
    if (const auto end = peer.lock()) arrival(end.get());
  });
  if (!posted && !leaving_) CloseLater(PeerGone());
}

void InProcessEnd::CloseLater(absl::Status status) {
  mailbox_->Post([self = shared_from_this(), status] { self->Close(status); });
}

void InProcessEnd::Close(absl::Status status) {
  if (closed_) return;
  closed_ = true;
  ended_ = true;
  drops_messages_ = true;
  const auto dropped = std::exchange(sources_, {});
  if (callbacks_.on_closed) Call([&] { callbacks_.on_closed(std::move(status)); });
  FreeCallbacks();
  remove_(this);
}

void InProcessEnd::Deliver(Message message) {
  if (drops_messages_ || !callbacks_.on_message) return;
  Call([&] { callbacks_.on_message(std::move(message)); });
}

void InProcessEnd::Detach() {
  handle_ = nullptr;
  ended_ = true;
  const auto dropped = std::exchange(sources_, {});
  if (!leaving_ && !closed_) {
    leaving_ = true;
    PostToPeer([](InProcessEnd* end) { end->Close(end->PeerGone()); });
  }
  FreeCallbacks();
}

void InProcessEnd::HandleDropped() {
  handle_ = nullptr;
  drops_messages_ = true;
  const auto dropped = std::exchange(sources_, {});
  if (!ended_ && !deciding_) Break(absl::CancelledError("the stream was dropped"));
  if (!in_callback_) FreeCallbacks();
}

void InProcessEnd::Call(const std::function<void()>& callback) {
  if (handle_ == nullptr) return;
  in_callback_ = true;
  callback();
  in_callback_ = false;
  if (handle_ == nullptr) FreeCallbacks();
}

void InProcessEnd::FreeCallbacks() {
  // What they hold may come back here when it is destroyed.
  const StreamCallbacks freed = std::exchange(callbacks_, {});
}

absl::Status InProcessEnd::PeerGone() const {
  return absl::UnavailableError(absl::StrCat(
      peer_name_, side_ == Side::kServer ? ": the client is gone or has dropped the stream"
                                         : ": the server is gone or has dropped the stream"));
}

}  // namespace shoal
