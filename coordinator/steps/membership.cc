#include "coordinator/steps/membership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/text/printable.h"
#include "common/base/version.h"
#include "common/job/job.h"
#include "common/log/logging.h"
#include "common/rpc/field_limits.h"
#include "coordinator/steps/rejection.h"

namespace shoal {
namespace {

// A worker that claims a taken index retries every second. The log mentions it this often.
constexpr Time kClaimsSaidEvery = std::chrono::minutes(1);

constexpr size_t kMaxGone = 1000;        // records of workers that are gone and not listed
constexpr size_t kMaxDetailBytes = 500;  // of a text that a worker sends
// A worker takes at most this many leases: 2^14, and the step that it computes.
constexpr int kMaxHeldSteps = (1 << 14) + 1;

constexpr FieldLimit kReportLimits[] = {{.kind = proto::WorkerReport::kHelloFieldNumber,
                                         .field = proto::WorkerHello::kHeldStepsFieldNumber,
                                         .most = kMaxHeldSteps,
                                         .packed = true},
                                        {.kind = proto::WorkerReport::kStepsDoneFieldNumber,
                                         .field = proto::StepsDone::kStepsFieldNumber,
                                         .most = kMaxHeldSteps}};

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

void LogRejected(const Worker& worker, const std::string& reason) {
  LogWarning(absl::StrCat("rejected ",
                          worker.index >= 0 ? absl::StrCat("worker ", worker.index) : "a worker",
                          " at ", worker.stream->peer(), ": ", reason));
}

}  // namespace

Membership::Membership(Options options)
    : options_(std::move(options)), job_fingerprint_(JobFingerprint(options_.job_text)) {}

Membership::~Membership() = default;

StreamCallbacks Membership::Accept(std::unique_ptr<Stream> stream) {
  const StepDispatcher::WorkerKey key = next_key_++;
  auto worker = std::make_unique<Worker>();
  worker->key = key;
  worker->stream = std::move(stream);
  joining_[key] = std::move(worker);
  return {.on_message = [this, key](Message message) { OnMessage(key, message); },
          .on_closed = [this, key](absl::Status status) { OnClosed(key, status); }};
}

void Membership::Reject(Worker& worker, const std::string& reason, bool final) {
  LogRejected(worker, reason);
  TurnAway(worker, Rejection(reason, final));
}

void Membership::RejectOfAnotherJob(Worker& worker, uint32_t fingerprint) {
  ++of_another_job_;
  const proto::Rejected rejected = RejectionOfOtherJob(fingerprint, job_fingerprint_);
  LogRejected(worker, rejected.reason());
  TurnAway(worker, rejected);
}

void Membership::TurnAway(Worker& worker, const proto::Rejected& rejected) {
  proto::WorkerOrder order;
  *order.mutable_rejected() = rejected;
  worker.Send(order);
  worker.stream->Finish(absl::OkStatus());
  rejected_[worker.key] = std::move(worker.stream);
  Remove(worker.key, rejected.reason());
}

void Membership::Broadcast(const proto::WorkerOrder& order) {
  for (auto& [key, worker] : workers_) worker->Send(order);
}

void Membership::EndJob(const std::string& failure) {
  job_done_.emplace().mutable_job_done()->set_failure(failure);
  Broadcast(*job_done_);
  for (const auto& [key, worker] : workers_) told_.insert(worker->index);
}

bool Membership::AllTold() const {
  return std::ranges::all_of(options_.listed, [this](int index) {
    const auto record = records_.find(index);
    const bool left = record != records_.end() && record->second.state == Record::State::kLeft;
    return left || told_.contains(index);
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
  auto found = workers_.find(key);
  if (found == workers_.end()) {
    found = joining_.find(key);
    if (found == joining_.end()) return;
  }
  Worker& worker = *found->second;
  proto::WorkerReport report;
  if (const absl::Status parsed = ParseWithin(kReportLimits, message, &report); !parsed.ok()) {
    return Reject(worker,
                  absl::IsResourceExhausted(parsed)
                      ? std::string(parsed.message())
                      : "what was sent is not a WorkerReport of proto/coordinator.proto",
                  true);
  }
  CapTexts(&report);
  if (report.kind_case() == proto::WorkerReport::kHello) {
    if (worker.index >= 0) return Reject(worker, "said hello twice on one stream", true);
    return OnHello(worker, report.hello());
  }
  if (worker.index < 0)
    return Reject(worker, "the first message of a worker must be its hello", true);
  if (report.kind_case() == proto::WorkerReport::kReady) {
    if (worker.ready) return;
    const uint32_t fingerprint = report.ready().job_fingerprint();
    if (fingerprint != job_fingerprint_) return RejectOfAnotherJob(worker, fingerprint);
    return options_.on_ready(worker, report.ready());
  }
  options_.on_report(worker, report);
}

void Membership::OnHello(Worker& worker, const proto::WorkerHello& hello) {
  const std::string who = absl::StrCat("the worker at ", worker.stream->peer());
  if (const absl::Status same = CheckVersion(hello.version(), who); !same.ok()) {
    return Reject(worker, std::string(same.message()), true);
  }
  const absl::StatusOr<int> index = IndexFor(hello);
  if (!index.ok()) return Reject(worker, std::string(index.status().message()), true);
  for (auto& [key, other] : workers_) {
    if (other->index != *index) continue;
    if (other->hello.incarnation() != hello.incarnation()) return RefuseClaim(worker, *other);
    // The same worker has a new stream: its old one broke, but this was not noticed yet.
    Remove(key, "it has opened a new stream");
    break;
  }
  workers_.insert(joining_.extract(worker.key));
  worker.index = *index;
  worker.hello = hello;
  worker.last_report = options_.loop->Now();
  Record& record = records_[*index];
  const auto former = incarnations_.find(*index);
  if (former != incarnations_.end() && former->second != hello.incarnation()) ++record.restarts;
  incarnations_[*index] = hello.incarnation();
  record.state = Record::State::kPreparing;
  record.key = worker.key;
  record.address = absl::StrCat(hello.host(), ", pid ", hello.pid());
  record.detail.clear();
  LogInfo(absl::StrCat("worker ", *index, " has joined (", record.address, ", ", hello.device(),
                       ", ", hello.threads(), hello.threads() == 1 ? " thread)" : " threads)"));
  if (job_done_.has_value()) {
    told_.insert(*index);
    return worker.Send(*job_done_);
  }
  proto::WorkerOrder order;
  proto::Welcome* welcome = order.mutable_welcome();
  welcome->set_index(*index);
  welcome->set_job(options_.job_text);
  for (const std::string& address : options_.ps_addresses) welcome->add_ps(address);
  worker.Send(order);
}

// Never final: the coordinator does not know which of the two processes is wanted. The holder loses
// the index when its stream breaks.
void Membership::RefuseClaim(Worker& worker, Worker& holder) {
  const std::string reason = absl::StrCat(
      "there is a worker ", holder.index,
      " already, and it is alive: ", records_[holder.index].address, ", at ", holder.stream->peer(),
      ". Start this one with another index, or with --chief=HOST:PORT alone to be given one; if it "
      "is to replace that one, end that one");
  const Time now = options_.loop->Now();
  if (now < holder.claims_said_until) return TurnAway(worker, Rejection(reason, /*final=*/false));
  holder.claims_said_until = now + kClaimsSaidEvery;
  Reject(worker, reason, /*final=*/false);
}

absl::StatusOr<int> Membership::IndexFor(const proto::WorkerHello& hello) const {
  if (hello.has_index()) {
    const int index = static_cast<int>(hello.index());
    if (options_.listed.contains(index)) return index;
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", hello.index(), " is not in the cluster spec of the coordinator (listed: ",
        options_.listed.empty() ? "none" : absl::StrJoin(options_.listed, ", "),
        "); start it with --chief=HOST:PORT alone to be given an index"));
  }
  // A worker that comes back keeps the index that it was given.
  for (const auto& [index, incarnation] : incarnations_) {
    if (incarnation == hello.incarnation() && !options_.listed.contains(index)) return index;
  }
  int next = options_.listed.empty() ? 0 : *options_.listed.rbegin() + 1;
  while (records_.contains(next)) ++next;
  return next;
}

void Membership::OnClosed(StepDispatcher::WorkerKey key, const absl::Status& status) {
  rejected_.erase(key);
  Remove(key, status.ok() ? "it ended its stream" : std::string(status.message()));
}

void Membership::Remove(StepDispatcher::WorkerKey key, const std::string& why) {
  joining_.erase(key);
  auto found = workers_.find(key);
  if (found == workers_.end()) return;
  const std::unique_ptr<Worker> worker = std::move(found->second);
  workers_.erase(found);
  Record& record = records_[worker->index];
  if (record.state != Record::State::kLeft) {
    record.state = Record::State::kLost;
    record.detail = PrintableLines(why, kMaxDetailBytes);
  }
  options_.on_gone(*worker, why);
  ForgetOldest();
}

// Otherwise workers that come and go, a new one each time, would fill memory and status.
void Membership::ForgetOldest() {
  std::map<StepDispatcher::WorkerKey, int> gone;
  for (const auto& [index, record] : records_) {
    const bool is_gone =
        record.state == Record::State::kLost || record.state == Record::State::kLeft;
    if (is_gone && !options_.listed.contains(index)) gone[record.key] = index;
  }
  if (gone.size() <= kMaxGone) return;
  const int oldest = gone.begin()->second;
  records_.erase(oldest);
  incarnations_.erase(oldest);
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
