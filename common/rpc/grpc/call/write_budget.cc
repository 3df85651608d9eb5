#include "common/rpc/grpc/call/write_budget.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "common/rpc/grpc/call/grpc_call.h"

namespace shoal {
namespace {

// Smaller messages without a payload do not count, such as answers to tiny steps.
constexpr size_t kSmallBytes = 4096;

}  // namespace

WriteBudget::WriteBudget(size_t max_bytes, Time patience, EventLoop* loop)
    : max_bytes_(max_bytes), patience_(patience), loop_(loop) {}

WriteBudget::~WriteBudget() {
  MutexLock lock(&account_->mutex);
  account_->to_wake = nullptr;
}

bool WriteBudget::Admit(GrpcCall* call) {
  const auto place = std::find(waiting_.begin(), waiting_.end(), call);
  {
    MutexLock lock(&account_->mutex);
    // A new call queues behind those that wait.
    if (account_->used < max_bytes_ && (waiting_.empty() || call == in_turn_)) {
      if (place != waiting_.end()) waiting_.erase(place);
      return true;
    }
    account_->to_wake = loop_;
  }
  if (place == waiting_.end()) waiting_.push_back(call);
  if (watch_ == 0) watch_ = loop_->CallAfter(patience_, [this] { WatchHolders(); });
  return false;
}

std::shared_ptr<const void> WriteBudget::Charge(GrpcCall* call, const Message& message) {
  const size_t payload = message.payload_bytes();
  if (payload == 0 && message.fields.size() < kSmallBytes) return nullptr;
  const size_t bytes = payload + message.fields.size();
  std::list<Charged>::iterator charge;
  {
    MutexLock lock(&account_->mutex);
    account_->used += bytes;
    charge = account_->charges.insert(account_->charges.end(), {call, bytes, loop_->Now()});
  }
  return {&*charge, [account = account_, charge, budget = this,
                     alive = std::weak_ptr<bool>(alive_)](const void*) {
            MutexLock lock(&account->mutex);
            account->used -= charge->bytes;
            account->charges.erase(charge);
            if (EventLoop* const loop = std::exchange(account->to_wake, nullptr)) {
              loop->Post([budget, alive] {
                if (!alive.expired()) budget->Release();
              });
            }
          }};
}

void WriteBudget::Forget(GrpcCall* call) {
  std::erase(waiting_, call);
  MutexLock lock(&account_->mutex);
  for (Charged& charge : account_->charges) {
    if (charge.call == call) charge.call = nullptr;
  }
}

// Continues the waiting calls in their order. A call that finds the budget spent again goes to the
// end of the queue, so that streams take turns.
void WriteBudget::Release() {
  for (size_t turns = waiting_.size(); turns > 0 && !waiting_.empty(); --turns) {
    GrpcCall* const call = waiting_.front();
    waiting_.pop_front();
    in_turn_ = call;
    call->Continue();
    in_turn_ = nullptr;
  }
}

void WriteBudget::WatchHolders() {
  watch_ = 0;
  if (waiting_.empty()) return;
  watch_ = loop_->CallAfter(patience_, [this] { WatchHolders(); });
  const Time now = loop_->Now();
  std::vector<std::pair<GrpcCall*, Time>> holders;
  std::set<GrpcCall*> listed;
  {
    MutexLock lock(&account_->mutex);
    for (const Charged& charge : account_->charges) {
      if (holders.size() == waiting_.size() || now - charge.since < patience_) break;
      // A stream may hold several charges.
      if (charge.call != nullptr && charge.call->open() && listed.insert(charge.call).second)
        holders.emplace_back(charge.call, now - charge.since);
    }
  }
  for (const auto& [holder, held] : holders) holder->BreakUnread(held);
}

}  // namespace shoal
