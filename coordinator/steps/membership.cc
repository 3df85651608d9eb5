#include "coordinator/steps/membership.h"

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/text/printable.h"
#include "common/base/version.h"
#include "common/job/job.h"
#include "common/log/logging.h"
#include "common/rpc/field_limits.h"

namespace shoal {
namespace {

constexpr size_t kMaxGone = 1000;        // records of workers that are gone and not listed
constexpr size_t kMaxDetailBytes = 500;  // of a text that a worker sends
// A worker that reopens its stream counts as gone after this time. Its steps wait for this long.
constexpr Time kReopenPatience = std::chrono::seconds(5);
// A worker takes at most this many leases: 2^14, and the step that it computes.
constexpr int kMaxHeldSteps = (1 << 14) + 1;

constexpr FieldLimit kReportLimits[] = {{.kind = proto::WorkerReport::kHelloFieldNumber,
                                         .field = proto::WorkerHello::kHeldStepsFieldNumber,
                                         .max = kMaxHeldSteps,
                                         .packed = true},
                                        {.kind = proto::WorkerReport::kStepsDoneFieldNumber,
                                         .field = proto::StepsDone::kStepsFieldNumber,
                                         .max = kMaxHeldSteps}};

// Caps the texts in a report, and makes them printable. Any process can open a stream and send
// texts of any length; people read them in log and status.
void CapTexts(proto::WorkerReport* report) {
  if (report->has_hello()) {
    proto::WorkerHello* hello = report->mutable_hello();
    *hello->mutable_host() = Printable(hello->host(), kMaxNameBytes);
    *hello->mutable_device() = Printable(hello->device(), kMaxNameBytes);
  } else if (report->has_leaving()) {
    proto::Leaving* leaving = report->mutable_leaving();
    *leaving->mutable_reason() = PrintableLines(leaving->reason(), kMaxDetailBytes);
  } else if (report->has_waiting()) {
    proto::Waiting* waiting = report->mutable_waiting();
    *waiting->mutable_what() = Printable(waiting->what(), kMaxDetailBytes);
  }
}

// Parses a report and caps its texts. The message of an error is a reason for the worker.
absl::Status ParseWorkerReport(const Message& message, absl::FunctionRef<std::string()> peer,
                               proto::WorkerReport* report) {
  const absl::Status parsed = ParseWithin(kReportLimits, message, peer, report);
  if (parsed.ok()) CapTexts(report);
  return parsed;
}

}  // namespace

Membership::Membership(Options options)
    : options_(std::move(options)),
      admission_({.loop = options_.loop,
                  .job_fingerprint = JobFingerprint(options_.job_text),
                  .newcomer = "a worker",
                  .message = [](const proto::Rejected& rejected) {
                    proto::WorkerOrder order;
                    *order.mutable_rejected() = rejected;
                    return MakeMessage(order);
                  }}) {}

Membership::~Membership() = default;

StreamCallbacks Membership::Accept(std::unique_ptr<Stream> stream) {
  const StepDispatcher::WorkerKey key = admission_.Add(std::move(stream));
  return {.on_message = [this, key](Message message) { OnMessage(key, message); },
          .on_closed = [this, key](absl::Status status) { OnClosed(key, status); }};
}

void Membership::Reject(Worker& worker, const std::string& reason, bool final) {
  Reject(worker, MakeRejected(reason, final));
}

void Membership::Reject(Worker& worker, const proto::Rejected& rejected) {
  if (worker.stream != nullptr) {
    admission_.RejectSeated(worker.key, std::move(worker.stream),
                            absl::StrCat("worker ", worker.index), rejected);
  }
  Remove(worker.key, rejected.reason());
}

void Membership::Broadcast(const proto::WorkerOrder& order) {
  for (auto& [key, worker] : workers_) worker->Send(order);
}

void Membership::EndJob(const std::string& failure) {
  job_done_.emplace().mutable_job_done()->set_failure(failure);
  Broadcast(*job_done_);
  for (const auto& [key, worker] : workers_) {
    if (worker->stream != nullptr) notified_.insert(worker->index);
  }
}

bool Membership::AllNotified() const {
  return std::ranges::all_of(options_.listed, [this](int index) {
    const auto record = records_.find(index);
    const bool left = record != records_.end() && record->second.state == Record::State::kLeft;
    return left || notified_.contains(index);
  });
}

std::vector<Worker*> Membership::Ready() {
  std::vector<Worker*> ready;
  for (auto& [key, worker] : workers_) {
    if (worker->ready) ready.push_back(worker.get());
  }
  return ready;
}

bool Membership::AnyReady() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& worker) { return worker.second->ready; });
}

