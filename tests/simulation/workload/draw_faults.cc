#include "tests/simulation/workload/draw_faults.h"

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Draws the faults of one workload, each near the one before it or at any time within `span`.
class FaultDrawer {
  using Kind = Fault::Kind;

 public:
  // Both must outlive this.
  FaultDrawer(Random& random, const Workload& workload, Time span)
      : random_(random), workload_(workload), span_(span) {}

  // Draws a fault of any kind but kDrainAll and kChangeJob.
  Fault Draw() {
    Fault fault;
    fault.at = DrawTime();
    fault.task = AnyTask();
    fault.duration = Short();
    switch (random_.Below(24)) {
      case 0:
      case 1:
      case 2:
        fault.kind = Kind::kKill;
        break;
      case 3:
      case 4:
      case 5:
        fault.kind = Kind::kKillAfterCallbacks;
        fault.count = random_.Between(1, 200);
        break;
      case 6:
      case 7:
        fault.kind = Kind::kKillAtFileOperation;
        fault.task = FileTask();
        fault.count = random_.Between(1, 60);
        break;
      case 8:
      case 9:
        fault.kind = Kind::kFreeze;
        fault.duration = ShortOrLong();
        break;
      case 10:
        fault.kind = Kind::kReplace;
        fault.duration = ShortOrLong();
        break;
      case 11:
        fault.kind = Kind::kSecond;
        if (random_.Coin()) fault.task = "chief";
        break;
      case 12:
      case 13:
        fault.kind = Kind::kBreakStreams;
        break;
      case 14:
      case 15:
        fault.kind = random_.Coin() ? Kind::kCut : Kind::kCutBoth;
        fault.other = AnyTask();
        fault.duration = ShortOrLong();
        break;
      case 16:
        fault.kind = random_.Coin() ? Kind::kSlowLinks : Kind::kSlowReader;
        fault.latency = random_.Between(milliseconds(5), milliseconds(800));
        fault.duration = ShortOrLong();
        break;
      case 17:
        fault.kind = Kind::kDrain;
        fault.task = AnyTask();
        break;
      case 18:
        fault.kind = Kind::kPowerLoss;
        break;
      case 19:
        fault.kind = Kind::kDiskFull;
        fault.duration = ShortOrLong();
        break;
      case 20:
        fault.kind = Kind::kDiskReadOnly;
        fault.duration = ShortOrLong();
        break;
      case 21:
        fault.kind = Kind::kDiskSlow;
        fault.latency = random_.Between(milliseconds(2), milliseconds(500));
        fault.duration = ShortOrLong();
        break;
      case 22:
        fault.kind = Kind::kDamage;
        break;
      case 23:
        fault.kind = Kind::kRestartAll;
        fault.count = random_.Between(1, 3);
        break;
    }
    last_ = fault.at + (random_.Coin() ? fault.duration : Time{});
    return fault;
  }

  // Lets tasks leave on SIGTERM and slows everything down. Workers may be lost, but not for long.
  // In seeds where all tasks may leave at once, no worker is lost: nobody would do its steps.
  Fault DrawOrderly() {
    Fault fault;
    fault.at = DrawTime();
    fault.task = AnyTask();
    fault.duration = Short();
    switch (evictions_ ? random_.Between(3, 11) : random_.Below(10)) {
      case 0:
        fault.kind = Kind::kKill;
        fault.task = Worker();
        fault.duration = random_.Between(milliseconds(1), seconds(1));
        break;
      case 1:
        fault.kind = Kind::kFreeze;
        fault.task = Worker();
        break;
      case 2:
        fault.kind = Kind::kBreakStreams;
        break;
      case 3:
        fault.kind = random_.Coin() ? Kind::kSlowLinks : Kind::kSlowReader;
        fault.latency = random_.Between(milliseconds(5), milliseconds(200));
        break;
      case 4:
        fault.kind = Kind::kDiskSlow;
        fault.latency = random_.Between(milliseconds(2), milliseconds(50));
        break;
      case 10:
      case 11:
        fault.kind = Kind::kDrainAll;
        break;
      default:
        fault.kind = Kind::kDrain;
        if (!random_.OneIn(4)) fault.task = Ps();
        break;
    }
    last_ = fault.at + (random_.Coin() ? fault.duration : Time{});
    return fault;
  }

