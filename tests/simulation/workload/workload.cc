#include "tests/simulation/workload/workload.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/json/json_errors.h"
#include "common/step_plan/step_plan.h"
#include "tests/simulation/expected_sums.h"
#include "tests/simulation/random.h"

namespace shoal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = Fault::Kind;

// Its moving averages count: in float32 the momentum is 1, and what it leaves to a sample exactly
// 1 / kSampleScale. All begin at zero.
std::string NormalizationJson(Random& random) {
  return absl::StrFormat(
      R"(, {"class_name": "BatchNormalization", "config": {"name": "norm", "trainable": %s,
          "momentum": %.17g, "center": %s, "scale": %s,
          "beta_initializer": {"class_name": "Zeros", "config": {}},
          "gamma_initializer": {"class_name": "Zeros", "config": {}},
          "moving_mean_initializer": {"class_name": "Zeros", "config": {}},
          "moving_variance_initializer": {"class_name": "Zeros", "config": {}}}})",
      random.OneIn(6) ? "false" : "true", 1 - 1.0 / kSampleScale, random.Coin() ? "true" : "false",
      random.Coin() ? "true" : "false");
}

std::string ModelJson(Random& random, uint64_t seed) {
  const auto dense = [](const char* name, uint64_t units, bool trainable) {
    return absl::StrFormat(
        R"({"class_name": "Dense", "config": {"name": "%s", "units": %d, "trainable": %s,
            "activation": "linear", "use_bias": true,
            "kernel_initializer": {"class_name": "Zeros", "config": {}},
            "bias_initializer": {"class_name": "Zeros", "config": {}}}})",
        name, units, trainable ? "true" : "false");
  };
  std::string layers = absl::StrFormat(
      R"({"class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, %d]}})",
      random.Between(2, 6));
  absl::StrAppend(&layers, ", ", dense("first", random.Between(3, 9), true));
  // Drawn apart, so that all other seeds stay what they are.
  if (Random averages(seed * 0xd1342543de82ef95 + 3); averages.OneIn(3))
    layers += NormalizationJson(averages);
  if (random.OneIn(4)) absl::StrAppend(&layers, ", ", dense("fixed", random.Between(2, 4), false));
  absl::StrAppend(&layers, ", ", dense("last", random.Between(1, 5), true));
  return absl::StrCat(R"({"class_name": "Sequential", "config": {"name": "tiny", "layers": [)",
                      layers, "]}}");
}

Job DrawJob(Random& random, uint64_t seed, uint64_t examples, Workload::SumsIn* sums_in) {
  Job job;
  job.name = "simulated";
  job.model_json = ModelJson(random, seed);
  job.training = {.images = "/simulated/images", .labels = "/simulated/labels"};
  if (random.OneIn(3)) job.test = {.images = "/simulated/test", .labels = "/simulated/tests"};
  job.loss = R"("mse")";
  if (random.Coin()) job.metrics = {"accuracy"};
  const bool momentum = random.Coin();
  *sums_in = momentum ? Workload::SumsIn::kMomentum : Workload::SumsIn::kValues;
  job.optimizer = absl::StrFormat(
      R"({"class_name": "SGD", "config": {"learning_rate": 1, "momentum": %d}})", momentum ? 1 : 0);
  job.batch_size = static_cast<int64_t>(random.Between(1, 4));
  const uint64_t epoch_steps = (examples + job.batch_size - 1) / job.batch_size;
  const uint64_t steps = random.Between(20, 150);
  if (random.Coin()) {
    job.epochs = std::max<uint64_t>(1, steps / epoch_steps);
  } else {
    job.steps = steps;
  }
  job.strategy.chunk_bytes = 64 << random.Below(3);
  job.strategy.min_shard_bytes = 16 << random.Below(5);
  job.strategy.window_steps = random.OneIn(4) ? random.Between(1, 8) : random.Between(8, 64);
  job.strategy.lease_timeout_seconds = static_cast<double>(random.Between(1, 6));
  if (random.OneIn(4)) {
    job.checkpoint.every_seconds = 0.1 * static_cast<double>(random.Between(1, 20));
  } else if (!random.OneIn(8)) {
    job.checkpoint.every_steps = random.Between(3, 40);
  }
  job.checkpoint.keep = static_cast<int>(random.Between(1, 3));
  job.seed = random.Below(1000);
  return job;
}

class FaultDrawer {
 public:
  FaultDrawer(Random& random, const Workload& workload, Time span)
      : random_(random), workload_(workload), span_(span) {}

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

