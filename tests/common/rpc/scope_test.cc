#include "common/rpc/scope.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "tests/fakes/fake_loop.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;

TEST(ScopeTest, DoneTakesTheResultOfWork) {
  FakeLoop loop;
  const Scope scope(&loop);
  std::string seen;
  scope.Offload(
      Lane::kFiles, [] { return std::make_unique<std::string>("read"); },
      [&seen](std::unique_ptr<std::string> result) { seen = *result; });
  EXPECT_EQ(seen, "");
  loop.RunUntilIdle();
  EXPECT_EQ(seen, "read");
}

TEST(ScopeTest, DoneOfWorkWithoutAResultTakesNothing) {
  FakeLoop loop;
  const Scope scope(&loop);
  int order = 0, worked = 0, done = 0;
  scope.Offload(
      Lane::kBrief, [&] { worked = ++order; }, [&] { done = ++order; });
  loop.RunUntilIdle();
  EXPECT_EQ(worked, 1);
  EXPECT_EQ(done, 2);
}

TEST(ScopeTest, AfterTheEndWorkRunsWithoutDone) {
  FakeLoop loop;
  auto scope = std::make_optional<Scope>(&loop);
  bool worked = false, done = false;
  scope->Offload(
      Lane::kFiles, [&] { return worked = true; }, [&](bool) { done = true; });
  scope.reset();
  loop.RunUntilIdle();
  EXPECT_TRUE(worked);
  EXPECT_FALSE(done);
}

TEST(ScopeTest, AGuardedCallbackRunsUntilTheEnd) {
  FakeLoop loop;
  auto scope = std::make_optional<Scope>(&loop);
  int sum = 0;
  const auto guarded = scope->Guard([&sum](int value) { sum += value; });
  std::function<void(int)> callback = guarded;
  callback(2);
  EXPECT_EQ(sum, 2);
  scope.reset();
  callback(5);
  EXPECT_EQ(sum, 2);
}

TEST(TimerTest, CallsOnceAfterItsDelay) {
  FakeLoop loop;
  Timer timer(&loop);
  int calls = 0;
  timer.Set(milliseconds(10), [&] { ++calls; });
  EXPECT_TRUE(timer.pending());
  loop.Advance(milliseconds(9));
  EXPECT_EQ(calls, 0);
  loop.Advance(milliseconds(30));
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(timer.pending());
}

TEST(TimerTest, SettingItAgainReplacesTheCallback) {
  FakeLoop loop;
  Timer timer(&loop);
  std::string calls;
  timer.Set(milliseconds(10), [&] { calls += "a"; });
  timer.Set(milliseconds(20), [&] { calls += "b"; });
  loop.Advance(milliseconds(30));
  EXPECT_EQ(calls, "b");
}

TEST(TimerTest, CallsNothingOnceCancelledOrEnded) {
  FakeLoop loop;
  int calls = 0;
  Timer cancelled(&loop);
  cancelled.Set(milliseconds(10), [&] { ++calls; });
  cancelled.Cancel();
  auto ended = std::make_optional<Timer>(&loop);
  ended->Set(milliseconds(10), [&] { ++calls; });
  ended.reset();
  loop.Advance(milliseconds(30));
  EXPECT_EQ(calls, 0);
}

TEST(TimerTest, ACallbackMaySetTheTimerAgainOrEndIt) {
  FakeLoop loop;
  auto timer = std::make_optional<Timer>(&loop);
  std::string calls;
  timer->Set(milliseconds(10), [&, name = std::string(100, 'a')] {
    calls += "a";
    timer->Set(milliseconds(10), [&, name] {
      timer.reset();
      calls += name.substr(0, 1) + "b";
    });
  });
  loop.Advance(milliseconds(30));
  EXPECT_EQ(calls, "aab");
}

}  // namespace
}  // namespace shoal