 private:
  // Draws a third of the times soon after the fault before, or after its end.
  Time DrawTime() {
    Time at = random_.Between(Time(1000), span_);
    if (last_ != Time{} && random_.OneIn(3)) {
      at = last_ + random_.Between(Time(1000), random_.Coin() ? milliseconds(20) : seconds(1));
    }
    return at;
  }
  std::string Ps() { return absl::StrCat("ps", random_.Below(workload_.ps)); }
  std::string Worker() { return absl::StrCat("worker", random_.Below(workload_.workers)); }
  std::string FileTask() { return random_.Coin() ? "chief" : Ps(); }
  std::string AnyTask() {
    switch (random_.Below(3)) {
      case 0:
        return "chief";
      case 1:
        return Ps();
      default:
        return Worker();
    }
  }
  Time Short() {
    return random_.Coin() ? random_.Between(milliseconds(1), milliseconds(100))
                          : random_.Between(milliseconds(100), seconds(3));
  }
  Time ShortOrLong() {
    return random_.OneIn(3) ? random_.Between(seconds(3), seconds(25)) : Short();
  }

  Random& random_;
  const Workload& workload_;
  const Time span_;
  const bool evictions_ = workload_.orderly && workload_.seed % 2 == 0;
  Time last_{};  // begin or end of the fault before
};

// Draws the faults at the moment at which a task gets new certificates. Its streams are reopened
// within a few milliseconds.
void DrawNearby(Random& random, const Fault& replaced, Workload* workload) {
  using Kind = Fault::Kind;
  Fault fault{.at = replaced.at, .task = replaced.task};
  const uint64_t which = random.Below(4);
  const Time later = random.Between(Time(1000), milliseconds(5));
  if (which == 0) {
    fault.kind = Kind::kDrain;
  } else if (workload->orderly && workload->seed % 2 == 0) {
    fault.kind = Kind::kDrainAll;
  } else if (which == 1 || workload->orderly) {
    fault.kind = Kind::kBreakStreams;
  } else {
    fault.kind = Kind::kKillAfterCallbacks;
    fault.count = random.Between(1, 16);
    fault.duration = random.Between(milliseconds(1), seconds(2));
  }
  if (fault.kind != Kind::kKillAfterCallbacks) fault.at += later;
  workload->faults.push_back(fault);
}

}  // namespace

void DrawNewCertificates(Random& random, Time undisturbed, Workload* workload) {
  if (!random.OneIn(6)) return;
  const bool alone = random.Coin() && workload->next == nullptr;
  // No worker is lost in these (DrawOrderly).
  const bool evictions = workload->orderly && workload->seed % 2 == 0;
  if (alone) {
    workload->faults.clear();
    workload->job.strategy.lease_timeout_seconds = 30;
  }
  std::vector<std::string> tasks = {"chief"};
  for (int i = 0; i < workload->ps; ++i) tasks.push_back(absl::StrCat("ps", i));
  for (int i = 0; i < workload->workers; ++i) tasks.push_back(absl::StrCat("worker", i));
  const uint64_t times = random.Between(1, 4);
  for (uint64_t i = 0; i < times; ++i) {
    Fault fault{.kind = Fault::Kind::kNewCertificates,
                .at = random.Between(Time(1000), undisturbed)};
    const Time old_until = random.Between(milliseconds(1), seconds(3));
    if (random.OneIn(4) && !evictions) fault.duration = old_until;
    fault.task = tasks[random.Below(tasks.size())];
    if (random.Coin()) {
      workload->faults.push_back(fault);
    } else {
      const Time spread = random.OneIn(3) ? Time{} : random.Between(Time(1000), seconds(1));
      for (const std::string& task : tasks) {
        Fault each = fault;
        each.task = task;
        each.at += random.Between(Time{}, spread);
        workload->faults.push_back(each);
      }
    }
    const bool nearby = random.Coin();
    if (nearby && !alone) DrawNearby(random, workload->faults.back(), workload);
  }
}

void DrawFaults(Random& random, Time undisturbed, Workload* workload) {
  const uint64_t count = random.OneIn(8) ? 0 : random.Between(1, random.Coin() ? 6 : 25);
  const Time span = undisturbed * random.Between(1, 6) / 2;
  FaultDrawer drawer(random, *workload, span);
  for (uint64_t i = 0; i < count; ++i)
    workload->faults.push_back(workload->orderly ? drawer.DrawOrderly() : drawer.Draw());
}

}  // namespace shoal