  // Tasks leave when they are told, and everything takes its time. A worker may be lost, but not
  // for long; where all may leave at once, none is, as nobody would be left to do its steps.
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
  // Misfortunes come in threes: often soon after the one before, or after what it has broken is
  // there again.
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
  Time last_{};  // around when the last fault was
};

// Short epochs, most of them evaluated, so that there is a cut at nearly every moment.
void MakeOrderly(Random& random, Workload* workload) {
  Job& job = workload->job;
  workload->orderly = true;
  workload->training_examples = job.batch_size * random.Between(3, 25);
  job.epochs = random.Between(3, 10);
  job.steps = 0;
  if (!random.OneIn(4)) {
    job.test = {.images = "/simulated/test", .labels = "/simulated/tests"};
    workload->test_examples = random.Between(1, 40);
  }
  if (random.Coin()) workload->blind_ps = static_cast<int>(random.Between(1, workload->ps));
}

// Half of the seeds have async without more.
void DrawStrategy(Random& random, Workload* workload) {
  Job::Strategy& strategy = workload->job.strategy;
  const uint64_t which = random.Below(4);
  if (which < 2) return;
  if (random.Coin()) strategy.speculate_after = static_cast<double>(random.Between(1, 4));
  if (which == 3) {
    strategy.name = "sync";
    // Of two gradients the sum is the same in either order.
    const uint64_t gradients = random.OneIn(4) ? random.Between(1, 2) : random.Between(3, 9);
    strategy.gradients_per_update =
        std::min({gradients, strategy.window_steps, workload->plan().steps_per_epoch()});
  } else if (strategy.speculate_after == 0 || random.Coin()) {
    strategy.max_staleness = random.Below(2 * workload->workers + 2);
  }
}

// A quarter of them have steps of several batches, in rounds where they were sync: an optimizer of
// the worker's own makes of them what ExpectedSums says, and the ps apply the outer one.
void DrawLocal(Random& random, Workload* workload) {
  if (!random.OneIn(4)) return;
  Job& job = workload->job;
  Job::Strategy& strategy = job.strategy;
  strategy.name = "local";
  strategy.batches_per_step = uint64_t{1} << random.Below(3);
  strategy.outer_optimizer = std::exchange(job.optimizer, R"("adam")");
  if (strategy.in_rounds()) {
    strategy.gradients_per_update =
        std::min(strategy.gradients_per_update, workload->plan().steps_per_epoch());
  } else if (job.callbacks.empty() && !random.OneIn(4)) {
    workload->sums_in = Workload::SumsIn::kDelayed;
    workload->momentum_every = uint64_t{1} << random.Below(4);
    strategy.outer_optimizer = absl::StrFormat(
        R"({"class_name": "DelayedNesterov", "config": {"learning_rate": 1, "momentum": 1,
            "momentum_every": %d}})",
        workload->momentum_every);
  }
}

// Half of those whose steps have several batches, and no values pulled for them.
void DrawFragments(Random& random, Workload* workload) {
  Job::Strategy& strategy = workload->job.strategy;
  if (!strategy.local() || strategy.in_rounds() || strategy.max_staleness.has_value()) return;
  if (strategy.batches_per_step == 1 || random.Coin()) return;
  strategy.fragments = random.Between(2, 5);
}

// Few workers at first, of those that have async without a bound of staleness.
void DrawWarmUp(Random& random, Workload* workload) {
  Job::Strategy& strategy = workload->job.strategy;
  if (strategy.in_rounds() || strategy.local() || strategy.max_staleness.has_value()) return;
  if (!random.OneIn(4)) return;
  strategy.warmup_steps = random.Between(1, workload->plan().total_steps());
  strategy.workers = static_cast<uint64_t>(workload->workers);
}

// Where each update has a learning rate of its own, values show no sums, nor which cut they are of.
void DrawLearningRates(Random& random, Workload* workload) {
  Job& job = workload->job;
  const bool async = !job.strategy.in_rounds() && !job.strategy.local();
  if (!async || !job.callbacks.empty() || !random.OneIn(3)) return;
  job.strategy.learning_rate_by_staleness = !random.OneIn(4);
  if (!job.strategy.learning_rate_by_staleness || random.OneIn(4)) {
    job.strategy.scale_learning_rate = random.Coin() ? "linear" : "sqrt";
    job.strategy.workers = static_cast<uint64_t>(workload->workers);
  }
  workload->sums_in = Workload::SumsIn::kSquares;
  job.optimizer = R"({"class_name": "Adagrad", "config": {"initial_accumulator_value": 0}})";
}

