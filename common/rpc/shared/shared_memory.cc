#include "common/rpc/shared/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace shoal {
namespace {

constexpr char kName[] = "shoal-payloads";
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// Returns a guard that closes an open file at the end of its scope.
auto Closed(int file) {
  return absl::Cleanup([file] { close(file); });
}

int CreateFile() { return memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING); }

// Returns properties of a file without a request to its file system, which may not answer.
bool Stat(int file, struct statx* found) {
  return statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_UID, found) == 0;
}

// Whether the file is on the device of this machine's memory files. Its name is no proof: another
// user can mount a file system that has a file of this name.
bool IsMemoryFile(const struct statx& found) {
  const int file = CreateFile();
  if (file < 0) return false;
  const auto closed = Closed(file);
  struct statx own {};
  return Stat(file, &own) && own.stx_dev_major == found.stx_dev_major &&
         own.stx_dev_minor == found.stx_dev_minor;
}

// Opens the file of an offer. Returns -1 unless it is this user's own memory file. Makes no request
// to the file system of any other file, because opening some files has effects, and some never
// answer. O_NONBLOCK: the maker may have a lease on the file, and open would wait for its end.
int OpenOffered(pid_t process, int number, int flags) {
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
  struct statx status {};
  if (!Stat(found, &status) || !S_ISREG(status.stx_mode) || status.stx_uid != geteuid() ||
      !IsMemoryFile(status)) {
    return -1;
  }
  return open(absl::StrCat("/proc/self/fd/", found).c_str(), flags | O_CLOEXEC | O_NONBLOCK);
}

// Whether the file has all our seals. With vm.memfd_noexec the kernel adds another one.
bool IsSealed(int file) {
  const int seals = fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals;
}

// Whether the process may have a file of this size. A larger file ends the process.
bool MayHaveFile(size_t size_bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= size_bytes;
}

}  // namespace

std::shared_ptr<SharedMemory> SharedMemory::Map(int file, size_t size_bytes, Access access,
                                                const Room& room) {
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  const size_t file_bytes = sizeof(Header) + size_bytes;
  auto closed = Closed(file);
  if (room != nullptr && !room->Take(file_bytes)) return nullptr;
  void* const mapped = mmap(nullptr, file_bytes, protection, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) {
    if (room != nullptr) room->Release(file_bytes);
    return nullptr;
  }
  std::move(closed).Cancel();
  return std::shared_ptr<SharedMemory>(
      new SharedMemory(file, static_cast<Header*>(mapped), size_bytes, room));
}

SharedMemory::~SharedMemory() {
  const size_t file_bytes = sizeof(Header) + size_bytes_;
  munmap(header_, file_bytes);
  close(file_);
  if (room_ != nullptr) room_->Release(file_bytes);
}

std::shared_ptr<SharedMemory> SharedMemory::Create(size_t size_bytes, const Room& room) {
  const size_t file_bytes = sizeof(Header) + size_bytes;
  if (!MayHaveFile(file_bytes)) return nullptr;
  const int file = CreateFile();
  if (file < 0) return nullptr;
  auto closed = Closed(file);
  uint64_t token = 0;
  if (ftruncate(file, static_cast<off_t>(file_bytes)) != 0 ||
      fallocate(file, 0, 0, sizeof(Header)) != 0 || fcntl(file, F_ADD_SEALS, kSeals) != 0 ||
      getrandom(&token, sizeof(token), 0) != sizeof(token)) {
    return nullptr;
  }
  std::move(closed).Cancel();
  std::shared_ptr<SharedMemory> memory = Map(file, size_bytes, Access::kReadAndWrite, room);
  if (memory != nullptr) memory->header_->token = token;
  return memory;
}

std::string SharedMemory::offer() const {
  return absl::StrCat(getpid(), "/", file_, "/", header_->token);
}

std::shared_ptr<SharedMemory> SharedMemory::Open(const std::string& offer, Access access,
                                                 const Room& room) {
  const std::vector<std::string> parts = absl::StrSplit(offer, '/');
  uint32_t process = 0;
  uint32_t number = 0;
  uint64_t token = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &process) ||
      !absl::SimpleAtoi(parts[1], &number) || !absl::SimpleAtoi(parts[2], &token)) {
    return nullptr;
  }
  const int file = OpenOffered(static_cast<pid_t>(process), static_cast<int>(number),
                               access == Access::kRead ? O_RDONLY : O_RDWR);
  if (file < 0) return nullptr;
  auto closed = Closed(file);
  struct stat status {};
  uint64_t found = 0;
  // The size cannot change once the file is sealed.
  if (!IsSealed(file) || fstat(file, &status) != 0 ||
      status.st_size <= static_cast<off_t>(sizeof(Header)) ||
      pread(file, &found, sizeof(found), 0) != sizeof(found) || found != token) {
    return nullptr;
  }
  std::move(closed).Cancel();
  return Map(file, static_cast<size_t>(status.st_size) - sizeof(Header), access, room);
}

bool SharedMemory::Reserve(size_t begin, size_t end) const {
  int result;
  do {
    result = fallocate(file_, 0, static_cast<off_t>(sizeof(Header) + begin),
                       static_cast<off_t>(end - begin));
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace shoal
