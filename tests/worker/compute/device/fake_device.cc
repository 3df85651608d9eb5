#include "tests/worker/compute/device/fake_device.h"

#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

thread_local const FakeDevice* current_device = nullptr;

const char* NameOf(Device::Stream stream) {
  constexpr const char* kNames[] = {"in", "compute", "out"};
  return kNames[static_cast<int>(stream)];
}

}  // namespace

class FakeDevice::Pinning : public PinnedBuffer {
 public:
  Pinning(const char* memory, int64_t size_bytes, FakeDevice* device)
      : memory_(memory), device_(*device) {
    device_.pinned_[memory_] = size_bytes;
  }
  ~Pinning() override { device_.pinned_.erase(memory_); }

 private:
  const char* const memory_;
  FakeDevice& device_;
};

class FakeDevice::FakeMemory : public Device::Memory {
 public:
  enum class Of { kDevice, kHost };
  FakeMemory(int64_t size_bytes, Of of, FakeDevice* device)
      : bytes_(size_bytes, '\xff'), of_(of), device_(*device) {  // not-a-number
    device_.CheckIsCurrent();
    if (of_ == Of::kHost) {
      pinning_.emplace(data(), size_bytes, device);
    } else {
      device_.taken_bytes_ += size_bytes;
      device_.taken_[data()] = size_bytes;
    }
  }
  ~FakeMemory() override {
    device_.CheckIsCurrent();
    if (of_ == Of::kHost) return;
    device_.taken_bytes_ -= static_cast<int64_t>(bytes_.size());
    device_.taken_.erase(data());
  }
  char* data() const override { return bytes_.data(); }

 private:
  mutable std::vector<char> bytes_;
  const Of of_;
  FakeDevice& device_;
  std::optional<Pinning> pinning_;  // of the host's
};

struct FakeDevice::FakeEvent : Device::Event {
  explicit FakeEvent(const FakeDevice* device) : device(*device) { this->device.CheckIsCurrent(); }
  ~FakeEvent() override { device.CheckIsCurrent(); }

  const FakeDevice& device;
  int number = 0;
  int64_t recorded = 0;  // times
  std::shared_ptr<int64_t> reached = std::make_shared<int64_t>(0);
  std::shared_ptr<int64_t> reached_at = std::make_shared<int64_t>(0);
};

struct FakeDevice::FakeRecording : Device::Recording {
  explicit FakeRecording(const FakeDevice* device) : device(*device) {}
  ~FakeRecording() override { device.CheckIsCurrent(); }

  const FakeDevice& device;
  std::vector<std::function<void()>> gives;
};

FakeDevice::FakeDevice(uint64_t seed) : random_(seed), lazy_(seed % (kStreams + 1)) {
  FakeDevice::UseOnThisThread();
}

FakeDevice::~FakeDevice() {
  CheckIsCurrent();
  SHOAL_CHECK(idle(), "what is given runs on without memory");
}

void FakeDevice::UseOnThisThread() { current_device = this; }

void FakeDevice::CheckIsCurrent() const {
  SHOAL_CHECK(current_device == this, "the thread's current device is another");
}

absl::StatusOr<std::unique_ptr<Device::Memory>> FakeDevice::Allocate(int64_t size_bytes) {
  if (size_bytes > memory_bytes_ - taken_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("no ", size_bytes, " bytes of the fake's"));
  }
  return std::make_unique<FakeMemory>(size_bytes, FakeMemory::Of::kDevice, this);
}

absl::StatusOr<std::unique_ptr<Device::Memory>> FakeDevice::AllocateHost(int64_t size_bytes) {
  return std::make_unique<FakeMemory>(size_bytes, FakeMemory::Of::kHost, this);
}

absl::StatusOr<std::unique_ptr<PinnedBuffer>> FakeDevice::Pin(void* memory, int64_t size_bytes) {
  return std::make_unique<Pinning>(static_cast<const char*>(memory), size_bytes, this);
}

int64_t FakeDevice::pinned_bytes() const {
  int64_t sum = 0;
  for (const auto& [memory, size_bytes] : pinned_) sum += size_bytes;
  return sum;
}

bool FakeDevice::Contains(const std::map<const char*, int64_t>& pieces, const char* memory,
                          int64_t size_bytes) {
  auto after = pieces.upper_bound(memory);
  if (after == pieces.begin()) return false;
  const auto& [begin, size] = *--after;
  return memory + size_bytes <= begin + size;
}

absl::StatusOr<std::unique_ptr<Device::Event>> FakeDevice::NewEvent() {
  auto event = std::make_unique<FakeEvent>(this);
  event->number = events_++;
  return event;
}