bool Membership::AllLeft() const {
  return std::all_of(records_.begin(), records_.end(), [](const auto& record) {
    return record.second.state == Record::State::kLeft;
  });
}

void Membership::OnMessage(StepDispatcher::WorkerKey key, const Message& message) {
  const auto found = workers_.find(key);
  if (found == workers_.end() && admission_.joining(key) == nullptr) return;
  proto::WorkerReport report;
  const auto peer = [this, key, found] {
    if (found == workers_.end()) return "the worker at " + admission_.joining(key)->peer();
    return absl::StrCat("worker ", found->second->index, " at ", found->second->stream->peer());
  };
  const absl::Status parsed = ParseWorkerReport(message, peer, &report);
  if (found == workers_.end()) {
    if (!parsed.ok()) return admission_.RejectJoining(key, std::string(parsed.message()), true);
    if (report.has_hello()) return OnHello(key, report.hello());
    return admission_.RejectJoining(
        key, "the first message of a worker must be its hello, but this process sent another one",
        true);
  }
  Worker& worker = *found->second;
  if (!parsed.ok()) return Reject(worker, std::string(parsed.message()), true);
  if (report.has_hello())
    return Reject(worker, "this worker sent its hello twice on one stream", true);
  if (report.has_reopening()) return OnReopening(worker);
  if (report.has_ready()) {
    if (worker.ready) return;
    if (const auto rejected = admission_.CheckJob(report.ready().job_fingerprint()))
      return Reject(worker, *rejected);
    return options_.on_ready(worker, report.ready());
  }
  options_.on_report(worker, report);
}

Worker* Membership::WorkerAt(int index) {
  const auto found = std::ranges::find_if(
      workers_, [index](const auto& worker) { return worker.second->index == index; });
  return found == workers_.end() ? nullptr : found->second.get();
}

void Membership::OnHello(StepDispatcher::WorkerKey key, const proto::WorkerHello& hello) {
  const std::string who = absl::StrCat("the worker at ", admission_.joining(key)->peer());
  if (const absl::Status same = CheckVersion(hello.version(), who); !same.ok())
    return admission_.RejectJoining(key, std::string(same.message()), true);
  absl::StatusOr<int> index = IndexFor(hello);
  if (!index.ok())
    return admission_.RejectJoining(key, std::string(index.status().message()), true);
  if (const absl::Status claim = admission_.joining(key)->CheckClaim(*index); !claim.ok())
    return admission_.RejectUnauthorized(key, std::string(claim.message()));
  std::unique_ptr<Worker> former;  // this worker, if it has reopened its stream
  if (const Worker* const holder = WorkerAt(*index); holder != nullptr) {
    if (!admission_.IsLastIn(*index, hello.incarnation())) {
      return admission_.RejectClaim(
          key, *index,
          absl::StrCat("there is a worker ", *index,
                       " already, and it is alive: ", records_[*index].address,
                       holder->stream == nullptr ? "" : ", at " + holder->stream->peer(),
                       ". Start this one with another index, or with --chief=HOST:PORT alone to "
                       "get a free index. To replace the other one, end it"));
    }
    if (holder->reopening.has_value()) {
      former = std::move(workers_.extract(holder->key).mapped());
    } else {
      // The same worker has a new stream: its old one broke, but this was not noticed yet.
      Remove(holder->key, "it has opened a new stream");
    }
  }
  std::unique_ptr<Worker>& added = workers_[key];
  added = std::make_unique<Worker>();
  Worker& worker = *added;
  worker.key = key;
  worker.stream = admission_.Admit(key, *index, hello.incarnation());
  worker.index = *index;
  worker.hello = hello;
  worker.last_report = options_.loop->Now();
  Record& record = records_[*index];
  record.restarts = admission_.seats().at(*index).restarts;
  record.state = Record::State::kPreparing;
  record.key = worker.key;
  record.address = absl::StrCat(hello.host(), ", pid ", hello.pid());
  record.detail.clear();
  if (former != nullptr) {
    LogInfo(absl::StrCat("worker ", *index, " has reopened its stream"));
    options_.on_reopened(*former, worker);
  } else {
    LogInfo(absl::StrCat("worker ", *index, " has joined (", record.address, ", ", hello.device(),
                         ", ", hello.threads(), hello.threads() == 1 ? " thread)" : " threads)"));
  }
  if (job_done_.has_value()) {
    notified_.insert(*index);
    return worker.Send(*job_done_);
  }
  proto::WorkerOrder order;
  proto::Welcome* welcome = order.mutable_welcome();
  welcome->set_index(*index);
  welcome->set_job(options_.job_text);
  for (const std::string& address : options_.ps_addresses) welcome->add_ps(address);
  worker.Send(order);
}

