#include "coordinator/takeover/run_lock.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"
#include "common/daemon/process/process_mark.h"
#include "common/files/durable_file.h"
#include "common/json/json_text.h"
#include "common/log/logging.h"

// A file of .lease is one JSON object. Numbers have a fixed width, so that a rewrite in place
// covers the old text:
//
//   {"coordinator": "HOST:PORT", "host": "...", "pid": "...", "process": "...", "since": "...",
//    "ps": ["16 hexadecimal digits", ...], "renewals": "20 digits", "state": "held" or "left"}

namespace shoal {
namespace {

using nlohmann::json;

constexpr Time kRenewEvery = std::chrono::seconds(2);
constexpr Time kLookEvery = std::chrono::milliseconds(500);
// Waiting() mentions a disk that has not answered for this long.
constexpr Time kSlow = std::chrono::seconds(2);
constexpr Time kExpiry = std::chrono::seconds(10);
constexpr uint64_t kMaxBytes = 1 << 20;
constexpr size_t kMaxTextBytes = 256;  // of another coordinator's text, in a message

struct Lease {
  LeaseHolder holder;
  std::vector<std::string> ps;
};

std::string IncarnationText(uint64_t incarnation) { return absl::StrFormat("%016x", incarnation); }

// Returns none if the text is no lease: its writer died while writing, or the power failed.
std::optional<Lease> ParseLease(const std::string& text) {
  const absl::StatusOr<json> root = ParseJson(text, "lease");
  if (!root.ok() || !root->is_object()) return std::nullopt;
  const auto field = [&root](const char* name) {
    const auto found = root->find(name);
    return found != root->end() && found->is_string()
               ? found->get<std::string>().substr(0, kMaxTextBytes)
               : std::string();
  };
  Lease lease{.holder = {.address = field("coordinator"),
                         .host = field("host"),
                         .process = field("process"),
                         .since = field("since"),
                         .left = field("state") == "left"}};
  if (!absl::SimpleAtoi(field("pid"), &lease.holder.pid)) return std::nullopt;
  if (const auto ps = root->find("ps"); ps != root->end() && ps->is_array()) {
    for (const json& each : *ps) {
      if (each.is_string()) lease.ps.push_back(each.get<std::string>());
    }
  }
  return lease;
}

std::string PathOf(const std::string& directory, uint64_t number) {
  return absl::StrCat(directory, "/", number);
}

// Returns the numbers of all lease files, ascending.
absl::StatusOr<std::vector<uint64_t>> Numbers(const std::string& directory, FileSystem* files) {
  std::vector<uint64_t> numbers;
  if (files->IsLink(directory)) return LinkError(directory);
  const auto entries = files->List(directory);
  if (absl::IsNotFound(entries.status())) return numbers;
  SHOAL_RETURN_IF_ERROR(entries.status());
  for (const FileSystem::Entry& entry : *entries) {
    uint64_t number = 0;
    if (absl::SimpleAtoi(entry.name, &number) && number < UINT64_MAX &&
        entry.name == absl::StrCat(number)) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

absl::Status WriteAtOnce(const File& file, const std::string& text) {
  return file.WriteAt(0, text.data(), text.size());
}

bool LeadsAnyOf(const std::vector<uint64_t>& ps, const Lease& lease) {
  return std::any_of(ps.begin(), ps.end(), [&lease](uint64_t incarnation) {
    return std::find(lease.ps.begin(), lease.ps.end(), IncarnationText(incarnation)) !=
           lease.ps.end();
  });
}

}  // namespace

LeaseHolder ThisProcess() {
  return {.host = HostName(),
          .pid = getpid(),
          .process = ProcessMark(),
          .since = absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::Now(), absl::LocalTimeZone())};
}

std::optional<LeaseHolder> ReadLeaseHolder(const std::string& directory, FileSystem* files) {
  const auto numbers = Numbers(directory, files);
  if (!numbers.ok() || numbers->empty()) return std::nullopt;
  const auto text = ReadSmallFile(PathOf(directory, numbers->back()), kMaxBytes, files);
  const std::optional<Lease> lease = text.ok() ? ParseLease(*text) : std::nullopt;
  if (!lease.has_value()) return std::nullopt;
  return lease->holder;
}

RunLock::RunLock(Options options) : options_(std::move(options)) {}

std::function<absl::Status()> RunLock::WriteCheck() const {
  // Without a file of its own, it leads because the disk takes none.
  if (number_ == 0) return [] { return absl::OkStatus(); };
  return [files = options_.files, directory = options_.directory, own = number_]() -> absl::Status {
    SHOAL_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, Numbers(directory, files));
    if (numbers.empty() || numbers.back() <= own) return absl::OkStatus();
    return absl::AbortedError(
        absl::StrCat("another coordinator has taken the lock ", PathOf(directory, numbers.back())));
  };
}

void RunLock::Acquire(std::vector<uint64_t> ps, std::function<void(const absl::Status&)> done) {
  // The times from before a pause do not tell how long the holder has renewed its lease since.
  if (done_ == nullptr && watched_.has_value()) watched_->first = options_.loop->Now();
  ps_ = std::move(ps);
  done_ = std::move(done);
  // A read or write in progress began before this call: look again after it.
  look_again_ = busy_since_.has_value();
  if (!look_again_) Look();
}

void RunLock::Pause() {
  leading_ = false;
  done_ = nullptr;
}

void RunLock::Release() {
  Pause();
  // Runs after writes in progress, so that a file that is being created is released too.
  options_.loop->Offload(
      Lane::kBrief,
      [files = options_.files, directory = options_.directory, number = std::exchange(number_, 0),
       creating = std::exchange(creating_, nullptr), text = Text(true)] {
        const uint64_t own = creating != nullptr && creating->file ? creating->number : number;
        if (own == 0) return;
        const auto file = files->Open(PathOf(directory, own), FileSystem::Mode::kWrite);
        if (file.ok()) (void)WriteAtOnce(**file, text);
      },
      [] {});
}

std::string RunLock::Waiting() const {
  if (done_ == nullptr) return "";
  const Time now = options_.loop->Now();
  // For example a network file system whose server is gone.
  if (busy_since_.has_value() && now - *busy_since_ >= kSlow) {
    return absl::StrCat("the run directory: no answer from the disk of ", options_.directory,
                        " for ", WholeSeconds(now - *busy_since_), " s");
  }
  if (!looked_.ok()) {
    return absl::StrCat(
        "the run directory: cannot read its lease: ", std::string(looked_.message()), "; retrying");
  }
  if (!watched_.has_value()) return "";
  return absl::StrCat("the run directory: ", Describe(watched_->text), " has held it for ",
                      WholeSeconds(now - watched_->first), " s or longer, and has not renewed its ",
                      "lease for ", WholeSeconds(now - watched_->changed), " s; after ",
                      WholeSeconds(kExpiry), " s it counts as gone");
}

void RunLock::LookAfter(Time delay) {
  timer_.Set(delay, [this] {
    if (leading_ || done_ != nullptr) Look();
  });
}

void RunLock::Look() {
  if (busy_since_.has_value()) return;
  busy_since_ = options_.loop->Now();
  scope_.Offload(
      Lane::kBrief,
      [files = options_.files, directory = options_.directory] {
        const auto numbers = Numbers(directory, files);
        Seen seen = {.status = numbers.status()};
        if (!numbers.ok() || numbers->empty()) return seen;
        seen.number = numbers->back();
        // An unreadable file counts as empty: its holder is unknown.
        seen.text = ReadSmallFile(PathOf(directory, seen.number), kMaxBytes, files).value_or("");
        return seen;
      },
      [this, asked = options_.loop->Now()](const Seen& seen) {
        busy_since_.reset();
        if (std::exchange(look_again_, false)) return Look();
        OnSeen(seen, asked);
      });
}

// `asked`: the time at which the read of the directory began.
void RunLock::OnSeen(const Seen& seen, Time asked) {
  looked_ = seen.status;
  if (!leading_ && done_ == nullptr) return;
  // A path that is no directory, or that may not be read, stays so until an operator repairs it.
  if (!leading_ &&
      (absl::IsFailedPrecondition(seen.status) || absl::IsPermissionDenied(seen.status)))
    return Answer(absl::FailedPreconditionError(absl::StrCat(
        "cannot read the lease of this run directory: ", std::string(seen.status.message()),
        "; coordinators create and read the directory ", options_.directory,
        ": give this coordinator that right, move away a file with that name, or choose "
        "another --run_dir")));
  // The listing failed. This does not mean that there is no lease.
  if (!seen.status.ok()) return LookAfter(leading_ ? kRenewEvery : kLookEvery);
  if (seen.number > std::max(number_, outlived_)) return OnForeign(seen, asked);
  if (number_ != 0 && seen.number == number_) return Renew();
  Create(std::max({seen.number, number_, outlived_}) + 1);
}

void RunLock::OnForeign(const Seen& seen, Time asked) {
  const std::optional<Lease> lease = ParseLease(seen.text);
  if (leading_) {
    leading_ = false;
    number_ = 0;
    const bool same_ps = lease.has_value() && LeadsAnyOf(ps_, *lease);
    return options_.on_lost(absl::AbortedError(absl::StrCat(
        "the run directory was taken over by ", Describe(seen.text), " (", Path(seen.number), "), ",
        same_ps ? "which leads the ps of this coordinator now"
                : absl::StrCat("as this coordinator had not renewed its lease for ",
                               WholeSeconds(kExpiry), " s"),
        "; this one has nothing left to do")));
  }
  number_ = 0;
  if (!watched_.has_value() || watched_->number != seen.number)
    watched_ = Watched{seen.number, seen.text, asked, asked};
  if (watched_->text != seen.text) {
    watched_->text = seen.text;
    watched_->changed = asked;
  }
  const bool over = lease.has_value() &&
                    (lease->holder.left ||
                     (options_.is_gone != nullptr && options_.is_gone(lease->holder.process)) ||
                     LeadsAnyOf(ps_, *lease));
  if (over || asked - watched_->changed >= kExpiry) {
    outlived_ = seen.number;
    watched_.reset();
    return Create(seen.number + 1);
  }
  if (asked - watched_->first >= kExpiry && asked - watched_->changed < 2 * kRenewEvery) {
    watched_.reset();
    return Answer(absl::FailedPreconditionError(
        absl::StrCat("this run directory is in use by ", Describe(seen.text),
                     ", which leads other ps than this one and renews its lease, ",
                     Path(seen.number), "; stop that coordinator, or choose another --run_dir")));
  }
  LookAfter(kLookEvery);
}

void RunLock::Create(uint64_t number) {
  busy_since_ = options_.loop->Now();
  creating_ = std::make_shared<Creation>(Creation{.number = number});
  scope_.Offload(
      Lane::kBrief,
      [files = options_.files, directory = options_.directory, number, text = Text(false),
       created = creating_] {
        created->status = [&]() -> absl::Status {
          SHOAL_RETURN_IF_ERROR(MakeRunDirectory(ParentDirectory(directory), files));
          SHOAL_RETURN_IF_ERROR(MakeDirectories(directory, files));
          const auto file = files->Open(PathOf(directory, number), FileSystem::Mode::kCreate);
          created->quicker = absl::IsAlreadyExists(file.status());
          SHOAL_RETURN_IF_ERROR(file.status());
          created->file = true;
          // Since our last look, others may have used this number and moved on to a higher one.
          const auto numbers = Numbers(directory, files);
          created->quicker = !numbers.ok() || (!numbers->empty() && numbers->back() > number);
          SHOAL_RETURN_IF_ERROR(numbers.status());
          if (created->quicker) {
            created->file = false;
            return files->RemoveFile(PathOf(directory, number));
          }
          SHOAL_RETURN_IF_ERROR(WriteAtOnce(**file, text));
          for (const uint64_t each : *numbers) {
            if (each < number) (void)files->RemoveFile(PathOf(directory, each));
          }
          return absl::OkStatus();
        }();
      },
      [this, number, created = creating_] {
        busy_since_.reset();
        if (creating_ == nullptr) return;  // released
        creating_.reset();
        if (created->file) {
          number_ = number;  // if the write failed, the next renewal retries it
          had_file_ = true;
        }
        if (std::exchange(look_again_, false)) return Look();
        if (!leading_ && done_ == nullptr) return;
        // A network file system may show the other's file only after a while.
        if (created->quicker) return LookAfter(kLookEvery);
        if (!created->status.ok() && !std::exchange(warned_, true)) {
          LogWarning(absl::StrCat(
              "the lease of the run directory: ", std::string(created->status.message()),
              "; the job continues without it; retrying"));
        }
        Lead();
      });
}

void RunLock::Renew() {
  busy_since_ = options_.loop->Now();
  ++renewals_;
  scope_.Offload(
      Lane::kBrief,
      [files = options_.files, path = Path(number_), text = Text(false)] {
        // If this fails for long, another coordinator may take over. The next look notices that.
        const auto file = files->Open(path, FileSystem::Mode::kWrite);
        if (file.ok()) (void)WriteAtOnce(**file, text);
      },
      [this] {
        busy_since_.reset();
        if (std::exchange(look_again_, false)) return Look();
        if (leading_ || done_ != nullptr) Lead();
      });
}

void RunLock::Lead() {
  if (!std::exchange(leading_, true) && options_.on_lead != nullptr) options_.on_lead();
  LookAfter(kRenewEvery);
  Answer(absl::OkStatus());
}

void RunLock::Answer(const absl::Status& status) {
  if (const auto done = std::exchange(done_, nullptr)) done(status);
}

std::string RunLock::Text(bool left) const {
  nlohmann::ordered_json root;
  root["coordinator"] = options_.self.address;
  root["host"] = options_.self.host;
  root["pid"] = absl::StrCat(options_.self.pid);
  root["process"] = options_.self.process;
  root["since"] = options_.self.since;
  root["ps"] = json::array();
  for (const uint64_t incarnation : ps_) root["ps"].push_back(IncarnationText(incarnation));
  root["renewals"] = absl::StrFormat("%020d", renewals_);
  root["state"] = left ? "left" : "held";
  return root.dump() + "\n";
}

std::string RunLock::Path(uint64_t number) const { return PathOf(options_.directory, number); }

std::string RunLock::Describe(const std::string& text) {
  const std::optional<Lease> lease = ParseLease(text);
  if (!lease.has_value()) return "an unknown coordinator (its lease file is unreadable)";
  const LeaseHolder& holder = lease->holder;
  const auto shown = [](const std::string& text) { return Printable(text, kMaxTextBytes); };
  return absl::StrCat("the coordinator at ", shown(holder.address), " (host ", shown(holder.host),
                      ", pid ", holder.pid, ", started ", shown(holder.since), ")");
}

}  // namespace shoal
