#include "common/rpc/shared_payloads.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/shared_payload.pb.h"

namespace shoal {
namespace {

// A smaller one costs no more in its message.
constexpr size_t kLeastBytes = size_t{16} << 10;
// Memory is taken as far as it is used: what is on the way at once, as the lowest room is taken.
constexpr size_t kHalfBytes = size_t{64} << 20;

// The first page of the memory.
struct alignas(4096) Header {
  uint64_t token;
};
// Lies before each payload, which is aligned like it.
struct alignas(64) Flag {
  std::atomic<uint32_t> placed;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

constexpr size_t kFileBytes = sizeof(Header) + 2 * kHalfBytes;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// An open file that is closed at the end of its scope.
auto Closed(int file) {
  return absl::Cleanup([file] { close(file); });
}

// The file of an offer, as what it is known to be: of this user, and of our size. Nothing else is
// opened, as to open some files has effects.
int OpenRegular(pid_t process, int number) {
  const std::string path = absl::StrCat("/proc/", process, "/fd/", number);
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

}  // namespace

struct SharedPayloads::Memory {
  explicit Memory(void* mapped) : header(static_cast<Header*>(mapped)) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { munmap(header, kFileBytes); }

  char* half(size_t which) const {
    return reinterpret_cast<char*>(header + 1) + which * kHalfBytes;
  }
  Flag* flag(size_t half, size_t begin) const {
    return reinterpret_cast<Flag*>(this->half(half) + begin);
  }

  Header* const header;
};

SharedPayloads::SharedPayloads(std::shared_ptr<Memory> memory, int file, bool client)
    : memory_(std::move(memory)), file_(file), sends_(client ? 0 : 1) {}

SharedPayloads::~SharedPayloads() { EndOffer(); }

std::shared_ptr<SharedPayloads::Memory> SharedPayloads::Map(int file) {
  void* const mapped = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return mapped == MAP_FAILED ? nullptr : std::make_shared<Memory>(mapped);
}

std::unique_ptr<SharedPayloads> SharedPayloads::Create() {
  const int file = memfd_create("shoal-payloads", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return nullptr;
  auto closed = Closed(file);
  uint64_t token = 0;
  if (ftruncate(file, kFileBytes) != 0 || fcntl(file, F_ADD_SEALS, kSeals) != 0 ||
      getrandom(&token, sizeof(token), 0) != sizeof(token)) {
    return nullptr;
  }
  std::shared_ptr<Memory> memory = Map(file);
  if (memory == nullptr) return nullptr;
  memory->header->token = token;
  std::move(closed).Cancel();
  return std::unique_ptr<SharedPayloads>(new SharedPayloads(std::move(memory), file, true));
}

std::string SharedPayloads::offer() const {
  return absl::StrCat(getpid(), "/", file_, "/", memory_->header->token);
}

void SharedPayloads::EndOffer() {
  if (file_ >= 0) close(std::exchange(file_, -1));
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
  const int file = OpenRegular(static_cast<pid_t>(process), static_cast<int>(number));
  if (file < 0) return nullptr;
  const auto closed = Closed(file);
  uint64_t found = 0;
  if (fcntl(file, F_GET_SEALS) != kSeals ||
      pread(file, &found, sizeof(found), 0) != sizeof(found) || found != token) {
    return nullptr;
  }
  std::shared_ptr<Memory> memory = Map(file);
  if (memory == nullptr) return nullptr;
  return std::unique_ptr<SharedPayloads>(new SharedPayloads(std::move(memory), -1, false));
}

void SharedPayloads::Place(Message* message) {
  const size_t bytes = message->payload_bytes();
  if (bytes < kLeastBytes) return;
  std::erase_if(placed_, [&](const Placed& placed) {
    return memory_->flag(sends_, placed.begin)->placed.load(std::memory_order_acquire) == 0;
  });
  const size_t room = sizeof(Flag) + (bytes + sizeof(Flag) - 1) / sizeof(Flag) * sizeof(Flag);
  size_t begin = 0;
  auto next = placed_.begin();
  while (next != placed_.end() && next->begin < begin + room) begin = next++->end;
  if (begin + room > kHalfBytes) return;
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
  if (!message->payload.empty() || place.size() > kHalfBytes ||
      place.offset() > kHalfBytes - place.size() || place.offset() < sizeof(Flag) ||
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
