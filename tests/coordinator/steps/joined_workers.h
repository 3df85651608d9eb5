#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/version.h"
#include "coordinator/steps/membership.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"

namespace shoal {

// A Membership with workers 0 to 3; the test holds their far ends. For code that needs workers but
// no other part of a run. The fields record what workers send besides hello.
class JoinedWorkers {
 public:
  explicit JoinedWorkers(FakeLoop* loop) : loop_(*loop) {
    owned_ = std::make_unique<Membership>(
        Membership::Options{.loop = loop,
                            .listed = {0, 1, 2, 3},
                            .on_ready =
                                [this](Worker& worker, const proto::WorkerReady& ready) {
                                  if (on_ready != nullptr) return on_ready(worker, ready);
                                  worker.ready = true;
                                },
                            .on_report =
                                [this](Worker& worker, const proto::WorkerReport& report) {
                                  if (on_report != nullptr) on_report(worker, report);
                                },
                            .on_gone =
                                [this](Worker& worker, const std::string& why) {
                                  if (on_gone != nullptr) on_gone(worker, why);
                                },
                            .on_reopened =
                                [this](const Worker& former, Worker& now) {
                                  if (on_reopened != nullptr) on_reopened(former, now);
                                }});
    membership_ = owned_.get();
  }

  // Connects a worker, sends its hello and its Ready.
  Worker& Join(int index, const proto::WorkerHello& known = {}) {
    Connect(index);
    SendHello(index, known);
    proto::WorkerReport ready;
    ready.mutable_ready();
    far_[index]->Send(ready);
    loop_.RunUntilIdle();
    far_[index]->Take<proto::WorkerOrder>();
    return *Find(index);
  }
  void SendHello(int index, const proto::WorkerHello& known = {}) {
    proto::WorkerReport report;
    *report.mutable_hello() = known;
    report.mutable_hello()->set_index(index);
    report.mutable_hello()->set_version(kVersion);
    report.mutable_hello()->set_incarnation(index + 1);
    report.mutable_hello()->set_host("node");
    report.mutable_hello()->set_pid(100 + index);
    far_[index]->Send(report);
    loop_.RunUntilIdle();
  }
  void Send(int index, const proto::WorkerReport& report) {
    far_[index]->Send(report);
    loop_.RunUntilIdle();
  }
  // Opens the stream of a worker, without a hello.
  void Connect(int index) {
    auto far = std::make_shared<FarEnd>(&loop_, "10.0.0.7:4711", kWorkMethod);
    far->set_callbacks(membership_->Accept(far->MakeStream()));
    far_[index] = far;
    loop_.RunUntilIdle();
  }
  // Returns null if the worker is not connected.
  Worker* Find(int index) {
    for (const auto& [key, worker] : membership_->workers()) {
      if (worker->index == index) return worker.get();
    }
    return nullptr;
  }
  // Breaks the worker's stream.
  void Break(int index) {
    far_[index]->Close(absl::UnavailableError("connection reset"));
    loop_.RunUntilIdle();
  }
  // Returns the orders since the last call.
  std::vector<proto::WorkerOrder> Orders(int index) {
    loop_.RunUntilIdle();
    return far_[index]->Take<proto::WorkerOrder>();
  }
  // Returns the leased steps among those orders.
  std::vector<uint64_t> Leases(int index) {
    std::vector<uint64_t> steps;
    for (const proto::WorkerOrder& order : Orders(index)) {
      for (uint64_t i = 0; i < order.lease().count(); ++i)
        steps.push_back(order.lease().first() + i);
    }
    return steps;
  }
  Membership* membership() { return membership_; }
  // Hands the Membership over; this must outlive it. membership() still returns it.
  std::unique_ptr<Membership> TakeMembership() { return std::move(owned_); }

  // These may be empty. Without on_ready, a worker is ready at once.
  std::function<void(Worker&, const proto::WorkerReady&)> on_ready;
  std::function<void(Worker&, const proto::WorkerReport&)> on_report;
  std::function<void(Worker&, const std::string& why)> on_gone;
  std::function<void(const Worker& former, Worker& now)> on_reopened;

 private:
  FakeLoop& loop_;
  std::map<int, std::shared_ptr<FarEnd>> far_;
  std::unique_ptr<Membership> owned_;  // until TakeMembership
  Membership* membership_ = nullptr;
};

}  // namespace shoal