absl::StatusOr<int> Membership::IndexFor(const proto::WorkerHello& hello) const {
  if (hello.has_index()) {
    const int index = static_cast<int>(hello.index());
    if (options_.listed.contains(index)) return index;
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", hello.index(), " is not in the cluster spec of the coordinator (listed: ",
        options_.listed.empty() ? "none" : absl::StrJoin(options_.listed, ", "),
        "); start it with --chief=HOST:PORT alone to get a free index"));
  }
  // A worker that comes back keeps the index that it got.
  for (const auto& [index, seat] : admission_.seats()) {
    if (seat.incarnation == hello.incarnation() && !options_.listed.contains(index)) return index;
  }
  int next = options_.listed.empty() ? 0 : *options_.listed.rbegin() + 1;
  while (records_.contains(next)) ++next;
  return next;
}

void Membership::OnReopening(Worker& worker) {
  if (worker.reopening.has_value()) return;
  worker.ready = false;
  worker.reopening.emplace(options_.loop);
  worker.reopening->Set(kReopenPatience, [this, key = worker.key] {
    Remove(key, "it has ended its stream to open another, and has not come back");
  });
}

void Membership::OnClosed(StepDispatcher::WorkerKey key, const absl::Status& status) {
  admission_.OnClosed(key);
  if (const auto found = workers_.find(key);
      found != workers_.end() && found->second->reopening.has_value()) {
    found->second->stream.reset();
    return;
  }
  Remove(key, status.ok() ? "it ended its stream" : std::string(status.message()));
}

void Membership::Remove(StepDispatcher::WorkerKey key, const std::string& why) {
  const auto found = workers_.find(key);
  if (found == workers_.end()) return;
  const std::unique_ptr<Worker> worker = std::move(found->second);
  workers_.erase(found);
  Record& record = records_[worker->index];
  if (record.state != Record::State::kLeft) {
    record.state = Record::State::kLost;
    record.detail = PrintableLines(why, kMaxDetailBytes);
  }
  record.went = ++went_;
  options_.on_gone(*worker, why);
  ForgetFirstGone();
}

// Otherwise workers that come and go, a new one each time, would fill memory and status. A worker
// that comes back after it was forgotten counts as a new one. This is harmless: its steps belong to
// its connection, not to its index.
void Membership::ForgetFirstGone() {
  std::map<uint64_t, int> gone;
  for (const auto& [index, record] : records_) {
    const bool is_gone =
        record.state == Record::State::kLost || record.state == Record::State::kLeft;
    // A worker that leaves has its seat until its stream has closed.
    if (workers_.contains(record.key)) continue;
    if (is_gone && !options_.listed.contains(index)) gone[record.went] = index;
  }
  if (gone.size() <= kMaxGone) return;
  const int first = gone.begin()->second;
  records_.erase(first);
  admission_.Forget(first);
}

const char* StateName(Membership::Record::State state) {
  switch (state) {
    case Membership::Record::State::kPreparing:
      return "preparing";
    case Membership::Record::State::kUp:
      return "up";
    case Membership::Record::State::kDraining:
      return "draining";
    case Membership::Record::State::kLost:
      return "lost";
    case Membership::Record::State::kLeft:
      return "left";
  }
  return "";
}

}  // namespace shoal
