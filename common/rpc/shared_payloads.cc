#include "common/rpc/shared_payloads.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/shared_payload.pb.h"

namespace shoal {
namespace {

// A smaller one costs no more in its message.
constexpr size_t kLeastBytes = size_t{16} << 10;
constexpr char kName[] = "shoal-payloads";

// The first page of the memory.
struct alignas(4096) Header {
  uint64_t token;
};
// Lies before each payload, which is aligned like it.
struct alignas(64) Flag {
  std::atomic<uint32_t> placed;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

constexpr size_t kFileBytes = sizeof(Header) + 2 * kSharedHalfBytes;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// An open file that is closed at the end of its scope.
auto Closed(int file) {
  return absl::Cleanup([file] { close(file); });
}

// The file of an offer, which is this user's own, in memory and of our size; -1: it is not. Of no
// other the file system is asked, as to open some files has effects, and some never answer.
int OpenOffered(pid_t process, int number) {
  const std::string path = absl::StrCat("/proc/", process, "/fd/", number);
  const std::string expected = absl::StrCat("/memfd:", kName, " (deleted)");
  std::string target(expected.size() + 1, '\0');
  if (readlink(path.c_str(), target.data(), target.size()) !=
          static_cast<ssize_t>(expected.size()) ||
      !absl::StartsWith(target, expected)) {
    return -1;
  }
  const int found = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (found < 0) return -1;
  const auto closed = Closed(found);
  struct stat status {};
  if (fstat(found, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
      status.st_size != static_cast<off_t>(kFileBytes)) {
    return -1;
  }
  return open(absl::StrCat("/proc/self/fd/", found).c_str(), O_RDWR | O_CLOEXEC);
}

// With vm.memfd_noexec the kernel adds a seal of its own.
bool IsSealed(int file) {
  const int seals = fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals;
}

// A file above the limit would not be refused, but end the process.
bool MayHaveFile() {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= kFileBytes;
}

}  // namespace

// The file, mapped.
struct SharedPayloads::Memory {
  // Null, and the file is closed, where the kernel does not map it.
  static std::shared_ptr<Memory> Of(int file) {
    void* const mapped = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) return std::make_shared<Memory>(file, mapped);
    close(file);
    return nullptr;
  }
  Memory(int file, void* mapped) : file(file), header(static_cast<Header*>(mapped)) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    munmap(header, kFileBytes);
    close(file);
  }

  char* half(size_t which) const {
    return reinterpret_cast<char*>(header + 1) + which * kSharedHalfBytes;
  }
  Flag* flag(size_t half, size_t begin) const {
    return reinterpret_cast<Flag*>(this->half(half) + begin);
  }

  const int file;
  Header* const header;
};

SharedPayloads::SharedPayloads(std::shared_ptr<Memory> memory, bool client)
    : memory_(std::move(memory)), sends_(client ? 0 : 1) {}

std::unique_ptr<SharedPayloads> SharedPayloads::Create() {
  if (!MayHaveFile()) return nullptr;
  const int file = memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return nullptr;
  auto closed = Closed(file);
  uint64_t token = 0;
  if (ftruncate(file, kFileBytes) != 0 || fallocate(file, 0, 0, sizeof(Header)) != 0 ||
      fcntl(file, F_ADD_SEALS, kSeals) != 0 ||
      getrandom(&token, sizeof(token), 0) != sizeof(token)) {
    return nullptr;
  }
  std::move(closed).Cancel();
  std::shared_ptr<Memory> memory = Memory::Of(file);
  if (memory == nullptr) return nullptr;
  memory->header->token = token;
  return std::unique_ptr<SharedPayloads>(new SharedPayloads(std::move(memory), /*client=*/true));
}

std::string SharedPayloads::offer() const {
  return absl::StrCat(getpid(), "/", memory_->file, "/", memory_->header->token);
}

std::unique_ptr<SharedPayloads> SharedPayloads::Open(const std::string& offer) {
  const std::vector<std::string> parts = absl::StrSplit(offer, '/');
  uint32_t process = 0;
  uint32_t number = 0;
  uint64_t token = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &process) ||
      !absl::SimpleAtoi(parts[1], &number) || !absl::SimpleAtoi(parts[2], &token)) {
    return nullptr;
  }
  const int file = OpenOffered(static_cast<pid_t>(process), static_cast<int>(number));
  if (file < 0) return nullptr;
  auto closed = Closed(file);
  uint64_t found = 0;
  if (!IsSealed(file) || pread(file, &found, sizeof(found), 0) != sizeof(found) || found != token) {
    return nullptr;
  }
  std::move(closed).Cancel();
  std::shared_ptr<Memory> memory = Memory::Of(file);
  if (memory == nullptr) return nullptr;
  return std::unique_ptr<SharedPayloads>(new SharedPayloads(std::move(memory), /*client=*/false));
}

bool SharedPayloads::IsThere(size_t end) {
  if (end <= there_) return true;
  const size_t from = sizeof(Header) + sends_ * kSharedHalfBytes + there_;
  if (fallocate(memory_->file, 0, static_cast<off_t>(from), static_cast<off_t>(end - there_)) != 0)
    return false;
  there_ = end;
  return true;
}

void SharedPayloads::Place(Message* message) {
  const size_t bytes = message->payload_bytes();
  if (!places_ || bytes < kLeastBytes) return;
  std::erase_if(placed_, [&](const Placed& placed) {
    return memory_->flag(sends_, placed.begin)->placed.load(std::memory_order_acquire) == 0;
  });
  const size_t room = sizeof(Flag) + (bytes + sizeof(Flag) - 1) / sizeof(Flag) * sizeof(Flag);
  size_t begin = 0;
  auto next = placed_.begin();
  while (next != placed_.end() && next->begin < begin + room) begin = next++->end;
  if (begin + room > kSharedHalfBytes || !IsThere(begin + room)) return;
  placed_.insert(next, {.begin = begin, .end = begin + room});

  const size_t offset = begin + sizeof(Flag);
  CopyPayload(*message, 0, memory_->half(sends_) + offset, bytes);
  memory_->flag(sends_, begin)->placed.store(1, std::memory_order_release);
  proto::WithSharedPayload place;
  place.mutable_shared_payload()->set_offset(offset);
  place.mutable_shared_payload()->set_size(bytes);
  place.AppendToString(&message->fields);
  message->payload.clear();
}

absl::Status SharedPayloads::Find(Message* message) const {
  proto::WithSharedPayload with;
  if (!with.ParseFromString(message->fields) || !with.has_shared_payload()) return absl::OkStatus();
  const proto::SharedPayload& place = with.shared_payload();
  const size_t half = 1 - sends_;
  if (!message->payload.empty() || place.size() > kSharedHalfBytes ||
      place.offset() > kSharedHalfBytes - place.size() || place.offset() < sizeof(Flag) ||
      place.offset() % sizeof(Flag) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a payload of ", place.size(),
                                                   " bytes cannot lie at ", place.offset(),
                                                   " of the memory shared with its sender"));
  }
  // Its owner keeps the memory, too: a stream may end before a message of it is done with.
  std::shared_ptr<const void> owner(
      memory_->flag(half, place.offset() - sizeof(Flag)),
      [memory = memory_](Flag* flag) { flag->placed.store(0, std::memory_order_release); });
  message->payload = {{memory_->half(half) + place.offset(), place.size(), std::move(owner)}};
  return absl::OkStatus();
}

}  // namespace shoal
