#include "tests/fakes/in_process/one_loop_network.h"

#include <deque>
#include <functional>

#include "absl/strings/str_cat.h"
#include "tests/fakes/in_process/in_process_end.h"
#include "tests/fakes/in_process/in_process_mailbox.h"

namespace shoal {
namespace {

// Hands callbacks to the loop, unless held.
class LoopMailbox : public InProcessMailbox, public std::enable_shared_from_this<LoopMailbox> {
 public:
  explicit LoopMailbox(FakeLoop* loop) : loop_(loop) {}

  bool Post(std::function<void()> callback) override {
    if (closed_) return false;
    waiting_.push_back(std::move(callback));
    if (!held_) RunOneLater();
    return true;
  }
  void Close() override {
    closed_ = true;
    // Freed at the end: what callbacks hold may post when it is destroyed.
    const auto dropped = std::exchange(waiting_, {});
  }
  void Hold(bool hold) {
    if (std::exchange(held_, hold) == hold || hold) return;
    for (size_t i = 0; i < waiting_.size(); ++i) RunOneLater();
  }

 private:
  void RunOneLater() {
    loop_->Post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->RunOne();
    });
  }
  void RunOne() {
    if (held_ || waiting_.empty()) return;
    const std::function<void()> callback = std::move(waiting_.front());
    waiting_.pop_front();
    callback();
  }

  FakeLoop* const loop_;
  std::deque<std::function<void()>> waiting_;
  bool held_ = false;
  bool closed_ = false;
};

}  // namespace

class OneLoopHub::NodeImpl : public Node {
 public:
  NodeImpl(OneLoopHub* hub, std::string name)
      : hub_(hub), name_(std::move(name)), mailbox_(std::make_shared<LoopMailbox>(hub->loop_)) {}
  ~NodeImpl() override {
    if (!address_.empty()) hub_->listeners_.erase(address_);
    // This also drops streams that were opened to this node and not accepted yet, which breaks
    // them.
    mailbox_->Close();
    for (const auto& [end, owner] : std::exchange(ends_, {})) owner->Detach();
  }

  std::unique_ptr<Stream> Open(const ServerAddress& to, const std::string& method,
                               StreamCallbacks callbacks) override {
    const auto client = MakeEnd(InProcessEnd::Side::kClient, to.address);
    client->set_callbacks(std::move(callbacks));
    std::unique_ptr<Stream> handle = client->MakeHandle();
    NodeImpl* const node = hub_->Find(method, to.address);
    if (node == nullptr) {
      client->FailLater(absl::UnavailableError(absl::StrCat(to.address, ": nobody listens there")));
      return handle;
    }
    auto server = std::make_shared<InProcessEnd>(InProcessEnd::Side::kServer, limits_,
                                                 node->mailbox_, name_, node->remove_);
    InProcessEnd::Connect(client, server);
    node->mailbox_->Post([node, server, method] {
      node->ends_.emplace(server.get(), server);
      server->Accept(node->acceptor_, method);
    });
    return handle;
  }

  absl::StatusOr<std::string> Listen(const std::string& address, Acceptor acceptor) override {
    if (!hub_->listeners_.emplace(address, this).second) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot listen at ", address, ": it is in use by another node; choose another name"));
    }
    acceptor_ = std::move(acceptor);
    return address_ = address;
  }

  void Hold(bool hold) override { mailbox_->Hold(hold); }

 private:
  std::shared_ptr<InProcessEnd> MakeEnd(InProcessEnd::Side side, const std::string& peer) {
    auto end = std::make_shared<InProcessEnd>(side, limits_, mailbox_, peer, remove_);
    ends_.emplace(end.get(), end);
    return end;
  }

  OneLoopHub* const hub_;
  const std::string name_;
  const InProcessHub::Options limits_;
  const std::shared_ptr<LoopMailbox> mailbox_;
  const InProcessEnd::Remove remove_ = [this](InProcessEnd* end) { ends_.erase(end); };
  std::string address_;  // where this node listens; empty when it does not
  Acceptor acceptor_;
  std::map<InProcessEnd*, std::shared_ptr<InProcessEnd>> ends_;
};

std::unique_ptr<OneLoopHub::Node> OneLoopHub::CreateNode(std::string name) {
  return std::make_unique<NodeImpl>(this, std::move(name));
}

void OneLoopHub::Redirect(const std::string& method, const std::string& address,
                          const std::string& instead) {
  redirected_[{method, address}] = instead;
}

OneLoopHub::NodeImpl* OneLoopHub::Find(const std::string& method,
                                       const std::string& address) const {
  const auto redirected = redirected_.find({method, address});
  const bool elsewhere = redirected != redirected_.end() && !redirected->second.empty();
  const auto found = listeners_.find(elsewhere ? redirected->second : address);
  return found == listeners_.end() ? nullptr : found->second;
}

}  // namespace shoal