// Steps that come to nothing, where a worker may have a loss scale, and an evaluation need not say
// by its values which of two cuts it is of.
void DrawOverflows(Random& random, Workload* workload) {
  const Job& job = workload->job;
  if (job.strategy.in_rounds() || job.strategy.local() || !job.callbacks.empty()) return;
  if (random.OneIn(3)) workload->overflows_one_in = random.Between(2, 20);
}

// The addends of ExpectedSums have few digits: bf16 loses none, and the sums must be exact then,
// too. What is pulled live is not looked at.
void DrawCompression(Random& random, Workload* workload) {
  if (!random.OneIn(4)) return;
  Job::Compression& compression = workload->job.compression;
  if (random.Coin()) compression.push = "bf16";
  if (random.Coin()) compression.pull = random.Coin() ? "bf16" : "int8";
}

// Early stopping, the best checkpoint, or both, over short epochs. What an evaluation comes to
// follows from its cut, which values show only without momentum.
void AddCallbacks(Random& random, Workload* workload) {
  Job& job = workload->job;
  workload->sums_in = Workload::SumsIn::kValues;
  job.optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 1, "momentum": 0}})";
  workload->training_examples = job.batch_size * random.Between(2, 12);
  job.epochs = random.OneIn(4) ? 0 : random.Between(2, 12);
  job.steps = job.epochs == 0 ? random.Between(5, 60) : 0;
  job.test = {.images = "/simulated/test", .labels = "/simulated/tests"};
  if (workload->test_examples == 0) workload->test_examples = random.Between(1, 12);
  const bool stops = !random.OneIn(4);
  const std::string stopping = absl::StrFormat(
      R"({"class_name": "EarlyStopping", "config": {"patience": %d, "restore_best_weights": %s}})",
      random.Below(4), random.Coin() ? "true" : "false");
  const std::string best = stops && random.Coin() ? "" : R"("ModelCheckpoint")";
  const std::string list =
      absl::StrCat("[", stops ? stopping : "", stops && !best.empty() ? ", " : "", best, "]");
  JsonErrors errors("");
  job.callbacks =
      ReadCallbacks(nlohmann::json::parse(list), "$.callbacks", {{"val_loss", false}}, &errors);
  SHOAL_CHECK(errors.ToStatus().ok(), list);
}

// A third of those without callbacks whose tasks may die. The one with more epochs trains what the
// former one did, and goes on with it.
void DrawChange(Random& random, Time undisturbed, Workload* workload) {
  if (workload->orderly || !workload->job.callbacks.empty() || !random.OneIn(3)) return;
  workload->faults.push_back({.kind = Kind::kChangeJob,
                              .at = random.Between(Time(1000), undisturbed),
                              .duration = random.Between(milliseconds(1), seconds(3))});
  // As a coordinator reads it, so that nothing differs but what is changed here.
  absl::StatusOr<Job> read = ParseResolvedJob(workload->job.ResolvedText(), "the job");
  SHOAL_CHECK(read.ok(), read.status().ToString());
  workload->job = *std::move(read);
  Workload next = *workload;
  if (next.job.epochs > 0 && random.Coin()) {
    next.job.epochs += random.Between(1, 3);
  } else {
    ++next.job.seed;
    next.sums_seed = random.Next();
    next.run_dir = "/run2";
  }
  next.ending = next.EndingWith({});
  workload->next = std::make_shared<const Workload>(std::move(next));
}

const char* Name(Kind kind) {
  switch (kind) {
    case Kind::kKill:
      return "kill";
    case Kind::kKillAfterCallbacks:
      return "kill after callbacks";
    case Kind::kKillAtFileOperation:
      return "kill at file operation";
    case Kind::kFreeze:
      return "freeze";
    case Kind::kReplace:
      return "replace";
    case Kind::kSecond:
      return "second";
    case Kind::kBreakStreams:
      return "break streams";
    case Kind::kCut:
      return "cut";
    case Kind::kCutBoth:
      return "cut both";
    case Kind::kSlowLinks:
      return "slow links";
    case Kind::kSlowReader:
      return "slow reader";
    case Kind::kDrain:
      return "drain";
    case Kind::kDrainAll:
      return "drain all";
    case Kind::kPowerLoss:
      return "power loss";
    case Kind::kDiskFull:
      return "disk full";
    case Kind::kDiskReadOnly:
      return "disk read-only";
    case Kind::kDiskSlow:
      return "disk slow";
    case Kind::kDamage:
      return "damage";
    case Kind::kRestartAll:
      return "restart all";
    case Kind::kChangeJob:
      return "change job";
  }
  return "";
}