absl::Status FakeDevice::CopyIn(const void* from, char* to, int64_t size_bytes) {
  log_.push_back(absl::StrCat("in: copy ", size_bytes));
  const auto* const source = static_cast<const char*>(from);
  const bool pinned = IsPinned(source, size_bytes);
  Give(Stream::kIn, {.run = [=, this, given = std::string(source, size_bytes)]() -> absl::Status {
         if (!Contains(taken_, to, size_bytes) || (pinned && !IsPinned(source, size_bytes)))
           return absl::InternalError("a copy from or to memory that was given back");
         if (std::memcmp(source, given.data(), size_bytes) != 0)
           return absl::InternalError("what was to be copied has been changed");
         std::memcpy(to, source, size_bytes);
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

absl::Status FakeDevice::CopyOut(const char* from, void* to, int64_t size_bytes) {
  log_.push_back(absl::StrCat("out: copy ", size_bytes));
  const auto copied = std::make_shared<int64_t>(0);
  Give(Stream::kOut, {.run =
                          [=] {
                            std::memcpy(to, from, size_bytes);
                            return absl::OkStatus();
                          },
                      .reached = copied});
  if (IsPinned(static_cast<const char*>(to), size_bytes)) return absl::OkStatus();
  log_.push_back("host: held up");
  return DoUntil([&] { return *copied > 0; });
}

void FakeDevice::GiveOut(const std::string& what, std::function<bool()> may_run,
                         std::function<absl::Status()> run) {
  log_.push_back("out: " + what);
  Give(Stream::kOut, {.may_run = std::move(may_run), .run = std::move(run)});
}

absl::Status FakeDevice::Launch(Kernel& kernel, const RunContext* context,
                                std::span<void* const> tensors) {
  log_.push_back("compute: kernel");
  GiveOrRecord(Stream::kCompute, [this, &kernel, context,
                                  given = std::vector<void*>(tensors.begin(), tensors.end())] {
    Give(Stream::kCompute,
         {.run = [&kernel, context, given] { return kernel.Run(context, given); }});
  });
  return absl::OkStatus();
}

absl::Status FakeDevice::Record(Stream stream, Event& event) {
  auto& fake = static_cast<FakeEvent&>(event);
  log_.push_back(absl::StrCat(NameOf(stream), ": event ", fake.number));
  GiveOrRecord(stream, [this, stream, &fake] {
    ++fake.recorded;
    Give(stream, {.reached = fake.reached, .reached_at = fake.reached_at});
  });
  return absl::OkStatus();
}

absl::Status FakeDevice::Wait(Stream stream, Event& event) {
  auto& fake = static_cast<FakeEvent&>(event);
  log_.push_back(absl::StrCat(NameOf(stream), ": wait ", fake.number));
  GiveOrRecord(stream, [this, stream, &fake] {
    Give(stream, {.awaited = fake.reached, .times = fake.recorded});
  });
  return absl::OkStatus();
}

void FakeDevice::GiveOrRecord(Stream stream, std::function<void()> give) {
  if (recording_ == nullptr || stream != Stream::kCompute) return give();
  recording_->gives.push_back(std::move(give));
}

absl::Status FakeDevice::BeginRecording() {
  log_.push_back("compute: record");
  recording_ = std::make_unique<FakeRecording>(this);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Device::Recording>> FakeDevice::EndRecording() {
  log_.push_back("compute: recorded");
  std::unique_ptr<FakeRecording> recording = std::move(recording_);
  if (cannot_record_) return absl::UnavailableError("this cannot be captured");
  return recording;
}

absl::Status FakeDevice::Play(Recording& recording) {
  log_.push_back("compute: play");
  for (const std::function<void()>& give : static_cast<FakeRecording&>(recording).gives) give();
  return absl::OkStatus();
}

absl::Status FakeDevice::Await(Event& event) {
  const auto& fake = static_cast<FakeEvent&>(event);
  log_.push_back(absl::StrCat("host: wait ", fake.number));
  return DoUntil([&] { return *fake.reached == fake.recorded; });
}

absl::StatusOr<bool> FakeDevice::IsComplete(Event& event) {
  const auto& fake = static_cast<FakeEvent&>(event);
  while (*fake.reached < fake.recorded) {
    switch (DoOne()) {
      case Progress::kOne:
        break;
      case Progress::kNone:
        return absl::InternalError("the streams wait for each other");
      case Progress::kNotNow:
        return false;
    }
  }
  SHOAL_RETURN_IF_ERROR(error_);
  return true;
}

absl::StatusOr<double> FakeDevice::SecondsBetween(Event& begin, Event& end) {
  const auto &from = static_cast<FakeEvent&>(begin), &to = static_cast<FakeEvent&>(end);
  if (*from.reached < from.recorded || *to.reached < to.recorded)
    return absl::InternalError("the time of what has not happened");
  return static_cast<double>(*to.reached_at - *from.reached_at);
}

void FakeDevice::Finish() {
  log_.push_back("host: finish");
  (void)DoUntil([this] { return idle(); });
  error_ = absl::OkStatus();
}

absl::Status FakeDevice::DoUntil(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done()) {
    const Progress progress = DoOne();
    if (progress == Progress::kNone) return absl::InternalError("the streams wait for each other");
    if (progress == Progress::kOne) continue;
    if (std::chrono::steady_clock::now() > deadline)
      return absl::DeadlineExceededError("a device has waited for another in vain");
    std::this_thread::yield();
  }
  return error_;
}

bool FakeDevice::idle() const {
  for (const std::deque<Item>& stream : streams_) {
    if (!stream.empty()) return false;
  }
  return true;
}

void FakeDevice::Give(Stream stream, Item item) {
  streams_[static_cast<int>(stream)].push_back(std::move(item));
}

FakeDevice::Progress FakeDevice::DoOne() {
  std::vector<size_t> ready;
  bool awaits_others = false;
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i].empty()) continue;
    const Item& next = streams_[i].front();
    if (next.awaited != nullptr && *next.awaited < next.times) continue;
    if (next.may_run == nullptr || !error_.ok() || next.may_run()) {
      ready.push_back(i);
    } else {
      awaits_others = true;
    }
  }
  if (ready.empty()) return awaits_others ? Progress::kNotNow : Progress::kNone;
  if (ready.size() > 1) std::erase(ready, lazy_);
  std::deque<Item>& stream = streams_[ready[random_() % ready.size()]];
  const Item item = std::move(stream.front());
  stream.pop_front();
  if (item.run != nullptr && error_.ok()) error_ = item.run();
  if (item.run != nullptr) ++things_done_;
  if (item.reached != nullptr) ++*item.reached;
  if (item.reached_at != nullptr) *item.reached_at = things_done_;
  return Progress::kOne;
}

}  // namespace shoal
