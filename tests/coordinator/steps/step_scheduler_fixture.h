#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/steps/step_scheduler.h"
#include "tests/coordinator/steps/joined_workers.h"

namespace shoal {

// A StepScheduler that leases the steps of a job of 100.
class StepSchedulerTest : public testing::Test {
 protected:
  static constexpr uint64_t kOpenTimeline = 9;

  StepSchedulerTest() {
    workers_.on_gone = [this](Worker& worker, const std::string& why) {
      gone_ = why;
      scheduler_.Forget(worker);
    };
  }
  void Begin(uint64_t base = 0) {
    scheduler_.Open({.timeline = kOpenTimeline, .total_steps = 100, .base = base});
    scheduler_.Begin();
  }
  void OfferAll() {
    for (Worker* worker : workers_.membership()->Ready()) scheduler_.Offer(*worker);
    scheduler_.ServeQueue();
  }
  // The worker reports the steps, each of which took `each`, and is offered others.
  void Report(Worker& worker, const std::vector<uint64_t>& steps,
              Time each = std::chrono::milliseconds(200)) {
    loop_.Advance(each * steps.size());
    scheduler_.OnReport(worker, static_cast<int>(steps.size()));
    for (const uint64_t step : steps) EXPECT_TRUE(scheduler_.Done(worker, step));
    scheduler_.Offer(worker);
    scheduler_.ServeQueue();
  }
  static proto::Halted Halted(uint64_t begun_below) {
    proto::Halted halted;
    halted.set_timeline(kOpenTimeline);
    halted.set_begun_below(begun_below);
    return halted;
  }

  FakeLoop loop_;
  JoinedWorkers workers_{&loop_};
  std::string gone_;
  StepScheduler scheduler_{{.loop = &loop_,
                            .membership = workers_.membership(),
                            .window_steps = 64,
                            .lease_timeout_seconds = 10,
                            .speculate_after = 3}};
};

}  // namespace shoal
