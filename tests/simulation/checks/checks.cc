#include "tests/simulation/checks/checks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/term.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/checkpoint/safetensors.h"
#include "common/run/history.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"
#include "proto/worker.pb.h"
#include "tests/ps/store/applied_steps.h"

namespace shoal {
namespace {

// One line of a message for the trace.
template <typename Proto>
std::string Short(const Message& message) {
  Proto proto;
  if (!ParseMessage(message, &proto)) return "garbage";
  std::string text = proto.ShortDebugString();
  if (text.size() > 300) text = text.substr(0, 300) + "...";
  return text;
}

std::string Describe(const std::string& method, bool by_client, const Message& message) {
  if (method == kWorkMethod) {
    return by_client ? Short<proto::WorkerReport>(message) : Short<proto::WorkerOrder>(message);
  }
  if (method == kExchangeMethod) {
    return by_client ? Short<proto::ExchangeRequest>(message)
                     : Short<proto::ExchangeReply>(message);
  }
  return by_client ? Short<proto::ControlRequest>(message) : Short<proto::ControlReply>(message);
}

}  // namespace

// --- ps ------------------------------------------------------------------------------------------

void Checks::OnPs(const SimulatedProcess& process, int index, const ParameterServer& server) {
  Life& life = servers_[&process];
  const VariableStore* const store = server.variables();
  const uint64_t pushed = std::exchange(life.pushed, 0);
  if (server.promised_term() < life.promised_term) {
    world_.Fail(absl::StrCat(process.name(), " has promised term ", TermText(life.promised_term),
                             " and follows ", TermText(server.promised_term())));
  }
  life.promised_term = server.promised_term();
  if (server.timeline() != life.timeline) {
    life.timeline = server.timeline();
    life.chunks.clear();
    if (life.timeline != 0) job_of_[life.timeline] = workload_;
    if (life.timeline != 0 && !opened_[index].insert(life.timeline).second) {
      world_.Fail(
          absl::StrCat(process.name(), " has loaded timeline ", TermText(life.timeline), " twice"));
    }
    if (store != nullptr) {
      life.chunks.resize(store->chunk_count());
      for (int k = 0; k < store->chunk_count(); ++k) {
        const StoredChunk& stored = store->chunk(k);
        life.chunks[k] = {stored.version(), stored.applied().base(), CountSteps(stored.applied())};
        CheckChunk(process, *store, k);
      }
    }
    return;
  }
  if (store == nullptr) return;
  for (int k = 0; k < store->chunk_count(); ++k) {
    Chunk& chunk = life.chunks[k];
    const uint64_t version = store->chunk(k).version();
    const AppliedSet& applied = store->chunk(k).applied();
    if (chunk.version == version && chunk.count == CountSteps(applied)) continue;
    if (applied.base() < chunk.base || CountSteps(applied) < chunk.count) {
      world_.Fail(absl::StrCat(process.name(), " chunk ", k, " has forgotten steps in timeline ",
                               TermText(life.timeline)));
    }
    chunk = {version, applied.base(), CountSteps(applied)};
    CheckChunk(process, *store, k);
    if (pushed != life.timeline) {
      world_.Fail(absl::StrCat(process.name(), " has applied a push of timeline ", TermText(pushed),
                               " in ", TermText(life.timeline)));
    }
  }
}

// Nothing that it has applied is done again.
void Checks::OnLeft(const SimulatedProcess& process) {
  const Life& life = servers_[&process];
  const VariableStore* const store = life.server->variables();
  if (!workload_->orderly || !life.may_go || store == nullptr) return;
  uint64_t end = 0;
  for (int k = 0; k < store->chunk_count(); ++k) {
    const StoredChunk& chunk = store->chunk(k);
    if (chunk.layout().pushed())
      end = std::max(end, rounds_.has_value() ? chunk.version() : chunk.applied().end());
  }
  const std::vector<StoredCheckpoint> stored = Stored();
  const uint64_t kept = stored.empty() ? 0 : stored[0].manifest.cut_step;
  if (end <= kept) return;
  world_.Fail(absl::StrCat(process.name(), " may leave and has applied step ", end - 1,
                           ", but the newest checkpoint has only those below ", kept));
}

// Exactly once: the chunk is the sum of exactly the steps that it says it has applied.
void Checks::CheckChunk(const SimulatedProcess& process, const VariableStore& store, int index) {
  const StoredChunk& stored = store.chunk(index);
  const AppliedSet& applied = stored.applied();
  const shoal::Chunk& chunk = stored.layout();
  if (!chunk.pushed()) {
    if (CountSteps(applied) != applied.base()) world_.Fail("a chunk that is not trained was");
    return;
  }
  CheckSteps(process, applied, stored.version(), index);
  // In rounds, what it has in beyond them is not in its values.
  const uint64_t below = rounds_.has_value() ? stored.version() : applied.base();
  std::vector<uint64_t> after;
  if (!rounds_.has_value()) after = StepsAfterBase(applied);
  std::vector<std::span<const float>> slots;
  if (chunk.has_slots()) {
    for (size_t slot = 0; slot < workload_->sums_slots().size(); ++slot)
      slots.push_back(stored.slot(static_cast<int>(slot)));
  }
  CheckBuffer(absl::StrCat(process.name(), " chunk ", index), slots, stored.version());
  for (const ChunkPiece& piece : chunk.pieces) {
    for (int64_t i = 0; i < piece.size; ++i) {
      const int64_t element = piece.variable_offset + i;
      float expected = sums_->Below(below, piece.variable, element);
      for (const uint64_t step : after) expected += sums_->Addend(step, piece.variable, element);
      const float sum = SumOf(slots, stored.values(), piece.chunk_offset + i);
      if (sum == expected) continue;
      world_.Fail(absl::StrFormat(
          "%s chunk %d is %.9g at %d, but the steps below %d and %d after it make %.9g",
          process.name(), index, sum, i, below, after.size(), expected));
      return;
    }
  }
}

void Checks::CheckBuffer(const std::string& where, const std::vector<std::span<const float>>& slots,
                         uint64_t updates) {
  if (workload_->sums_in != Workload::SumsIn::kDelayed || slots.empty()) return;
  const auto buffered = static_cast<float>(updates % workload_->momentum_every);
  for (const float value : slots[1]) {
    if (-value >= buffered && -value <= kMaxAddend * buffered) continue;
    return world_.Fail(absl::StrCat(where, " has ", -value, " in its buffer, which is no sum of ",
                                    buffered, " differences, after ", updates, " updates"));
  }
}

void Checks::CheckSteps(const SimulatedProcess& process, const AppliedSet& applied,
                        uint64_t version, int chunk) {
  if (applied.end() > workload_->ending.last_step) world_.Fail("a step beyond the end was applied");
  if (!rounds_.has_value()) {
    if (CountSteps(applied) == version) return;
    return world_.Fail(absl::StrCat(process.name(), " chunk ", chunk, " has had ", version,
                                    " updates of ", CountSteps(applied), " steps"));
  }
  const uint64_t end = rounds_->NextStart(version + 1);
  bool whole = rounds_->StartsAt(version) && applied.end() <= end;
  for (uint64_t step = applied.base(); step < version; ++step)
    whole = whole && applied.Contains(step);
  if (whole && !(applied.base() >= end && end > version)) return;
  world_.Fail(absl::StrCat(process.name(), " chunk ", chunk, " is at version ", version,
                           ", and has in the steps below ", applied.base(), " and some below ",
                           applied.end(), ": no whole rounds, or more than the round after them"));
}

// --- Coordinator ---------------------------------------------------------------------------------

void Checks::OnCoordinator(const SimulatedProcess& process, const TrainingRun& run,
                           const std::vector<const ParameterServer*>& servers) {
  const StepDispatcher* const steps = run.dispatcher();
  if (steps == nullptr) {
    compared_.erase(&process);
    return;
  }
  const std::pair now(steps->base(), steps->done_after_base().size());
  if (auto [before, is_new] = compared_.emplace(&process, now); !is_new) {
    if (before->second == now) return;
    before->second = now;
  }
  for (const ParameterServer* server : servers) {
    if (server == nullptr || server->timeline() != run.timeline()) continue;
    const VariableStore& store = *server->variables();
    for (int k = 0; k < store.chunk_count(); ++k) {
      if (!store.chunk(k).layout().pushed()) continue;
      const AppliedSet& applied = store.chunk(k).applied();
      bool all = applied.base() >= steps->base() || CountSteps(applied) >= steps->base();
      for (uint64_t step = applied.base(); step < steps->base(); ++step) {
        all = all && applied.Contains(step);
      }
      for (const uint64_t step : steps->done_after_base()) all = all && applied.Contains(step);
      if (all) continue;
      world_.Fail(absl::StrCat(process.name(), " takes steps for done that chunk ", k, " of ps ",
                               store.options().ps_index, " has not applied (base ", steps->base(),
                               " there ", applied.base(), ")"));
      return;
    }
  }
}

// --- Workers -------------------------------------------------------------------------------------

void Checks::OnTrain(const SimulatedProcess& process, uint64_t step, size_t chunks) {
  Origin& origin = workers_[&process];
  origin.timeline = origin.announced;
  origin.step = step;
  if (origin.fresh.size() >= chunks) return;
  world_.Fail(absl::StrCat(process.name(), " trains on parameters of which only ",
                           origin.fresh.size(), " of ", chunks, " chunks are of timeline ",
                           TermText(origin.timeline)));
}

uint64_t Checks::OnEvaluate(const SimulatedJob& job, std::span<const float> parameters) {
  // All of one cut: the first trained variable says which.
  const ExpectedSums& sums = *job.sums;
  const std::vector<Variable>& variables = sums.variables();
  std::set<uint64_t> cuts;
  for (uint64_t cut = 0; cut <= job.workload->plan().total_steps(); ++cut) cuts.insert(cut);
  for (size_t v = 0; v < variables.size(); ++v) {
    if (sums_in_slot_ && variables[v].has_slots()) continue;
    const ModelLayout::Extent& extent = sums.layout().variables[v];
    for (int64_t i = 0; i < extent.size; ++i) {
      std::erase_if(cuts, [&](uint64_t cut) {
        return sums.Below(cut, static_cast<int>(v), i) != parameters[extent.offset + i];
      });
    }
  }
  if (cuts.empty()) world_.Fail("an evaluation is of parameters that are no cut");
  return cuts.empty() ? 0 : *cuts.begin();
}

void Checks::OnChange(const SimulatedJob& job) {
  if (job.workload->run_dir == workload_->run_dir) former_end_ = workload_->ending.result_step;
  workload_ = job.workload;
  sums_ = job.sums;
  rounds_ = job.workload->rounds();
}

void Checks::CheckJob(const SimulatedProcess& worker, uint64_t timeline, const std::string& does) {
  const auto of_timeline = job_of_.find(timeline);
  if (of_timeline == job_of_.end() || of_timeline->second == jobs_[&worker].workload) return;
  world_.Fail(absl::StrCat(worker.name(), " ", does, " of timeline ", TermText(timeline),
                           ", and computes another job"));
}

// --- Messages ------------------------------------------------------------------------------------

void Checks::Forget(const SimulatedProcess* process) {
  servers_.erase(process);
  workers_.erase(process);
  jobs_.erase(process);
  compared_.erase(process);
}

void Checks::OnSent(SimulatedProcess& sender, const std::string& method, bool by_client,
                    const Message& message) {
  if (world_.tracing()) {
    world_.Trace(sender.name(), absl::StrCat("-> ", Describe(method, by_client, message)));
  }
  if (method == kWorkMethod && !by_client) {
    proto::WorkerOrder order;
    ParseMessage(message, &order);
    for (uint64_t i = 0; i < order.lease().count(); ++i)
      ++leases_[{order.lease().timeline(), order.lease().first() + i}];
  }
  if (method != kExchangeMethod) return;
  if (by_client) {
    proto::ExchangeRequest request;
    ParseMessage(message, &request);
    if (!request.has_push()) return;
    CheckJob(sender, request.push().timeline(), "pushes a step");
    CheckRound(sender, request.push());
    const Origin& origin = workers_[&sender];
    if (origin.timeline != request.push().timeline() || origin.step != request.push().step()) {
      world_.Fail(absl::StrCat(sender.name(), " pushes step ", request.push().step(),
                               " of timeline ", TermText(request.push().timeline()),
                               " with the gradient of step ", origin.step, " of timeline ",
                               TermText(origin.timeline)));
    }
    if (request.push().nothing() != jobs_[&sender].sums->Overflows(request.push().step())) {
      world_.Fail(
          absl::StrCat(sender.name(), " pushes of step ", request.push().step(),
                       request.push().nothing() ? " nothing" : " a gradient that overflows"));
    }
    return;
  }
  proto::ExchangeReply reply;
  ParseMessage(message, &reply);
  if (!reply.has_applied()) return;
  // An acknowledgement is a fact.
  const Life& life = servers_[&sender];
  const VariableStore* const store = life.server->variables();
  if (life.server->timeline() != reply.applied().timeline() || store == nullptr ||
      !store->chunk(static_cast<int>(reply.applied().chunk()))
           .applied()
           .Contains(reply.applied().step())) {
    world_.Fail(absl::StrCat(sender.name(), " acknowledges what it has not applied"));
  }
  CheckStaleness(sender.name(), reply.applied());
}

void Checks::CheckRound(const SimulatedProcess& worker, const proto::Push& push) {
  if (rounds_.has_value() != push.has_round())
    return world_.Fail(worker.name() + " pushes a round where there is none, or none where it is");
  if (!rounds_.has_value()) return;
  const Round expected = rounds_->Of(push.step());
  const Round round = {.first = push.round().first(),
                       .count = push.round().count(),
                       .number = push.round().number()};
  if (round == expected && push.pulled_version() == expected.first) return;
  world_.Fail(absl::StrCat(worker.name(), " pushes step ", push.step(), " of version ",
                           push.pulled_version(), " in round ", round.number, ", steps ",
                           round.first, " to ", round.end(), ", where that is round ",
                           expected.number, ", steps ", expected.first, " to ", expected.end()));
}

bool Checks::coordinator_stays() const {
  using Kind = Fault::Kind;
  return std::none_of(workload_->faults.begin(), workload_->faults.end(), [](const Fault& fault) {
    if (fault.kind == Kind::kPowerLoss || fault.kind == Kind::kRestartAll ||
        fault.kind == Kind::kChangeJob || fault.kind == Kind::kDrainAll) {
      return true;
    }
    const bool ends = fault.kind == Kind::kKill || fault.kind == Kind::kKillAfterCallbacks ||
                      fault.kind == Kind::kKillAtFileOperation || fault.kind == Kind::kReplace ||
                      fault.kind == Kind::kSecond || fault.kind == Kind::kDrain;
    return ends && fault.task == "chief";
  });
}

void Checks::CheckStaleness(const std::string& ps, const proto::Applied& applied) {
  const std::optional<uint64_t>& bound = workload_->job.strategy.max_staleness;
  if (!bound.has_value() || applied.staleness() <= *bound || !coordinator_stays()) return;
  if (leases_[{applied.timeline(), applied.step()}] != 1) return;
  world_.Fail(absl::StrCat(ps, " applies step ", applied.step(), " to chunk ", applied.chunk(),
                           ", which has had ", applied.staleness(),
                           " updates since it was pulled, where ", *bound, " are allowed"));
}

void Checks::OnReceived(SimulatedProcess& receiver, const std::string& sender,
                        const std::string& method, bool by_client, const Message& message) {
  if (world_.tracing()) {
    world_.Trace(receiver.name(), absl::StrCat("<- ", Describe(method, by_client, message)));
  }
  if (by_client) {
    if (method == kControlMethod) {
      proto::ControlRequest request;
      ParseMessage(message, &request);
      if (request.has_stop()) servers_[&receiver].may_go = true;
    }
    if (method != kExchangeMethod) return;
    proto::ExchangeRequest request;
    ParseMessage(message, &request);
    if (request.has_push()) servers_[&receiver].pushed = request.push().timeline();
    return;
  }
  if (method == kWorkMethod) {
    proto::WorkerOrder order;
    ParseMessage(message, &order);
    if (order.has_lease()) CheckJob(receiver, order.lease().timeline(), "is leased steps");
    Origin& origin = workers_[&receiver];
    if (!order.has_timeline_opened() || order.timeline_opened().timeline() == origin.announced) {
      return;
    }
    origin.announced = order.timeline_opened().timeline();
    origin.fresh.clear();
  } else if (method == kExchangeMethod) {
    proto::ExchangeReply reply;
    ParseMessage(message, &reply);
    if (!reply.has_values() || reply.values().cut_step() != 0) return;
    Origin& origin = workers_[&receiver];
    if (reply.values().timeline() != origin.announced) return;
    origin.fresh.insert({sender, reply.values().chunk()});
  }
}

void Checks::OnFinished(SimulatedProcess& server, const std::string& method,
                        const absl::Status& status) {
  if (world_.tracing()) {
    world_.Trace(server.name(), absl::StrCat("ends ", method, ": ", status.ToString()));
  }
  // After a restart with another number of ps, what an older worker has said may arrive late.
  const bool late = cluster_changes() && absl::IsFailedPrecondition(status);
  // A push was faster than the Claim that tells a ps how many examples there are.
  const bool early = method == kExchangeMethod && absl::IsUnavailable(status);
  if (!status.ok() && !late && !early) {
    world_.Fail(
        absl::StrCat(server.name(), " ended a stream of ", method, ": ", status.ToString()));
  }
}

// --- Files ---------------------------------------------------------------------------------------

void Checks::OnRenamed(const std::string& path) {
  if (absl::EndsWith(path, "/manifest.json")) {
    CheckCheckpoint(path.substr(0, path.rfind('/')));
  }
}

void Checks::CheckCheckpoint(const std::string& directory) {
  if (damaged_.contains(directory)) return;
  const auto reader = CheckpointReader::Open(directory, &disk_);
  const absl::Status whole = reader.ok() ? (*reader)->Verify() : reader.status();
  if (!whole.ok()) {
    return world_.Fail(absl::StrCat(directory, " is not whole: ", whole.ToString()));
  }
  const uint64_t cut = (*reader)->manifest().cut_step;
  for (size_t v = 0; v < sums_->variables().size(); ++v) {
    const Variable& variable = sums_->variables()[v];
    std::vector<std::string> tensors;
    if (variable.has_slots()) {
      for (const std::string& slot : workload_->sums_slots())
        tensors.push_back(absl::StrCat(slot, "/", variable.name));
    }
    const bool in_slots = !tensors.empty();
    if (!in_slots) tensors.push_back(variable.name);
    std::vector<std::vector<float>> read_values;
    std::vector<std::span<const float>> slots;
    for (const std::string& tensor : tensors) {
      std::vector<float>& values = read_values.emplace_back(ElementCount(variable.shape));
      const absl::Status read =
          (*reader)->Read(tensor, variable.shape, 0, values.data(), values.size() * sizeof(float));
      if (!read.ok()) return world_.Fail(read.ToString());
      if (in_slots) slots.push_back(values);
    }
    CheckBuffer(absl::StrCat(directory, ": ", variable.name), slots, cut);
    for (size_t i = 0; i < read_values[0].size(); ++i) {
      const float expected = sums_->Below(cut, static_cast<int>(v), static_cast<int64_t>(i));
      const float sum = SumOf(slots, read_values[0], i);
      if (sum == expected) continue;
      return world_.Fail(absl::StrCat(directory, ": ", absl::StrJoin(tensors, " and "), " make ",
                                      sum, " at ", i, ", but the steps below ", cut, " make ",
                                      expected));
    }
  }
}

std::vector<StoredCheckpoint> Checks::Stored() {
  CheckpointStore store(workload_->run_dir + "/checkpoints", &disk_);
  absl::StatusOr<std::vector<StoredCheckpoint>> stored = store.List(nullptr);
  if (!stored.ok()) return {};
  std::erase_if(*stored, [this](const StoredCheckpoint& checkpoint) {
    return damaged_.contains(checkpoint.directory);
  });
  return *stored;
}

void Checks::OnPowerLoss() {
  for (const StoredCheckpoint& checkpoint : Stored()) CheckCheckpoint(checkpoint.directory);
  const std::string model = workload_->run_dir + "/model";
  if (disk_.Exists(model)) CheckModel(model, /*of_now=*/false);
}

void Checks::CheckModel(const std::string& directory, bool of_now) {
  const auto file = SafetensorsFile::Open(directory + "/model.safetensors", &disk_);
  if (!file.ok()) return world_.Fail("the saved model: " + file.status().ToString());
  // Where the checkpoint of the best epoch was changed on purpose, the last one's may be in it.
  const Workload::Ending ending = EndingAsEvaluated();
  std::set<uint64_t> ends = {ending.result_step};
  if (!damaged_.empty()) ends.insert(ending.last_step);
  if (!of_now && former_end_.has_value()) ends.insert(*former_end_);
  for (size_t v = 0; v < sums_->variables().size(); ++v) {
    if (sums_in_slot_ && sums_->variables()[v].has_slots()) continue;
    const TensorEntry* const entry = (*file)->Find(sums_->variables()[v].name);
    if (entry == nullptr) return world_.Fail("the saved model lacks a variable");
    const absl::StatusOr<std::vector<float>> values = (*file)->ReadFloats(*entry);
    if (!values.ok()) return world_.Fail("the saved model: " + values.status().ToString());
    for (size_t i = 0; i < values->size(); ++i) {
      std::erase_if(ends, [&](uint64_t end) {
        return (*values)[i] != sums_->Below(end, static_cast<int>(v), i);
      });
      if (!ends.empty()) continue;
      return world_.Fail(
          absl::StrCat("the saved model is not the sum of the steps below ", ending.result_step));
    }
  }
}

Workload::Ending Checks::EndingAsEvaluated() const {
  std::map<uint64_t, double> losses;
  for (const proto::EpochResult& epoch :
       ReadHistory(workload_->run_dir + "/history.csv", &disk_).epochs) {
    if (epoch.has_test_loss()) losses[epoch.epoch()] = epoch.test_loss();
  }
  return workload_->EndingWith(losses);
}

void Checks::OnJobDone(const std::string& run_dir) {
  // What is said to be done lasts.
  disk_.LosePower(&world_.random());
  OnPowerLoss();
  const std::vector<StoredCheckpoint> stored = Stored();
  if (stored.empty() || stored[0].manifest.cut_step != EndingAsEvaluated().last_step) {
    std::string there;
    for (const StoredCheckpoint& each : stored) {
      absl::StrAppend(&there, " ", each.directory, " of ", TermText(each.manifest.timeline));
    }
    world_.Fail("the job is said to be done, but no final checkpoint is the newest:" + there);
  }
  // The best epoch's is kept, however many came later.
  const std::optional<uint64_t> best = EndingAsEvaluated().best_step;
  const bool kept = std::any_of(stored.begin(), stored.end(), [&best](const auto& each) {
    return each.manifest.cut_step == best;
  });
  if (best.has_value() && !kept && damaged_.empty())
    world_.Fail(
        absl::StrCat("there is no checkpoint of the best epoch, which ends at step ", *best));
  if (!disk_.Exists(run_dir + "/model/model.json")) {
    return world_.Fail("the job is said to be done, but there is no saved model");
  }
  CheckModel(run_dir + "/model", /*of_now=*/true);
  // Each example once an epoch: the final lineage has each step once.
  const StepPlan steps = plan();
  std::map<std::pair<uint64_t, uint64_t>, int> uses;
  for (uint64_t step = 0; step < steps.total_steps(); ++step) {
    const StepRange range = steps.Range(step);
    const IndexPermutation order(steps.examples(), workload_->job.seed, range.epoch);
    for (uint64_t i = 0; i < range.count; ++i) ++uses[{range.epoch, order(range.first + i)}];
  }
  for (const auto& [example, count] : uses) {
    if (count != 1) world_.Fail("an example is used twice in an epoch");
  }
}

}  // namespace shoal
