// StepDispatcher beside a model that is obviously right.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "coordinator/steps/step_dispatcher.h"
#include "tests/coordinator/steps/dispatched_workers.h"

namespace shoal {
namespace {

// A naive model of the dispatcher: it keeps the state of every step.
struct NaiveModel {
  uint64_t total, window, limit;
  std::set<uint64_t> done;
  std::map<uint64_t, StepDispatcher::WorkerKey> holder;
  std::map<StepDispatcher::WorkerKey, Time> deadline;
  uint64_t touched = 0;  // first step that was never leased, nor done

  uint64_t base() const {
    uint64_t step = 0;
    while (done.contains(step)) ++step;
    return step;
  }
  bool IsFree(uint64_t step) const { return !done.contains(step) && !holder.contains(step); }
  uint64_t held(StepDispatcher::WorkerKey worker) const {
    return std::count_if(holder.begin(), holder.end(),
                         [worker](const auto& each) { return each.second == worker; });
  }
  void Lease(StepDispatcher::WorkerKey worker, uint64_t step, Time now) {
    if (held(worker) == 0) deadline[worker] = now + kTimeout;
    holder[step] = worker;
    touched = std::max(touched, step + 1);
  }
  uint64_t Release(StepDispatcher::WorkerKey worker) {
    return std::erase_if(holder, [worker](const auto& each) { return each.second == worker; });
  }
};

TEST(StepDispatcherTest, BehavesLikeTheNaiveModel) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const uint64_t total = 1 + random() % 60, window = 1 + random() % 30;
    const uint64_t base = random() % (total + 1);
    NaiveModel model{.total = total, .window = window, .limit = total};
    std::vector<uint64_t> done;
    for (uint64_t step = 0; step < base; ++step) model.done.insert(step);
    for (uint64_t step = base; step < std::min(total, base + window); ++step) {
      if (random() % 4 == 0) done.push_back(step);
    }
    model.done.insert(done.begin(), done.end());
    model.touched = done.empty() ? base : done.back() + 1;
    StepDispatcher steps = MakeDispatcher(total, window, base, done);
    Time now = kNow;
    for (int action = 0; action < 300; ++action) {
      const StepDispatcher::WorkerKey worker = 1 + random() % 4;
      const uint64_t step = random() % (total + 2);
      now += std::chrono::seconds(random() % 8);
      switch (random() % 7) {
        case 0:
        case 1: {
          const uint64_t most = random() % 6;
          const StepRun run = steps.Take(worker, most, now);
          const uint64_t end = std::min({total, model.limit, model.base() + window});
          uint64_t lowest = 0;
          while (lowest < end && !model.IsFree(lowest)) ++lowest;
          ASSERT_EQ(run.count > 0, most > 0 && lowest < end);
          ASSERT_LE(run.count, most);
          if (run.count > 0) {
            ASSERT_EQ(run.first, lowest) << "the lowest free step first";
          }
          for (uint64_t i = run.first; i < run.first + run.count; ++i) {
            ASSERT_LT(i, end);
            ASSERT_TRUE(model.IsFree(i)) << i << " has two holders, or is done";
            model.Lease(worker, i, now);
          }
          break;
        }
        case 2: {
          const bool possible = step < total && step < model.base() + window;
          if (model.deadline.contains(worker)) model.deadline[worker] = now + kTimeout;
          const bool news = possible && model.done.insert(step).second;
          ASSERT_EQ(steps.Done(worker, step, now), news) << step;
          if (news) {
            model.holder.erase(step);
            model.touched = std::max(model.touched, step + 1);
          }
          break;
        }
        case 3:
          steps.Hold(worker, step, now);
          if (step < total && step < model.base() + window && model.IsFree(step)) {
            model.Lease(worker, step, now);
          }
          break;
        case 4:
          ASSERT_EQ(steps.Release(worker), model.Release(worker));
          model.deadline.erase(worker);
          break;
        case 5: {
          std::vector<StepDispatcher::WorkerKey> expired;
          for (const auto& [each, deadline] : model.deadline) {
            if (model.held(each) > 0 && deadline <= now) expired.push_back(each);
          }
          for (const auto each : expired) {
            model.Release(each);
            model.deadline.erase(each);
          }
          ASSERT_EQ(steps.Expire(now), expired);
          break;
        }
        case 6:
          model.limit = random() % (total + 1);
          steps.set_limit(model.limit);
          break;
      }
      ASSERT_EQ(steps.base(), model.base());
      ASSERT_EQ(steps.done_count(), model.done.size());
      ASSERT_EQ(steps.leased_count(), model.holder.size());
      ASSERT_EQ(steps.first_unleased(), std::max(model.touched, model.base()));
      ASSERT_EQ(steps.finished(), model.done.size() == total);
      for (StepDispatcher::WorkerKey each = 1; each <= 4; ++each) {
        ASSERT_EQ(steps.held(each), model.held(each));
      }
    }
    // Nothing is lost: from any state, one worker that does what it is given finishes the job.
    steps.set_limit(total);
    for (StepDispatcher::WorkerKey each = 1; each <= 4; ++each) steps.Release(each);
    while (!steps.finished()) {
      const StepRun run = steps.Take(kAnn, 7, now);
      ASSERT_GT(run.count, 0u);
      for (uint64_t i = run.first; i < run.first + run.count; ++i) {
        ASSERT_TRUE(steps.Done(kAnn, i, now));
      }
    }
  }
}

}  // namespace
}  // namespace shoal