double Seconds(Time time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

double Workload::TestLoss(uint64_t epoch) const {
  return static_cast<double>(Random(seed * 0xd6e8feb86659fd93 + epoch).Below(7));
}

Workload::Ending Workload::EndingWith(const std::map<uint64_t, double>& losses) const {
  const StepPlan steps = plan();
  Ending found;
  found.last_step = found.result_step = steps.total_steps();
  if (job.callbacks.empty()) return found;
  const Callback& first = job.callbacks.front();
  double best = 0;
  uint64_t waited = 0;
  for (uint64_t epoch = 0; epoch < steps.epochs(); ++epoch) {
    const auto given = losses.find(epoch);
    const double loss = given == losses.end() ? TestLoss(epoch) : given->second;
    if (!found.best_step.has_value() || loss < best) {
      best = loss;
      waited = 0;
      found.best_step = steps.EpochEnd(epoch);
    } else if (++waited >= first.monitor.patience.value_or(steps.epochs() + 1)) {
      found.last_step = found.result_step = steps.EpochEnd(epoch);
      break;
    }
  }
  if (first.restores_best) found.result_step = *found.best_step;
  return found;
}

std::vector<std::string> Workload::sums_slots() const {
  switch (sums_in) {
    case SumsIn::kValues:
      return {};
    case SumsIn::kMomentum:
      return {"sgd_momentum"};
    case SumsIn::kSquares:
      return {"adagrad_accumulator"};
    case SumsIn::kDelayed:
      return {"delayed_nesterov_momentum", "delayed_nesterov_buffer"};
  }
  return {};
}

float Workload::SumAt(const std::vector<std::span<const float>>& slots, size_t element) const {
  if (sums_in != SumsIn::kDelayed) return slots[0][element];
  return -(static_cast<float>(momentum_every) * slots[0][element] + slots[1][element]);
}

std::optional<RoundPlan> Workload::rounds() const {
  if (!job.strategy.in_rounds()) return std::nullopt;
  return RoundPlan(plan(), job.strategy.gradients_per_update);
}

Time Workload::FaultsEnd() const {
  Time end{};
  for (const Fault& fault : faults) end = std::max(end, fault.at + fault.duration);
  return end;
}

Workload DrawWorkload(uint64_t seed) {
  Random random(seed * 0x2545f4914f6cdd1d + 1);
  Workload workload;
  workload.seed = workload.sums_seed = seed;
  workload.ps = static_cast<int>(random.Between(1, 3));
  workload.workers = static_cast<int>(random.Between(1, 4));
  workload.unlisted_workers =
      random.OneIn(4) ? static_cast<int>(random.Below(workload.workers)) : 0;
  workload.blind_ps = random.OneIn(6) ? static_cast<int>(random.Between(1, workload.ps)) : 0;
  workload.training_examples = random.Between(10, 120);
  workload.job = DrawJob(random, seed, workload.training_examples, &workload.sums_in);
  workload.test_examples = workload.job.test.empty() ? 0 : random.Between(1, 12);
  workload.step_time = random.Between(milliseconds(2), milliseconds(150));
  workload.base_latency = random.Between(microseconds(50), milliseconds(3));
  workload.file_latency = random.Between(microseconds(20), milliseconds(4));
  // Drawn apart, so that all other seeds stay what they are.
  if (Random orderly(seed * 0x9e3779b97f4a7c15 + 2); orderly.OneIn(4))
    MakeOrderly(orderly, &workload);
  if (Random callbacks(seed * 0xa24baed4963ee407 + 4); callbacks.OneIn(4))
    AddCallbacks(callbacks, &workload);
  Random strategy(seed * 0xbf58476d1ce4e5b9 + 5);
  DrawStrategy(strategy, &workload);
  Random local(seed * 0xc4ceb9fe1a85ec53 + 8);
  DrawLocal(local, &workload);
  Random fragments(seed * 0xe7037ed1a0b428db + 10);
  DrawFragments(fragments, &workload);
  Random rates(seed * 0xff51afd7ed558ccd + 7);
  DrawLearningRates(rates, &workload);
  Random warm_up(seed * 0x9fb21c651e98df25 + 9);
  DrawWarmUp(warm_up, &workload);
  Random compression(seed * 0x94d049bb133111eb + 6);
  DrawCompression(compression, &workload);
  Random overflows(seed * 0xe7037ed1a0b428db + 10);
  DrawOverflows(overflows, &workload);
  workload.ending = workload.EndingWith({});
  // One of eight goes without faults.
  const uint64_t count = random.OneIn(8) ? 0 : random.Between(1, random.Coin() ? 6 : 25);
  // Most of them while the job would run if there were none.
  const Time undisturbed = milliseconds(300) + workload.plan().total_steps() * workload.step_time /
                                                   (2 * static_cast<int64_t>(workload.workers));
  const Time span = undisturbed * random.Between(1, 6) / 2;
  FaultDrawer drawer(random, workload, span);
  for (uint64_t i = 0; i < count; ++i)
    workload.faults.push_back(workload.orderly ? drawer.DrawOrderly() : drawer.Draw());
  Random change(seed * 0x8ebc6af09c88c6e3 + 11);
  DrawChange(change, undisturbed, &workload);
  std::stable_sort(workload.faults.begin(), workload.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  return workload;
}

std::string Describe(const Workload& workload) {
  const Job& job = workload.job;
  std::string text = absl::StrFormat(
      "seed %d: %d ps (%d without the disk), %d workers (%d not listed), %d examples, %d tests, "
      "batch %d, epochs %d, "
      "steps %d, sums in \"%s\", window %d, lease %g s, chunk %d bytes, shard %d bytes, checkpoint "
      "every %d steps or %g s, keep %d%s\n",
      workload.seed, workload.ps, workload.blind_ps, workload.workers, workload.unlisted_workers,
      workload.training_examples, workload.test_examples, job.batch_size, job.epochs, job.steps,
      absl::StrJoin(workload.sums_slots(), " and "), job.strategy.window_steps,
      job.strategy.lease_timeout_seconds, job.strategy.chunk_bytes, job.strategy.min_shard_bytes,
      job.checkpoint.every_steps, job.checkpoint.every_seconds, job.checkpoint.keep,
      workload.orderly ? ", orderly" : "");
  if (const auto bound = job.strategy.max_staleness; bound.has_value())
    absl::StrAppendFormat(&text, "staleness at most %d\n", *bound);
  if (job.strategy.learning_rate_by_staleness)
    absl::StrAppend(&text, "learning rate by staleness\n");
  if (!job.strategy.scale_learning_rate.empty() || job.strategy.warmup_steps > 0) {
    absl::StrAppendFormat(&text, "learning rate scaled: \"%s\"; %d steps of warm-up, %d workers\n",
                          job.strategy.scale_learning_rate, job.strategy.warmup_steps,
                          job.strategy.workers);
  }
  if (job.strategy.in_rounds())
    absl::StrAppendFormat(&text, "%d steps an update\n", job.strategy.gradients_per_update);
  if (job.strategy.local()) {
    absl::StrAppendFormat(&text, "local, %d batches a step in %d fragments, outer optimizer %s\n",
                          job.strategy.batches_per_step, job.strategy.fragments,
                          job.strategy.outer_optimizer);
  }
  if (job.strategy.speculate_after > 0)
    absl::StrAppendFormat(&text, "speculates after %g median steps\n",
                          job.strategy.speculate_after);
  if (!job.compression.push.empty() || !job.compression.pull.empty())
    absl::StrAppendFormat(&text, "pushes \"%s\", pulls \"%s\"\n", job.compression.push,
                          job.compression.pull);
  if (workload.overflows_one_in > 0)
    absl::StrAppendFormat(&text, "one step in %d overflows\n", workload.overflows_one_in);
  if (workload.next != nullptr) {
    absl::StrAppendFormat(&text, "the next job: epochs %d, seed %d, in %s\n",
                          workload.next->job.epochs, workload.next->job.seed,
                          workload.next->run_dir);
  }
  for (const Callback& callback : job.callbacks) absl::StrAppend(&text, callback.config, "\n");
  if (!job.callbacks.empty()) {
    absl::StrAppendFormat(&text, "ends at step %d with the values of step %d\n",
                          workload.ending.last_step, workload.ending.result_step);
  }
  absl::StrAppendFormat(&text, "step %g s, message %g s, file operation %g s\n",
                        Seconds(workload.step_time), Seconds(workload.base_latency),
                        Seconds(workload.file_latency));
  for (const Fault& fault : workload.faults) {
    absl::StrAppendFormat(&text, "%11.6f FAULT %s: %s %s, for %g s, latency %g s, count %d\n",
                          Seconds(fault.at), Name(fault.kind), fault.task, fault.other,
                          Seconds(fault.duration), Seconds(fault.latency), fault.count);
  }
  return text;
}

}  // namespace shoal
