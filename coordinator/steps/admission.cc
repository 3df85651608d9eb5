#include "coordinator/steps/admission.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/log/logging.h"

namespace shoal {
namespace {

// A rejected process retries every second. The log mentions its claim this often.
constexpr Time kClaimLogPeriod = std::chrono::minutes(1);

void LogRejected(const std::string& who, const Stream& stream, const std::string& reason) {
  LogWarning(absl::StrCat("rejected ", who, " at ", stream.peer(), ": ", reason));
}

}  // namespace

proto::Rejected MakeRejected(const std::string& reason, bool final) {
  proto::Rejected rejected;
  rejected.set_reason(reason);
  rejected.set_final(final);
  return rejected;
}

Admission::Admission(Options options) : options_(std::move(options)) {}

Admission::Key Admission::Add(std::unique_ptr<Stream> stream) {
  const Key key = next_key_++;
  joining_[key] = std::move(stream);
  return key;
}

const Stream* Admission::joining(Key key) const {
  const auto found = joining_.find(key);
  return found == joining_.end() ? nullptr : found->second.get();
}

std::unique_ptr<Stream> Admission::TakeJoining(Key key) {
  return std::move(joining_.extract(key).mapped());
}

std::unique_ptr<Stream> Admission::Admit(Key key, int seat, uint64_t incarnation) {
  const auto [found, is_new] = seats_.try_emplace(seat);
  Seat& taken = found->second;
  if (!is_new && taken.incarnation != incarnation) ++taken.restarts;
  taken.incarnation = incarnation;
  taken.claims_logged_until = {};
  return TakeJoining(key);
}

bool Admission::IsLastIn(int seat, uint64_t incarnation) const {
  const auto found = seats_.find(seat);
  return found != seats_.end() && found->second.incarnation == incarnation;
}

void Admission::RejectJoining(Key key, const std::string& reason, bool final) {
  std::unique_ptr<Stream> stream = TakeJoining(key);
  LogRejected(options_.newcomer, *stream, reason);
  Reject(key, std::move(stream), MakeRejected(reason, final));
}

void Admission::RejectClaim(Key key, int seat, const std::string& reason) {
  const Time now = options_.loop->Now();
  if (Time& until = seats_[seat].claims_logged_until; now >= until) {
    until = now + kClaimLogPeriod;
    return RejectJoining(key, reason, /*final=*/false);
  }
  Reject(key, TakeJoining(key), MakeRejected(reason, /*final=*/false));
}

void Admission::RejectUnauthorized(Key key, const std::string& reason) {
  Reject(key, TakeJoining(key), MakeRejected(reason, /*final=*/true));
}

void Admission::RejectSeated(Key key, std::unique_ptr<Stream> stream, const std::string& who,
                             const proto::Rejected& rejected) {
  LogRejected(who, *stream, rejected.reason());
  Reject(key, std::move(stream), rejected);
}

void Admission::Reject(Key key, std::unique_ptr<Stream> stream, const proto::Rejected& rejected) {
  stream->Send(options_.message(rejected));
  stream->Finish(absl::OkStatus());
  closing_[key] = std::move(stream);
}

// The process has outlived the coordinator of its job. It ends, and its supervisor restarts it.
std::optional<proto::Rejected> Admission::CheckJob(uint32_t fingerprint) {
  if (fingerprint == options_.job_fingerprint) return std::nullopt;
  ++of_another_job_;
  proto::Rejected rejected =
      MakeRejected(absl::StrCat("this process has the job with fingerprint ",
                                ChecksumText(fingerprint), ", but the coordinator has the job ",
                                ChecksumText(options_.job_fingerprint), "; restart this process"),
                   /*final=*/false);
  rejected.set_other_job(true);
  return rejected;
}

void Admission::KeepUntilClosed(Key key, std::unique_ptr<Stream> stream) {
  closing_[key] = std::move(stream);
}

void Admission::OnClosed(Key key) {
  joining_.erase(key);
  closing_.erase(key);
}

}  // namespace shoal
